"""Texts in CSV files: a spreadsheet that opens one must not take the name of a class for a formula."""

import re

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


def from_cell(text: str) -> str:
    """Return the text of which `to_cell` made a cell."""
    inner = text.removeprefix("'")
    return inner if inner != text and to_cell(inner) == text else text


def is_number(text: str) -> bool:
    """Return whether a text is one number, as Python reads them."""
    try:
        float(text)
    except ValueError:
        return False
    return True
