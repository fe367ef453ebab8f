"""Cron expressions: what is wrong with one, and when it comes next."""

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta

from eigenscape.errors import InputError

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {
    name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
}
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields, as crontab(5) has it.

    Attributes
    ----------
    text
        The five fields, with single spaces; nicknames such as ``@daily`` written out.
    minutes, hours, days, months, weekdays
        What each field allows; Sunday is 0.
    either_day
        Whether day of the month and day of the week are both restricted: then one of them is enough.
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next_after(self, time: datetime) -> datetime:
        """Return the first full minute after `time` that fits.

        Raises
        ------
        InputError
            No day of the calendar does, such as the 30th of February.
        """
        at = time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        # A leap day on a given weekday comes back after 40 years at most.
        end = at.year + 41
        while at.year < end:
            if at.month not in self.months or not self._fits_day(at):
                at = at.replace(hour=0, minute=0) + timedelta(days=1)
            elif at.hour not in self.hours:
                at = at.replace(minute=0) + timedelta(hours=1)
            elif at.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at
        raise InputError(f"--cron {self.text!r}: no day is ever like that. Check day and month.")

    def _fits_day(self, at: datetime) -> bool:
        day, weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return day or weekday if self.either_day else day and weekday


def not_before(now: datetime, due: str) -> datetime:
    """Return the time after which the next run is sought: now, or when the present run was due.

    The clock of a node may be behind that of its queue, or be set back: the present run would come again.
    A time more than a day ahead was read from a clock that was wrong.

    Parameters
    ----------
    now
        Local time.
    due
        Local time at which the present run was due, ISO 8601; empty if it is unknown.

    Examples
    --------
    >>> not_before(datetime(2026, 11, 28, 2, 59), "2026-11-28T03:00:00")
    datetime.datetime(2026, 11, 28, 3, 0)
    >>> not_before(datetime(2026, 11, 28, 2, 59), "2099-01-01T03:00:00")
    datetime.datetime(2026, 11, 28, 2, 59)
    """
    try:
        wanted = datetime.fromisoformat(due).replace(tzinfo=None)
    except ValueError:
        return now
    return wanted if now < wanted <= now + timedelta(days=1) else now


def parse_cron(text: str) -> Cron:
    """Read a cron expression.

    Examples
    --------
    >>> parse_cron("*/15 3 * * mon-fri").next_after(datetime(2026, 11, 21, 12, 0))
    datetime.datetime(2026, 11, 23, 3, 0)

    Raises
    ------
    InputError
        It is none.
    """
    written = " ".join(text.split())
    if written.startswith("@"):
        if written.lower() not in _NICKNAMES:
            raise InputError(f"--cron {text!r}: known are {', '.join(_NICKNAMES)}, or five fields.")
        written = _NICKNAMES[written.lower()]
    parts = written.split(" ")
    if len(parts) != 5:
        raise InputError(
            f"--cron {text!r}: has {len(parts) if text.strip() else 0} fields; five are needed: "
            'minute, hour, day of the month, month, day of the week, as in "0 3 * * *". Put them '
            "in quotes."
        )
    fields = zip(parts, _FIELDS, strict=True)
    minutes, hours, days, months, weekdays = (_parse_field(text, *pair) for pair in fields)
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    sunday_is_0 = frozenset(day % 7 for day in weekdays)
    cron = Cron(written, minutes, hours, days, months, sunday_is_0, either)
    cron.next_after(datetime(2000, 1, 1))
    return cron


def _parse_field(text: str, part: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for item in part.split(","):
        span, slash, step = item.partition("/")
        if slash and not (step.isascii() and step.isdigit() and int(step) > 0):
            raise _wrong(text, field, item, "behind the / stands a number from 1")
        if span == "*":
            low, high = field.low, field.high
        else:
            first, dash, last = span.partition("-")
            low = _number(text, field, item, first)
            high = _number(text, field, item, last) if dash else field.high if slash else low
        if low > high:
            raise _wrong(text, field, item, "the range runs backwards")
        found.update(range(low, high + 1, int(step) if slash else 1))
    return frozenset(found)


def _number(text: str, field: _Field, item: str, part: str) -> int:
    value = field.names.get(part.lower())
    if value is None and part.isascii() and part.isdigit():
        value = int(part)
    if value is None or not field.low <= value <= field.high:
        raise _wrong(text, field, item, f"{part!r} is none of them")
    return value


def _wrong(text: str, field: _Field, item: str, why: str) -> InputError:
    names = f", {min(field.names, key=field.names.__getitem__)} ..." if field.names else ""
    return InputError(
        f"--cron {text!r}: {field.name} {item!r}: {why}. Allowed are {field.low} to {field.high}"
        f"{names}, *, lists 1,2, ranges 1-5 and steps */2."
    )
