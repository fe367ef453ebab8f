"""Texts in CSV files: a spreadsheet that opens one must not take the name of a class for a formula."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import written_whole

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def to_cell(text: str) -> str:
    """Return a text as a CSV file holds it: with a quote before what a spreadsheet would work out.

    Examples
    --------
    >>> print(to_cell("=1+1"), to_cell("-5.5"), to_cell("corn-notill"))
    '=1+1 -5.5 corn-notill
    """
    if not _FORMULA.match(text) or is_number(text):
        return text
    return f"'{text}"


@contextmanager
def csv_rows(path: Path) -> Iterator[Any]:
    """Surround the writing of a CSV file, which is there once it is whole; yields a `csv.writer`."""
    with (
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        yield csv.writer(stream, lineterminator="\n")


def separator_of(path: str | Path, line: str) -> str:
    r"""Return what separates the values of a CSV file, by its first line: commas, semicolons or tabs.

    Examples
    --------
    >>> separator_of("a.csv", "row;column;class"), separator_of("a.tsv", "row,column")
    (';', '\t')
    """
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    return max(",;\t", key=line.count)


def from_cell(text: str) -> str:
    """Reverse `to_cell`."""
    inner = text.removeprefix("'")
    return inner if inner != text and to_cell(inner) == text else text


def is_number(text: str) -> bool:
    """Return whether a text is one number, as Python reads them."""
    try:
        float(text)
    except ValueError:
        return False
    return True
