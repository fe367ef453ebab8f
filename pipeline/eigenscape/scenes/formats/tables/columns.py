"""Columns of files of rows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a file.

    Attributes
    ----------
    name
        As the file names it, "" if it does not.
    numbers
        Whether it holds numbers, so that it is a feature unless the job says otherwise.
    fault
        Why it cannot be a feature, as the end of a sentence; "" if it can.
    index
        Whether it is an index of pandas, which is a feature only if the job names it.
    kind
        What a column without numbers holds.
    """

    name: str
    numbers: bool
    fault: str = ""
    index: bool = False
    kind: str = "text"
