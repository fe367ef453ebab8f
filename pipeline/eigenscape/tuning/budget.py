"""How long tuning may take, and how much of that earlier calls have spent."""

import json
import re
import time
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import explain_write_errors, write_json
from eigenscape.errors import InputError

_SECONDS = {"s": 1, "min": 60, "h": 3600}
_FORM = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h)\s*")

_CAUTION = 1.25
"""The next scores may take so many times as long as the last `_RECENT` did on average."""

_RECENT = 8
"""Later scores take longer: they have more neighbours, draws and slower classifiers."""

_RESERVED = 0.03
"""Share of the budget for what begins before the clock and ends after the last score: the libraries, the
table and the picture."""


def as_seconds(budget: Any) -> float:
    """Return a budget in seconds.

    Parameters
    ----------
    budget
        Seconds, or text such as "90s", "10min" or "1.5h".

    Raises
    ------
    InputError
        It has no such form, or is not above 0.

    Examples
    --------
    >>> as_seconds("10min"), as_seconds(90)
    (600.0, 90.0)
    """
    found = _FORM.fullmatch(budget) if isinstance(budget, str) else None
    seconds = float(found[1]) * _SECONDS[found[2]] if found else budget
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        other = "" if isinstance(budget, str) else ", or a number of seconds"
        raise InputError(
            f"budget = {budget!r}: expected a time above 0 with its unit, s, min or h, such as 90s or "
            f"10min{other}."
        )
    return float(seconds)


class Budget:
    """Seconds that are left, by the clock; what earlier calls have spent on the same counts too.

    Parameters
    ----------
    seconds
        All of them.
    path
        Where what is spent is noted after every job.
    key
        Key of the job that is tuned and of its files: time spent on others does not count.
    """

    def __init__(self, seconds: float, path: Path, key: str) -> None:
        self.seconds, self._path, self._key = seconds, path, key
        before = _read(path, key)
        self.continues = before is not None
        """Whether an earlier call has tuned the same."""
        self._before, self._start = before or 0.0, time.monotonic()
        self._took: list[float] = []
        self._began = self._start

    @property
    def spent(self) -> float:
        """Seconds that are spent."""
        return self._before + time.monotonic() - self._start

    def allows(self, calls: int = 1) -> bool:
        """Whether so many more scores fit."""
        recent = self._took[-_RECENT:]
        mean = sum(recent) / len(recent) if recent else 0.0
        return self.spent + _CAUTION * calls * mean < (1 - _RESERVED) * self.seconds

    def begin(self) -> None:
        """Note that a job begins."""
        self._began = time.monotonic()

    def end(self, *, fresh: bool) -> None:
        """Note that it has ended; one that was finished before says nothing of the next."""
        if fresh:
            self._took.append(time.monotonic() - self._began)
        self.note()

    def note(self, *, finished: bool = False) -> None:
        """Write down what is spent, and whether the tuning has come to its end."""
        with explain_write_errors(self._path):
            times = {"spent_seconds": round(self.spent, 3), "budget_seconds": self.seconds}
            write_json(self._path, {**times, "key": self._key, "finished": finished})

    def __str__(self) -> str:
        """Return what is spent of what, in words."""
        return f"{self.spent:.0f} s of {self.seconds:.0f} s, "


def _read(path: Path, key: str) -> float | None:
    """Return the seconds that earlier calls have spent, None if they tuned something else, or nothing."""
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        return float(noted["spent_seconds"]) if noted["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
