"""Where the pixels of an array with named axes are: the coordinates of its axes, and the grid mapping.

Structure: xarray and the CF conventions have an array of coordinates named as each axis, and a grid mapping
(``spatial_ref``) with ``crs_wkt`` and ``GeoTransform``, as our own class maps have.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rasterio.crs import CRS
from rasterio.errors import CRSError

from eigenscape.scenes.formats.named.arrays import (
    Known,
    NamedArray,
    beside,
    coordinate,
    image_axes,
)
from eigenscape.scenes.formats.rasters.rasterfiles import unreadable_crs
from eigenscape.scenes.grids import even_steps, transform_of_centres
from eigenscape.scenes.types import Grid

_KILOMETRES = {"km", "kilometer", "kilometers", "kilometre", "kilometres"}
_DEGREES_EAST = {"degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee"}
"""Units of coordinates, in lower case."""

_WGS84 = 6378137.0
"""Semi-major axis in metres."""


def place_image(
    path: str, array: NamedArray, known: Known, grid: Grid
) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid of an image with its place, and what a user should know.

    Parameters
    ----------
    path
        The file, for messages.
    array
        The image.
    known
        The arrays of the file.
    grid
        Its rows and columns, and its coordinate system if that is known.

    Raises
    ------
    SceneError
        The coordinate system cannot be read.
    """
    order = image_axes(array, known)
    if array.axes is None or order is None:
        return grid, ()
    y, x = (coordinate(array, known, array.axes[place]) for place in order[:2])
    mapping = _mapping(known, array)
    crs, told_crs = (grid.crs_wkt, ()) if grid.crs_wkt else _crs(path, mapping)
    try:
        told = tuple(map(float, str(mapping["GeoTransform"]).split()))
        c, a, b, f, d, e = told
    except (KeyError, ValueError):
        a = b = c = d = e = f = 0.0
    if a and (b or d or x is None or y is None):
        return Grid(grid.height, grid.width, crs, (a, b, c, d, e, f)), told_crs
    if x is None or y is None:
        return Grid(grid.height, grid.width, crs), told_crs
    try:
        first_x, first_y = (even_steps(np.asarray(one.load(), np.float64)) for one in (x, y))
    except ValueError as error:
        return Grid(grid.height, grid.width, crs), (
            f"the place of the pixels is not known: their coordinates are {error}",
            *told_crs,
        )
    first_x, first_y = (_on_map(*first, one, crs) for first, one in ((first_x, x), (first_y, y)))
    transform = transform_of_centres(first_x, first_y, (a or None, e or None))
    return Grid(grid.height, grid.width, crs, transform), (*told_crs, *_told_rows(transform))


def _on_map(
    first: float, step: float | None, places: NamedArray, crs_wkt: str | None
) -> tuple[float, float | None]:
    """Return the first coordinate of an axis and the step in the unit of the coordinate system."""
    unit = str(places.attributes.get("units", "")).strip().lower()
    crs = None if crs_wkt is None else CRS.from_wkt(crs_wkt)
    if unit in _KILOMETRES and crs is not None and crs.is_projected:
        factor = 1000 / float(crs.linear_units_factor[1])
        return first * factor, None if step is None else step * factor
    last = first if step is None else first + step * (places.shape[0] - 1)
    if unit in _DEGREES_EAST and min(first, last) > 180:
        return first - 360, step  # as GDAL has it, and GeoTIFF
    return first, step


def _told_rows(transform: Sequence[float]) -> tuple[str, ...]:
    """Say that rows run north: so they do in pictures."""
    told = "its first row is the southernmost, in the outputs too: pictures show the south above"
    return (told,) * (transform[4] > 0)


def _mapping(known: Known, array: NamedArray) -> Mapping[str, Any]:
    """Return the attributes of the grid mapping."""
    for name in (array.attributes.get("grid_mapping"), "spatial_ref"):
        found = None if name is None else beside(known, array, str(name))
        if found is not None:
            return found.attributes
    return {}


def _crs(path: str, mapping: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the coordinate system of a grid mapping, and what a user should know of it."""
    text = mapping.get("crs_wkt") or mapping.get("spatial_ref")
    name = mapping.get("grid_mapping_name")
    if not text and name == "latitude_longitude" and _is_wgs84(mapping):
        return str(CRS.from_epsg(4326).to_wkt()), ()
    if not text:
        told = f"the coordinate system is not known: the grid mapping {name!r} has no crs_wkt"
        return None, (told,) * (name is not None)
    try:
        return str(CRS.from_wkt(str(text)).to_wkt()), ()
    except CRSError as error:
        raise unreadable_crs(path, str(error)) from error


def _is_wgs84(mapping: Mapping[str, Any]) -> bool:
    """Whether degrees of a grid mapping are of WGS 84, or of an ellipsoid that is not told."""
    try:
        return abs(float(mapping.get("semi_major_axis", _WGS84)) - _WGS84) < 1
    except (TypeError, ValueError):
        return False
