"""An array with named axes: which of them are rows, columns and bands, and what its numbers stand for."""

import base64
import binascii
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
        Type of its numbers as they are stored.
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
    """Return the order of the axes of an image, "r" rows, "c" columns, "b" bands.

    Returns
    -------
    str or None
        None where nothing says the order, or there are more than three axes.
    """
    order = image_axes(array, known)
    if order is None or len(order) > _CUBE_AXES:
        return None
    names = dict(zip(order, "rcb", strict=False))
    return "".join(names[place] for place in range(len(order)))


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
    """

    scale: float = 1.0
    offset: float = 0.0
    nodata: tuple[float, ...] = ()


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
        return Packing(
            float(attributes.get("scale_factor", 1)),
            float(attributes.get("add_offset", 0)),
            tuple(dict.fromkeys(_number(mark) for mark in marks)),
        )
    except (TypeError, ValueError) as error:
        raise SceneError(
            f"{path}: the array {array.name} has a scale_factor, add_offset, _FillValue or missing_value "
            f"that is not a number ({error}). Correct the attribute, or remove it and set scene.scale "
            "and scene.nodata."
        ) from error


def _number(mark: Any) -> float:
    """Return a fill value; xarray writes that of real numbers to zarr 3 as base64 of 8 bytes."""
    try:
        return float(mark)
    except ValueError:
        try:
            return float(struct.unpack("<d", base64.b64decode(mark, validate=True))[0])
        except (binascii.Error, struct.error):
            raise ValueError(repr(mark)) from None
