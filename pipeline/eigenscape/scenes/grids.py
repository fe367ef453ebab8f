"""Grids compared: same size, same place, extents."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.errors import RasterioError
from rasterio.transform import Affine
from rasterio.warp import transform_bounds

from eigenscape.errors import SceneError
from eigenscape.scenes.types import Grid

Extent = tuple[float, float, float, float]
"""Left, bottom, right, top."""

ROW_AXES = (
    "y", "row", "rows", "lat", "latitude", "northing",
    "line", "lines", "downtrack", "along_track", "height", "nrows", "ny",
)  # fmt: skip
COLUMN_AXES = (
    "x", "column", "columns", "lon", "longitude", "easting",
    "sample", "samples", "crosstrack", "across_track", "width", "ncols", "nx",
)  # fmt: skip
"""Names of the axes of images, in lower case."""

_UNEVEN = 1e-3
"""Share of a pixel by which coordinates may differ from an even grid."""

_LARGEST_SHIFT = 0.01
"""Pixels by which the corners of one grid may differ: headers print a limited number of digits."""


def same_size(one: Grid, other: Grid) -> bool:
    """Return whether two grids have the same number of rows and of columns."""
    return (one.height, one.width) == (other.height, other.width)


def same_crs(one: Grid, other: Grid) -> bool:
    """Return whether two grids have the same coordinate reference system, or both none."""
    if one.crs_wkt is None or other.crs_wkt is None or one.crs_wkt == other.crs_wkt:
        return one.crs_wkt == other.crs_wkt
    return bool(CRS.from_wkt(one.crs_wkt) == CRS.from_wkt(other.crs_wkt))


def same_transform(one: Grid, other: Grid) -> bool:
    """Return whether the corners of two grids of one size coincide, but for rounding."""
    if one.transform is None or other.transform is None or one.transform == other.transform:
        return one.transform == other.transform
    to_pixels = tuple(~Affine(*one.transform))[:6]
    return all(
        abs(position - expected) < _LARGEST_SHIFT
        for corner in _corners(one)
        for position, expected in zip(
            _place(to_pixels, _place(other.transform, corner)), corner, strict=True
        )
    )


def cell_size(grid: Grid) -> float:
    """Return the side of a square as large as a cell of a grid with a transform, in units of its CRS."""
    assert grid.transform is not None
    a, b, _, d, e, _ = grid.transform
    return math.sqrt(abs(a * e - b * d))


def extent(grid: Grid) -> Extent:
    """Return the extent of a grid with a transform: the box around its four corners."""
    assert grid.transform is not None
    x, y = zip(*(_place(grid.transform, corner) for corner in _corners(grid)), strict=True)
    return min(x), min(y), max(x), max(y)


def extent_in(box: Extent, crs_wkt: str, target_wkt: str) -> Extent | None:
    """Return an extent in another coordinate reference system, or None if it has no image there."""
    try:
        left, bottom, right, top = transform_bounds(
            CRS.from_wkt(crs_wkt), CRS.from_wkt(target_wkt), *box
        )
    except (RasterioError, CPLE_BaseError):
        return None
    if right < left:  # across the date line
        right += full_turn(target_wkt) or 0
    image = float(left), float(bottom), float(right), float(top)
    return image if np.isfinite(image).all() else None


def same_extent(one: Grid, other: Grid) -> bool:
    """Return whether the extents of two grids with a transform coincide, but for rounding.

    Rows and columns may run in opposite directions.
    """
    allowed = _LARGEST_SHIFT * cell_size(one)
    return bool(np.allclose(extent(one), extent(other), rtol=0, atol=allowed))


def full_turn(crs_wkt: str | None) -> float | None:
    """Return after what longitudes repeat, in units of the system (360 degrees); None if x is none."""
    crs = None if crs_wkt is None else CRS.from_wkt(crs_wkt)
    if crs is None or not crs.is_geographic:
        return None
    return round(2 * math.pi / float(crs.units_factor[1]), 6)


def turns_onto(
    scene: Grid, left: ArrayLike, right: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return by how many whole turns of longitude spans must be moved to meet a scene.

    Longitudes count from -180 or from 0, and go beyond 180 where a scene lies across the date line.

    Parameters
    ----------
    scene
        A grid with a transform.
    left, right : array-like, shape (spans,) or ()
        Least and greatest x of each span, in the coordinate system of the scene; of points both are the same.

    Returns
    -------
    first, last : array, shape (spans,) or ()
        A span meets the scene if it is moved by any whole number of turns from the first to the last. Both
        are 0 where it meets it with none, and where x is no longitude.
    turn
        Length of a turn; 0 where x is no longitude.
    """
    left, right = np.asarray(left, float), np.asarray(right, float)
    turn = full_turn(scene.crs_wkt)
    if turn is None:
        return np.zeros(left.shape), np.zeros(left.shape), 0.0
    west, _, east, _ = extent(scene)
    first, last = np.ceil((west - right) / turn), np.ceil((east - left) / turn) - 1
    meets = np.isfinite(left) & np.isfinite(right) & (first <= last)
    return np.where(meets, first, 0), np.where(meets, last, 0), turn


def turned(scene: Grid, box: Extent) -> tuple[Grid, ...]:
    """Return a scene's grid moved by the whole turns with which it meets an extent; see `turns_onto`."""
    first, last, turn = turns_onto(scene, box[0], box[2])
    return tuple(moved(scene, -turns * turn) for turns in range(int(first), int(last) + 1))


def moved(grid: Grid, offset: float) -> Grid:
    """Return a grid with a transform moved along x."""
    assert grid.transform is not None
    a, b, c, d, e, f = grid.transform
    return replace(grid, transform=(a, b, c + offset, d, e, f))


def overlap(one: Extent, other: Extent) -> bool:
    """Return whether two extents have a point in common, be it of their edges: an extent may be a point."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def format_extent(box: Extent) -> str:
    """Return an extent for people."""
    return f"x {box[0]:.10g} to {box[2]:.10g}, y {box[1]:.10g} to {box[3]:.10g}"


def even_steps(places: NDArray[np.float64]) -> tuple[float, float | None]:
    """Return the first coordinate of an axis, and the step between them, None of a single one.

    Raises
    ------
    ValueError
        They are not an even grid.
    """
    if len(places) == 1:
        return float(places[0]), None
    step = float(places[-1] - places[0]) / (len(places) - 1)
    away = np.abs(places - places[0] - step * np.arange(len(places))).max()
    if not step or not away <= _UNEVEN * abs(step):
        raise ValueError(
            f"not an even grid: they differ from one by up to {away:.3g}, with a pixel of "
            f"{abs(step):.3g}"
        )
    return float(places[0]), step


def transform_of_centres(
    x: tuple[float, float | None],
    y: tuple[float, float | None],
    told: tuple[float | None, float | None] = (None, None),
) -> tuple[float, float, float, float, float, float]:
    """Return the affine coefficients that the coordinates of pixel centres stand for.

    Parameters
    ----------
    x, y
        First coordinate and step of columns and rows; see `even_steps`.
    told
        Width and height of a pixel, for an axis of one coordinate; None where they are not known.
    """
    # One coordinate has no step: pixels are as wide as high, and rows go south.
    dx = x[1] or told[0] or abs(y[1] or told[1] or 1.0)
    dy = y[1] or told[1] or -abs(dx)
    return (dx, 0.0, x[0] - dx / 2, 0.0, dy, y[0] - dy / 2)


def check_overlap(
    path: str,
    labels: Extent | None,
    scene: Extent,
) -> None:
    """Refuse labels whose extent, in the scene's CRS, does not meet that of the scene.

    Raises
    ------
    SceneError
        They do not overlap, or the labels' extent has no image in the scene's CRS (None).
    """
    if labels is None:
        raise SceneError(
            f"{path}: the labels cannot be transformed into the scene's coordinate reference "
            "system. Check both with gdalinfo, or bring the labels onto the scene's grid."
        )
    if not overlap(labels, scene):
        raise SceneError(
            f"{path}: the labels do not overlap the scene: they reach over "
            f"{format_extent(labels)}, the scene over {format_extent(scene)} (in the scene's "
            "coordinate reference system). Give labels of this place, or correct their CRS."
        )


def _corners(grid: Grid) -> tuple[tuple[int, int], ...]:
    return (0, 0), (grid.width, 0), (0, grid.height), (grid.width, grid.height)


def _place(transform: tuple[float, ...], point: tuple[float, float]) -> tuple[float, float]:
    """Apply affine coefficients; the operators of affine changed between its versions 2 and 3."""
    a, b, c, d, e, f = transform
    x, y = point
    return a * x + b * y + c, d * x + e * y + f
