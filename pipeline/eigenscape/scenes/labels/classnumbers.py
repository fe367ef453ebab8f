"""Numbers in a file to class numbers: whole, 1 ... 65535, 0 for none; texts that mean none among names."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError

MOST_CLASSES = 65535
"""Largest class number: labels are stored in 16 bits, 0 means none."""

_UNNAMED = {"", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None", "-1"}
"""How programs write missing names: "Na" (sodium) may be a class."""
_SHOWN = 3
"""Classes that a note lists."""
MISSING = {"", "na", "n/a", "nan", "null", "none"}
"""How programs write missing numbers, in lower case."""


def unnamed(names: Collection[str]) -> set[str]:
    """Return which of some texts mean no label; the others are names of classes.

    Parameters
    ----------
    names
        The distinct texts. 0 may be the name of a class only beside numerals, such as 0, 1 and 2b.
    """
    missing, zeros = _UNNAMED.intersection(names), {*filter(is_zero, names)}
    numerals = any(map(is_numeral, {*names} - missing - zeros))
    return missing if numerals else missing | zeros


def texts_of_none(texts: Collection[str]) -> set[str]:
    """Return which of the distinct texts of a column or an attribute mean no label.

    Beside numerals alone these are `MISSING` in upper or lower case, otherwise those of `unnamed`.
    """
    missing = {text for text in texts if text.lower() in MISSING}
    return missing if all(map(is_numeral, {*texts} - missing)) else unnamed(texts)


def told_unnamed(found: Collection[str], where: str, count: str) -> str:
    """Return what is said of texts that mean no label, beside the empty one.

    Parameters
    ----------
    found
        The texts.
    where
        Where they are.
    count
        Of how many rows, samples or pixels.
    """
    return (
        f"{', '.join(sorted(found))} in {where} means no label ({count}). If it is a class, "
        "give it another name"
    )


def told_merged(numbers: Mapping[Any, int], where: str) -> list[str]:
    """Return a note on distinct values that are the same class number, such as 01 and 1; none without them.

    Parameters
    ----------
    numbers
        Class number of every distinct value, 0 for none.
    where
        Where they are.
    """
    written: dict[int, list[str]] = {}
    for value, number in numbers.items():
        written.setdefault(number, []).append(str(value))
    found = [" and ".join(values) for number, values in written.items() if number and values[1:]]
    if not found:
        return []
    shown = ", ".join([*found[:_SHOWN], *(["..."] if len(found) > _SHOWN else [])])
    return [
        f"{shown} in {where} are numbers of the same class. If they are different classes, give them names"
    ]


def to_number(value: Any) -> float:
    """Return a numeral, or a number, as a number.

    Raises
    ------
    ValueError
        It is none: also "1_1", the name of a class that Python would read as 11.
    """
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def is_numeral(text: str) -> bool:
    """Return whether a text is a number; see `to_number`."""
    try:
        to_number(text)
    except ValueError:
        return False
    return True


def is_zero(value: Any) -> bool:
    """Return whether a number or a numeral is 0, which means no label."""
    try:
        return to_number(value) == 0
    except (TypeError, ValueError):
        return False


def told_zero_of(what: str) -> str:
    """Return what 0 means in a column or an attribute, for those who mean a class by it."""
    return f"0 in {what} means no label. If it is a class, number the classes from 1 or give them names"


def class_numbers(
    values: NDArray[Any], source: str, *, first_row: int = 0, raster: bool = False
) -> NDArray[np.uint16]:
    """Return numbers as class numbers.

    Parameters
    ----------
    values : array of numbers, shape (rows, width)
        0 where there is no label.
    source, first_row
        What to name in the message.
    raster
        Whether the file is a raster, which can declare a value as nodata.

    Raises
    ------
    SceneError
        A value is negative, too large or fractional.
    """
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.uint16)
    # Casting wraps and cuts: only class numbers come back as they were.
    if not (wrong := numbers != values).any():
        return numbers
    row, column = np.argwhere(wrong)[0]
    raise label_out_of_range(
        values[row, column], f"{source}: row {first_row + row}, column {column}", raster=raster
    )


def label_out_of_range(value: Any, where: str, *, raster: bool = False) -> SceneError:
    """Return the error for a value that is no class number."""
    fix = "or set the value to 0 if it means no label"
    if raster:
        fix = "or declare the value as nodata (gdal_edit.py -a_nodata VALUE FILE)"
    return SceneError(
        f"{where}: label value out of range: {value}. Class numbers are whole, from 1 to "
        f"{MOST_CLASSES}; 0, NaN, an empty cell of a table and the nodata of a raster mean no label. "
        f"Renumber the classes, {fix}."
    )
