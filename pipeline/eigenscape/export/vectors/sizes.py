"""Areas of pixels in square metres."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod, Transformer

from eigenscape.scenes.pixelareas import plane_area, quadrangle_areas
from eigenscape.scenes.types import Grid

Sizes: TypeAlias = Callable[[int, int], NDArray[np.float64]]
"""Sizes of the pixels of the rows from the first number up to the second: shape (rows, width), or (rows, 1)
where all of a row are alike."""

_ALIKE = 1e-3
"""Difference from the area in the middle column up to which the pixels of a row are taken for alike."""

_PIXELS = 2**16
"""Pixels whose areas are computed at a time: a few hundred bytes each."""


def pixel_sizes(grid: Grid) -> Sizes | None:
    """Return what gives the areas of pixels in square metres; None where no unit of length is known.

    In a projected system it is that of the map plane, without the scale of the projection. In a
    geographic one, and in a projection that changes areas by more than 1 % (that of web maps doubles them at
    45 degrees), it is that of the pixel on the ellipsoid: for each row where rows run along a parallel, else
    for each pixel. Pixels off the ellipsoid have none.
    """
    if grid.crs_wkt is None or grid.transform is None:
        return None
    if (plane := plane_area(grid)) is not None:
        return lambda start, stop: np.full((stop - start, 1), plane)
    system, (a, b, c, d, e, f) = CRS.from_wkt(grid.crs_wkt), grid.transform
    if system.geodetic_crs is None:
        return None
    degrees = Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
    unit = np.degrees(system.geodetic_crs.axis_info[0].unit_conversion_factor)
    ellipsoid = system.get_geod() or Geod(ellps="WGS84")

    def areas(rows: tuple[int, int], columns: tuple[int, int]) -> NDArray[np.float64]:
        i, j = np.meshgrid(*(np.arange(start, stop + 1) for start, stop in (columns, rows)))
        longitude, latitude = degrees.transform(a * i + b * j + c, d * i + e * j + f)
        off = ~(np.isfinite(longitude) & np.isfinite(latitude))
        longitude[off] = latitude[off] = np.nan
        found = quadrangle_areas(unit * longitude, unit * latitude, ellipsoid.a, ellipsoid.f)
        return np.nan_to_num(found, nan=0.0)

    first, middle, last = (
        areas((0, grid.height), (column, column + 1))
        for column in (0, grid.width // 2, grid.width - 1)
    )
    if all((np.abs(each - middle) <= _ALIKE * middle).all() for each in (first, last)):
        return lambda start, stop: middle[start:stop]
    step = max(1, _PIXELS // grid.width)

    def by_pixel(start: int, stop: int) -> NDArray[np.float64]:
        sizes = np.empty((stop - start, grid.width))
        for row in range(start, stop, step):
            end = min(row + step, stop)
            sizes[row - start : end - start] = areas((row, end), (0, grid.width))
        return sizes

    return by_pixel
