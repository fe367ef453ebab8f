from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.errors import InputError
from eigenscape.schedule.cron import not_before, parse_cron


def field(low, high):
    """Texts of one field with what they allow."""
    number = st.integers(low, high)
    everything = st.just(("*", set(range(low, high + 1))))
    one = number.map(lambda n: (str(n), {n}))
    span = st.tuples(number, number, st.integers(1, 7)).map(
        lambda t: (
            f"{min(t[:2])}-{max(t[:2])}/{t[2]}",
            set(range(min(t[:2]), max(t[:2]) + 1, t[2])),
        )
    )
    parts = st.lists(st.one_of(one, span), min_size=1, max_size=3)
    several = parts.map(
        lambda found: (",".join(t for t, _ in found), set().union(*(s for _, s in found)))
    )
    return st.one_of(everything, several)


@given(field(0, 59), field(0, 23), field(1, 31), field(0, 7), st.integers(0, 400_000))
def test_next_after__is_the_first_minute_that_fits(minute, hour, day, weekday, start):
    text = " ".join(part for part, _ in (minute, hour, day, ("*", set()), weekday))
    cron = parse_cron(text)
    begin = datetime(2026, 1, 1) + timedelta(minutes=start, seconds=30)
    weekdays = {number % 7 for number in weekday[1]}

    def fits(at):
        on_day, on_weekday = at.day in day[1], at.isoweekday() % 7 in weekdays
        both = day[0] != "*" and weekday[0] != "*"
        good = (on_day or on_weekday) if both else (on_day and on_weekday)
        return at.minute in minute[1] and at.hour in hour[1] and good

    found = cron.next_after(begin)
    assert found > begin
    assert found.second == 0
    assert fits(found)
    at = begin.replace(second=0) + timedelta(minutes=1)
    # Every minute of two days, then what fits in none of the hours is not looked at again.
    while at < min(found, begin + timedelta(days=2)):
        assert not fits(at)
        at += timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 3 * * *", "2026-11-22T03:00", "2026-11-23T03:00"),
        ("@hourly", "2026-11-22T03:59", "2026-11-22T04:00"),
        ("0 0 29 feb *", "2026-11-22T03:00", "2028-02-29T00:00"),
        ("30 6 * * Mon-fri/2", "2026-11-21T00:00", "2026-11-23T06:30"),
        ("0 0 13 * 5", "2026-11-22T00:00", "2026-11-27T00:00"),  # the 13th, or a Friday
        ("5/20 * * * 7", "2026-11-22T10:06", "2026-11-22T10:25"),
    ],
)
def test_next_after__knows_the_calendar(text, after, expected):
    found = parse_cron(text).next_after(datetime.fromisoformat(after))
    assert found == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 3 * *", "has 4 fields; five are needed"),
        ("", "has 0 fields"),
        ("60 3 * * *", r"minute '60': '60' is none of them. Allowed are 0 to 59"),
        ("0 3 * foo *", r"month 'foo'.*Allowed are 1 to 12, jan"),
        ("0 5-3 * * *", "hour '5-3': the range runs backwards"),
        ("*/0 * * * *", "behind the / stands a number from 1"),
        ("0 -1 * * *", "hour '-1'"),
        ("@reboot", "known are @hourly"),
        ("0 0 30 2 *", "no day is ever like that"),
        ("0 3 * * ; rm", "has 6 fields"),
        ("0 3 * * $(x)", "day of the week"),
    ],
)
def test_parse_cron__says_value_limit_and_fix(text, said):
    with pytest.raises(InputError, match=said.replace("$(", r"\$\(")):
        parse_cron(text)


@pytest.mark.parametrize(
    ("now", "due", "following"),
    [
        ("2026-11-22T03:00:01", "2026-11-22T03:00:00", "2026-11-23T03:00"),
        (
            "2026-11-22T02:59:58",
            "2026-11-22T03:00:00",
            "2026-11-23T03:00",
        ),  # a clock that is behind
        ("2026-11-22T01:00:00", "2026-11-22T03:00:00", "2026-11-23T03:00"),  # or was set back
        ("2026-11-22T01:00:00", "2031-01-01T03:00:00", "2026-11-22T03:00"),  # or was wrong before
        ("2026-11-22T01:00:00", "", "2026-11-22T03:00"),
    ],
)
def test_not_before__no_time_comes_twice_and_none_is_left_out(now, due, following):
    after = not_before(datetime.fromisoformat(now), due)
    assert parse_cron("0 3 * * *").next_after(after) == datetime.fromisoformat(following)
