"""Origins of columns: what is subtracted, in double, from values before they go to single precision.

Single precision tells about 2^24 values apart on each side of 0. A column that lies far from 0,
compared with its spread, has no use for most of them; once its middle is subtracted it has. Columns
with values of other kinds stay as they are, to the bit.

An origin depends on the least and the largest value of a column alone, so on no order and no
block size, and the difference of a value and an origin as close as that has no error (Sterbenz).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.shares import listed

F8 = NDArray[np.float64]

_FAR = 16
"""Distance from 0, in units of the spread, from which a column is centred: 20 of 24 bits are left."""

_WHOLE = 2**24
"""Whole numbers up to here are the same in single precision."""

_FEW_VALUES = 2**10
"""Steps of the stored type across a spread; fewer are told."""

_COARSE = 1e-6
"""Distance of neighbouring numbers from which identical samples may be the fault of their type."""

_LISTED = 5


def is_rounded(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of a type may change when they go to single precision."""
    return not np.can_cast(dtype, np.float32)


def find_origin(low: F8, high: F8, dtype: np.dtype[Any], *, exact: bool) -> F8 | None:
    """Return the origin of each column, 0 for those that stay as they are; None if all of them do.

    Parameters
    ----------
    low, high : array, shape (columns,)
        Least and largest value of each.
    dtype
        Of the values; those of some types never change.
    exact
        Whether `low` and `high` are in double. Otherwise a column that seems constant may not be,
        and is centred; in double it is centred if it would drown the others in a projection.
    """
    if not is_rounded(dtype):
        return None
    largest, spread = np.maximum(np.abs(low), np.abs(high)), high - low
    if exact:
        spread = np.where(spread > 0, spread, spread.max(initial=0))
    far = largest > _FAR * spread
    if dtype.kind in "ui":
        far &= largest > _WHOLE
    return np.where(far, low + (high - low) / 2, 0) if far.any() else None


def centre(values: NDArray[Any], origin: F8 | None) -> NDArray[np.float32]:
    """Return values less their origin in single precision, shape (rows, columns); too large is infinite.

    Parameters
    ----------
    values : array, shape (rows, columns)
    origin : array, shape (columns,), optional
        None for 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if origin is None:
            return np.asarray(values, np.float32)
        centred = np.empty(values.shape, np.float32)
        # Computed in double, a buffer at a time.
        np.subtract(values, origin, out=centred, casting="same_kind")
        return centred


def describe_lost(low: F8, high: F8, dtype: np.dtype[Any], *, what: str) -> str:
    """Return which columns have lost their spread before they were read; nothing if none has.

    Parameters
    ----------
    low, high : array, shape (columns,)
        Least and largest value of each column.
    dtype
        Type in which they are stored: floating point numbers lie the farther apart the larger they are.
    what
        What a column is called.
    """
    if dtype.kind != "f":
        return ""
    largest, spread = np.maximum(np.abs(low), np.abs(high)), high - low
    step = np.spacing(largest.astype(dtype)).astype(np.float64)
    few = np.flatnonzero((spread > 0) & (spread < _FEW_VALUES * step))
    if not len(few):
        return ""
    ranges = (
        f"{what} {column + 1} from {low[column]:.10g} to {high[column]:.10g} in steps of "
        f"{step[column]:.2g}"
        for column in few.tolist()
    )
    return (
        f"values of type {dtype} that lie so far from 0 have lost most of their spread: "
        f"{listed(ranges, _LISTED, '; ')}. Subtract a value near the mean where the numbers are made."
    )


def describe_steps(values: F8, dtype: np.dtype[Any]) -> str:
    """Return how far apart stored numbers lie at the largest of `values`; nothing where it is near."""
    largest = float(np.abs(values).max(initial=0))
    step = float(np.spacing(np.asarray(largest, dtype))) if dtype.kind == "f" else 0.0
    if step < _COARSE:
        return ""
    return (
        f" Numbers of type {dtype} as large as {largest:.3g} lie {step:.2g} apart: subtract a value "
        "near the mean where they are made."
    )
