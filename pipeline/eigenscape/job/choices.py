"""Conditions under which a key of a job is read, and their text in messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

FILE = object()
"""Stands for any text but "all" among the values of ``learn.train``."""


@dataclass(frozen=True)
class Choice:
    """A choice of a job.

    Attributes
    ----------
    key
        The key.
    values
        Values of the key that fulfil the condition.
    other
        If true, all other values fulfil the condition.
    """

    key: str
    values: tuple[Any, ...]
    other: bool = False

    def made(self, job: Any) -> bool:
        """Return whether a job fulfils this condition."""
        value = value_of(job, self.key)
        is_file = isinstance(value, str) and value != "all"
        return (value in self.values or (FILE in self.values and is_file)) != self.other

    def __str__(self) -> str:
        """Return the choice in words."""
        if FILE in self.values:
            return f'{self.key} = "all", a share or a number'
        if self.values == (None,):
            return f"no {self.key}"
        values = " or ".join(map(show, self.values))
        return f"{self.key} other than {values}" if self.other else f"{self.key} = {values}"


Choices = tuple[Choice, ...]


def nothing_reads(key: str, value: Any, first: str, chosen: Any, wanted: Sequence[Choices]) -> str:
    """Return the error message for an unread key.

    Parameters
    ----------
    key, value
        The key and its value.
    first, chosen
        The key, and its value, because of which the former key is not read.
    wanted
        Alternative conditions under which the key would be read.
    """
    words = ", or with ".join(" and ".join(map(str, each)) for each in wanted)
    return (
        f"{key} = {show(value)}: has no effect with {first} = {show(chosen)}. It is read only with "
        f"{words}. Remove {key}, or change {first}."
    )


def value_of(job: Any, key: str) -> Any:
    """Return a key of a job, None where its table is not there or has no such key."""
    return reduce(lambda table, part: getattr(table, part, None), key.split("."), job)


def show(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(show, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"
