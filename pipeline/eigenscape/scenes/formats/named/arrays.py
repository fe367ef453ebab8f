"""An array with named axes: which of them are rows, columns and bands, and what its numbers stand for."""

import base64
import binascii
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.grids import COLUMN_AXES, ROW_AXES

BAND_AXES = (
    "band", "bands", "nband", "nbands", "number_of_bands", "channel", "channels",
    "wavelength", "wavelengths", "wavelength_3d", "wl", "wvl", "lambda", "spectral", "spectrum",
)  # fmt: skip
"""Names of the axis of bands, in lower case."""

_AXES = {
    **dict.fromkeys(ROW_AXES, "r"), **dict.fromkeys(COLUMN_AXES, "c"), **dict.fromkeys(BAND_AXES, "b"),
}  # fmt: skip
_STANDARD_NAMES = {
    "projection_y_coordinate": "r", "grid_latitude": "r", "latitude": "r",
    "projection_x_coordinate": "c", "grid_longitude": "c", "longitude": "c",
    "radiation_wavelength": "b", "sensor_band_central_radiation_wavelength": "b",
}  # fmt: skip
_LETTERS = {"Y": "r", "X": "c"}
_CUBE_AXES = 3


@dataclass(frozen=True)
class NamedArray:
    """What a file says of one of its arrays.

    Attributes
    ----------
    name
        Its name, with the groups in which it is: "location/glt_x".
    shape
        Its shape.
    dtype
        Type of its numbers: that of the stored ones, or what the attribute ``_Unsigned`` makes of it.
    axes
        Names of its axes; None where they are not all known.
    attributes
        Numbers, texts and lists.
    load
        Returns all of it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: tuple[str, ...] | None
    attributes: Mapping[str, Any] = field(repr=False)
    load: Callable[[], NDArray[Any]] = field(repr=False)


Known = Mapping[str, NamedArray]
"""The arrays of a file by their names."""


def beside(known: Known, array: NamedArray, name: str) -> NamedArray | None:
    """Return the array of a name in the group of another array, or in the nearest group around it."""
    folder = array.name
    while folder:
        folder = folder.rpartition("/")[0]
        found = known.get(f"{folder}/{name}" if folder else name)
        if found is not None:
            return found
    return None


def image_axes(array: NamedArray, known: Known) -> tuple[int, ...] | None:
    """Return the places of rows, columns and the other axes of an image; None where nothing says them.

    An axis is known by its name or by the CF attributes of the coordinate of this name. Of three axes those
    that are left are known by the others.

    Examples
    --------
    >>> def of(*axes):
    ...     return image_axes(NamedArray("a", (2,) * len(axes), np.dtype("u1"), axes, {}, list), {})
    >>> of("band", "x", "y"), of("line", "sample", "wl"), of("a", "wavelength", "b"), of("a", "b", "c")
    ((2, 1, 0), (0, 1, 2), (0, 2, 1), None)
    """
    if array.axes is None:
        return None
    kinds = [_kind(name, beside(known, array, name)) for name in array.axes]
    if len(kinds) == _CUBE_AXES:
        kinds = _completed(kinds)
    if kinds.count("r") != 1 or kinds.count("c") != 1:
        return None
    rows, columns = kinds.index("r"), kinds.index("c")
    return (rows, columns, *(place for place in range(len(kinds)) if place not in (rows, columns)))


def _kind(name: str, coordinate: NamedArray | None) -> str:
    """Return "r" for rows, "c" for columns, "b" for bands, "" for an axis that may be any."""
    if name.lower() in _AXES:
        return _AXES[name.lower()]
    if coordinate is None or coordinate.axes != (name,):
        return ""
    told = coordinate.attributes
    letter = _LETTERS.get(str(told.get("axis", "")).upper(), "")
    return _STANDARD_NAMES.get(str(told.get("standard_name", "")), letter)


def _completed(kinds: list[str]) -> list[str]:
    """Return the kinds of three axes, with those that the others leave."""
    unknown = [place for place, kind in enumerate(kinds) if not kind]
    left = [kind for kind in "rcb" if kind not in kinds]
    # Of two that are left without bands nothing says which is which.
    if len(unknown) == len(left) and (len(left) == 1 or left == ["r", "c"]):
        kinds = list(kinds)
        for place, kind in zip(unknown, left, strict=True):
            kinds[place] = kind
    return kinds


def stored_axes(array: NamedArray, known: Known) -> str | None:
    """Return the order of the axes of an image, "r" rows, "c" columns, "b" bands, "1" another of one entry.

    Returns
    -------
    str or None
        None where nothing says the order, or there are several axes of bands.
    """
    order = image_axes(array, known)
    if order is None:
        return None
    rows, columns, *others = order
    bands = [place for place in others if array.shape[place] > 1] or others[-1:]
    if len(bands) > 1:
        return None
    names = {rows: "r", columns: "c"} | dict.fromkeys(bands, "b")
    return "".join(names.get(place, "1") for place in range(len(order)))


def is_upright(array: NamedArray, known: Known) -> bool:
    """Return whether the last two axes are rows and columns, as GDAL takes them, or nothing says it."""
    order = image_axes(array, known)
    return order is None or order[:2] == (len(order) - 2, len(order) - 1)


def rows_rise(array: NamedArray, known: Known) -> bool:
    """Return whether the coordinate of the rows rises: GDAL reads such rows in reverse."""
    order = image_axes(array, known)
    if array.axes is None or order is None:
        return False
    places = coordinate(array, known, array.axes[order[0]])
    if places is None or places.shape[0] < 2:
        return False
    values = places.load()
    return bool(values[0] < values[-1])


def coordinate(array: NamedArray, known: Known, axis: str) -> NamedArray | None:
    """Return the coordinates along an axis of an array: the list of its name."""
    found = beside(known, array, axis)
    return found if found is not None and len(found.shape) == 1 else None


@dataclass(frozen=True)
class Packing:
    """What the numbers of an array stand for by the CF conventions.

    Attributes
    ----------
    scale, offset
        value = stored * scale + offset.
    nodata
        Stored values of missing pixels.
    limits
        Least and greatest stored value that is not missing; None where the file has none.
    """

    scale: float = 1.0
    offset: float = 0.0
    nodata: tuple[float, ...] = ()
    limits: tuple[float, float] | None = None

    def told(self) -> tuple[str, ...]:
        """Say that values are missing by the limits."""
        if self.limits is None:
            return ()
        low, high = self.limits
        return (
            f"stored values outside of {low:g} to {high:g} are missing, by the valid range of the array",
        )


def meant_type(dtype: np.dtype[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the type of numbers of an array: ``_Unsigned`` says it of a format without unsigned numbers.

    Examples
    --------
    >>> meant_type(np.dtype(">i2"), {"_Unsigned": "true"}), meant_type(np.dtype("i2"), {})
    (dtype('uint16'), dtype('int16'))
    """
    kind = {"true": "u", "false": "i"}.get(str(attributes.get("_Unsigned")).lower())
    return np.dtype(f"{kind}{dtype.itemsize}") if kind and dtype.kind in "ui" else dtype


def packing_of(path: str, array: NamedArray) -> Packing:
    """Return what the numbers of an array stand for, by its attributes.

    Raises
    ------
    SceneError
        An attribute is not a number.
    """
    attributes = array.attributes
    marks = [attributes[name] for name in ("_FillValue", "missing_value") if name in attributes]
    try:
        scale = float(attributes.get("scale_factor", 1))
        offset = float(attributes.get("add_offset", 0))
        stored = (_as_meant(value, array) for mark in marks for value in _numbers(mark))
        return Packing(scale, offset, tuple(dict.fromkeys(stored)), _limits(array, scale, offset))
    except (TypeError, ValueError) as error:
        raise SceneError(
            f"{path}: the array {array.name} has a scale_factor, add_offset, _FillValue, missing_value or "
            f"valid range that is not a number ({error}). Correct the attribute, or remove it and set "
            "scene.scale and scene.nodata."
        ) from error


def _limits(array: NamedArray, scale: float, offset: float) -> tuple[float, float] | None:
    """Return the valid range of an array as it is stored."""
    attributes = array.attributes
    told = [attributes.get("valid_min", -math.inf), attributes.get("valid_max", math.inf)]
    told = [attributes.get("valid_range", told)] if "valid_range" in attributes else told
    values = [_as_meant(value, array) for each in told for value in _numbers(each)]
    if len(values) != 2:
        raise ValueError(f"valid_range has {len(values)} entries")
    if values == [-math.inf, math.inf]:
        return None
    real = any(np.asarray(each).dtype.kind == "f" and np.isfinite(each).all() for each in told)
    if real and array.dtype.kind in "ui":
        # By NetCDF's conventions real limits of packed whole numbers are of what these stand for.
        values = sorted(round((value - offset) / scale, 6) for value in values)
    return values[0], values[1]


def _as_meant(value: float, array: NamedArray) -> float:
    """Return a stored value as a number of the type that ``_Unsigned`` says."""
    kind = array.dtype.kind
    if "_Unsigned" not in array.attributes or kind not in "ui" or not math.isfinite(value):
        return value
    period = 2.0 ** (8 * array.dtype.itemsize)
    if kind == "u" and -period / 2 <= value < 0:
        return value + period
    return value - period if kind == "i" and period / 2 <= value < period else value


def _numbers(value: Any) -> list[float]:
    """Return the numbers of an attribute: one, a list, or a text of several."""
    if isinstance(value, str):
        return [_number(text) for text in value.replace(",", " ").split()]
    return [_number(one) for one in np.atleast_1d(value)]


def _number(mark: Any) -> float:
    """Return a fill value; xarray writes that of real numbers to zarr 3 as base64 of 8 bytes."""
    try:
        return float(mark)
    except ValueError:
        try:
            return float(struct.unpack("<d", base64.b64decode(mark, validate=True))[0])
        except (binascii.Error, struct.error):
            raise ValueError(repr(mark)) from None
