"""Choices of a job on which it depends whether a key is read, and how messages show them."""

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
        Of the choice.
    values
        One of these is chosen, or none of them.
    other
        None of them.
    """

    key: str
    values: tuple[Any, ...]
    other: bool = False

    def made(self, job: Any) -> bool:
        """Whether a job has made this choice."""
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
    """Return what to say about a key that nothing reads.

    Parameters
    ----------
    key, value
        The key.
    first, chosen
        The choice of the job that leaves it without a reader.
    wanted
        The choices that would all have to be made, or the alternatives to them.
    """
    words = ", or of ".join(" with ".join(map(str, each)) for each in wanted)
    return (
        f"{key} = {show(value)}: nothing reads it with {first} = {show(chosen)}. It is a key of "
        f"{words}. Leave {key} out, or change {first}."
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
