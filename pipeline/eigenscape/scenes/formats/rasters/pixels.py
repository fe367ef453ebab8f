"""Stored numbers to samples: scale, offset, and which pixels are valid."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError

MOST_ROW_STEP = 1024
"""Blocks higher than this are not worth aligning windows to: one would fill the memory."""

_PART = 4096
"""Pixels that are calibrated at a time."""


@dataclass(frozen=True)
class Calibration:
    """How the stored numbers of the good bands become values.

    Attributes
    ----------
    scale, offset
        value = stored * scale + offset, one of each per good band; None when values are stored
        as they are.
    nodata
        Pairs of a stored value that marks missing pixels and the positions (among the good bands)
        where it does so; None stands for all of them.
    limits
        Least and greatest stored value that is not missing; None where there are none.
    """

    scale: tuple[float, ...] | None = None
    offset: tuple[float, ...] | None = None
    nodata: tuple[tuple[float, tuple[int, ...] | None], ...] = ()
    limits: tuple[float, float] | None = None


def calibrate(
    scale: Sequence[float],
    offset: Sequence[float],
    nodata: Sequence[Iterable[float | None]],
    limits: tuple[float, float] | None = None,
) -> Calibration:
    """Build a `Calibration` from the scale, offset and nodata values of each good band, and common limits."""
    positions: dict[float, list[int]] = {}
    for position, values in enumerate(nodata):
        # NaN needs no mark: a value that is not finite is missing anyway.
        for value in {value for value in values if value is not None and value == value}:
            positions.setdefault(value, []).append(position)
    plain = all(factor == 1 for factor in scale) and all(shift == 0 for shift in offset)
    return Calibration(
        scale=None if plain else tuple(scale),
        offset=None if plain else tuple(offset),
        nodata=tuple(
            (value, None if len(where) == len(nodata) else tuple(where))
            for value, where in positions.items()
        ),
        limits=limits,
    )


def join_parts(
    parts: Iterable[tuple[NDArray[Any], NDArray[np.bool_] | None, Calibration]],
    shape: tuple[int, int, int],
    empty: float | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the samples of a window, whose bands are read part by part; see `Scene.read`.

    Parameters
    ----------
    parts
        Stored numbers of some bands, shape (rows, width, bands), where they are given (None for
        everywhere), and what they mean; held one after the other.
    shape
        Of the window: rows, width and all bands.
    empty
        Stored value that *all* bands of a missing pixel have; None where there is none.
    """
    values = np.empty(shape, np.float32)
    valid = np.ones(shape[:2], np.bool_)
    seen = np.full(shape[:2], empty is None)
    first = 0
    for stored, given, calibration in parts:
        last = first + stored.shape[2]
        if given is not None:
            valid &= given
        if empty is not None:
            seen |= (stored != empty).any(axis=-1)
        fill_samples(stored, calibration, values[..., first:last], valid)
        first = last
    assert first == shape[2], "the parts have all bands"
    valid &= seen
    values[~valid] = 0
    return values, valid


def fill_samples(
    stored: NDArray[Any],
    calibration: Calibration,
    values: NDArray[np.float32],
    valid: NDArray[np.bool_],
) -> None:
    """Write calibrated samples into `values` and clear `valid` where one of them is missing.

    Parameters
    ----------
    stored : array, shape (rows, width, bands)
        Stored numbers of the good bands; any strides, so that band-sequential data is not copied.
    calibration
        What the numbers mean.
    values : array, shape (rows, width, bands), float32
        Overwritten.
    valid : array of bool, shape (rows, width)
        Cleared where a band is nodata or beyond the limits, NaN or infinite (or too large for float32).
    """
    marks = [
        (mark, where)
        for value, where in calibration.nodata
        if (mark := _as_stored(value, stored.dtype)) is not None
    ]
    limits = None if calibration.limits is None else _limits(calibration.limits, stored.dtype)
    check_finite = stored.dtype.kind == "f" or calibration.scale is not None
    scale = None if calibration.scale is None else np.asarray(calibration.scale)
    offset = None if calibration.offset is None else np.asarray(calibration.offset)
    if stored.shape[1] == 1:
        # A table: its samples take the place of a row's pixels.
        stored, values, valid = stored[np.newaxis, :, 0], values[np.newaxis, :, 0], valid.T
    # Part of a row at a time: all bands of it stay in the cache while they are transposed, scaled
    # in double precision and tested, and the temporaries stay small.
    height, width = stored.shape[:2]
    parts = [slice(first, first + _PART) for first in range(0, width, _PART)]
    with np.errstate(over="ignore", invalid="ignore"):
        for place in ((row, part) for row in range(height) for part in parts):
            line, told = stored[place], valid[place]
            for mark, where in marks:
                tested = line if where is None else line[:, list(where)]
                told &= (tested != mark).all(axis=-1)
            if limits is not None:
                told &= ((line >= limits[0]) & (line <= limits[1])).all(axis=-1)
            if scale is not None and offset is not None:
                values[place] = line * scale + offset
            else:
                values[place] = line
            if check_finite:
                told &= np.isfinite(values[place]).all(axis=-1)


def marks_of(values: Iterable[float | None], dtype: str) -> tuple[float, ...]:
    """Return those of some nodata values that numbers of a type can have, each one once, NaN last.

    Examples
    --------
    >>> marks_of((None, -9999.0, 0.0, 0), "uint16")
    (0.0,)
    """
    possible = [
        float(value)
        for value in values
        if value is not None and _as_stored(value, np.dtype(dtype)) is not None
    ]
    # By their text, as NaN is not equal to itself.
    return tuple(sorted({str(value): value for value in possible}.values(), key=math.isnan))


def _limits(limits: tuple[float, float], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return limits in the stored type, which the comparison with it is fast in."""
    low, high = limits
    if dtype.kind != "f":
        kind = np.iinfo(dtype)
        low, high = max(math.ceil(max(low, kind.min)), kind.min), min(high, kind.max)
        if low > high:
            return kind.max, kind.min
        return dtype.type(low), dtype.type(math.floor(high))
    return dtype.type(low), dtype.type(high)


def _as_stored(value: float, dtype: np.dtype[Any]) -> Any:
    """`value` in the stored type, so that float32 data meets -3.4e38 exactly, or None."""
    if dtype.kind == "f":
        return dtype.type(value)
    if dtype.kind == "b" or not float(value).is_integer():
        return None
    limits = np.iinfo(dtype)
    return dtype.type(int(value)) if limits.min <= value <= limits.max else None


def sensible_row_step(rows: int, height: int) -> int:
    """Return `rows` of a storage block if windows can follow it, else 1."""
    return rows if 1 <= rows <= min(MOST_ROW_STEP, height) else 1


def check_some_band(good: Sequence[bool], source: str) -> None:
    """Refuse a scene of which no good band is left.

    Raises
    ------
    SceneError
        Every band is bad.
    """
    if not any(good):
        raise SceneError(
            f"{source}: all {len(good)} bands are bad by the metadata's bad-band list and "
            "scene.bad_bands. Leave at least one band: shorten scene.bad_bands or correct the list."
        )
