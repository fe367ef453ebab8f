"""Bands of several resolutions on one grid, resampled window by window."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, Resampling
from rasterio.transform import Affine
from rasterio.vrt import WarpedVRT

from eigenscape.errors import SceneError
from eigenscape.scenes.grids import Extent, cell_size, extent, same_crs, same_size, same_transform
from eigenscape.scenes.types import Grid

_EXACT = 1e-6
"""Error in pixels of interpolated coordinates: both grids have one coordinate system, there is none."""

_ALIKE = 1e-6


def is_one_grid(grids: Sequence[Grid]) -> bool:
    """Return whether all of some grids are the same but for rounding."""
    first = grids[0]
    return all(
        same_size(first, grid) and same_crs(first, grid) and same_transform(first, grid)
        for grid in grids
    )


def common_grid(grids: Sequence[Grid], wanted: str | float, names: Sequence[str]) -> Grid:
    """Return the grid onto which bands of several resolutions are brought.

    Parameters
    ----------
    grids
        Of the bands.
    wanted
        "finest" or "coarsest" of them, or the side of a pixel in metres.
    names
        Of the bands, for messages.

    Returns
    -------
    Grid
        That of the first band of the finest or coarsest resolution; for metres over the extent of the
        first band of the finest one.

    Raises
    ------
    SceneError
        They have no common coordinate system, or do not overlap.
    """
    for grid, name in zip(grids, names, strict=True):
        if grid.transform is None or grid.crs_wkt is None:
            raise SceneError(
                f"{name}: has no coordinate reference system, so its pixels cannot be brought "
                "onto the grid of "
                f"{names[0]}. Bands without one must have the same number of rows and of columns."
            )
        if not same_crs(grids[0], grid):
            raise SceneError(
                f"{names[0]} and {name} do not share a grid: the CRS is another. Bring them into "
                "one coordinate "
                "reference system first, for example with gdalwarp -t_srs."
            )
        if not _overlap(extent(grids[0]), extent(grid)):
            raise SceneError(f"{names[0]} and {name} do not overlap. Give bands of one place.")
    sides = [cell_size(grid) for grid in grids]
    if not all(0 < side < math.inf for side in sides):
        raise SceneError(
            f"{names[0]}: a band of the scene has pixels without an area. Check its transform."
        )
    finest = grids[sides.index(min(sides))]
    if wanted == "finest":
        return finest
    if wanted == "coarsest":
        return grids[sides.index(max(sides))]
    return _of_side(finest, float(wanted), names[0])


def _of_side(grid: Grid, metres: float, name: str) -> Grid:
    assert grid.transform is not None
    assert grid.crs_wkt is not None
    crs = CRS.from_wkt(grid.crs_wkt)
    if not crs.is_projected:
        raise SceneError(
            f"scene.grid = {metres:g}: metres have no meaning in the coordinate reference system "
            f"of {name}, whose "
            'units are degrees. Set scene.grid to "finest" or "coarsest".'
        )
    a, b, c, d, e, f = grid.transform
    wide, high = math.hypot(a, d), math.hypot(b, e)
    side = metres / float(crs.linear_units_factor[1])
    width, height = (
        max(1, math.ceil(pixels * length / side - _ALIKE))
        for pixels, length in ((grid.width, wide), (grid.height, high))
    )
    across, down = side / wide, side / high
    return Grid(height, width, grid.crs_wkt, (a * across, b * down, c, d * across, e * down, f))


def note_resampled(sides: Sequence[float], onto: Grid) -> str:
    """Return onto which grid bands with pixels of some sides were brought, for `plan`."""
    listed = ", ".join(f"{side:g}" for side in sides)
    return (
        f"bands with pixels of {listed} are brought onto one grid of {cell_size(onto):g} "
        "(scene.grid): means "
        "where it is coarser, the nearest pixel where it is finer"
    )


def resampled_type(grid: Grid, onto: Grid, dtype: str) -> str:
    """Return the type of resampled numbers: means are no whole numbers."""
    if not _is_coarser(onto, grid):
        return dtype
    return "float32" if np.dtype(dtype).itemsize <= 2 or dtype == "float32" else "float64"


@contextmanager
def onto_grid(
    opened: Any, grid: Grid, onto: Grid, *, nodata: Sequence[float] = (), classes: bool = False
) -> Iterator[Any]:
    """Bring an open raster onto a grid in its coordinate system, window by window.

    Where the new pixels are larger they are the mean of what they cover, without missing pixels; of classes
    and of smaller pixels the nearest: nothing is interpolated that was not measured.

    Parameters
    ----------
    opened : rasterio.DatasetReader
        The raster.
    grid, onto
        Its grid and the new one.
    nodata
        Stored values of missing pixels, two at most; the yielded raster has the first one. Without one
        its alpha band says where the raster reaches.
    classes
        Whether the numbers are classes or bits.

    Yields
    ------
    rasterio.vrt.WarpedVRT
    """
    coarser = _is_coarser(onto, grid) and not classes
    kind = resampled_type(grid, onto, np.result_type(*opened.dtypes).name) if coarser else None
    marks = nodata if coarser else nodata[:1]
    # An alpha band has no nodata: pixels are missing where their own band is.
    warped = partial(WarpedVRT, crs=opened.crs, tolerance=_EXACT, UNIFIED_SRC_NODATA="NO")
    adds_alpha = not marks and ColorInterp.alpha not in opened.colorinterp
    with ExitStack() as stack:
        source, mark = opened, marks[0] if marks else None
        if len(marks) > 1:
            # GDAL leaves out one value: pixels of the other one get it first, on the raster's own grid. They
            # are what the copy starts with, not its nodata value: GDAL would change equal pixels a little.
            source = stack.enter_context(
                warped(
                    opened, **_place(grid), resampling=Resampling.nearest, src_nodata=marks[1],
                    nodata=None, init_dest_nodata=False, INIT_DEST=repr(marks[0]),
                )
            )  # fmt: skip
        yield stack.enter_context(
            warped(
                source, **_place(onto), src_nodata=mark, nodata=mark, add_alpha=adds_alpha,
                resampling=Resampling.average if coarser else Resampling.nearest,
                **({"dtype": kind} if kind else {}),
            )
        )  # fmt: skip


def _place(grid: Grid) -> dict[str, Any]:
    """Return size and transform of a grid as GDAL's copies take them."""
    assert grid.transform is not None
    return {"transform": Affine(*grid.transform), "height": grid.height, "width": grid.width}


def _is_coarser(one: Grid, other: Grid) -> bool:
    return cell_size(one) > cell_size(other) * (1 + _ALIKE)


def _overlap(one: Extent, other: Extent) -> bool:
    """Return whether two extents share an area, which bands that are brought together need."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
