"""Areas of pixels in square metres, where the coordinate system says what a metre is."""

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod, Transformer

from eigenscape.scenes.types import Grid

_EQUAL_AREA = 0.01
"""Difference from the ellipsoid that a map plane may have: that of UTM is 0.2 % at most."""


def pixel_sizes(grid: Grid) -> NDArray[np.float64] | None:
    """Return the area of a pixel of each row in square metres; None without a coordinate system.

    In a projected system it is that of the map plane, without the scale of the projection. In a
    geographic one, and in a projection that changes areas by more than 1 % (that of web maps doubles them at
    45 degrees), it is that of the pixel on the ellipsoid, in the middle column of each row.
    """
    if grid.crs_wkt is None or grid.transform is None:
        return None
    system, (a, b, c, d, e, f) = CRS.from_wkt(grid.crs_wkt), grid.transform
    unit = system.axis_info[0].unit_conversion_factor if system.axis_info else 1.0
    column, rows = grid.width // 2, np.arange(grid.height)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    x = np.stack([a * (column + i) + b * (rows + j) + c for i, j in corners], axis=1)
    y = np.stack([d * (column + i) + e * (rows + j) + f for i, j in corners], axis=1)
    if system.is_geographic:
        return _on_ellipsoid(system, x * np.degrees(unit), y * np.degrees(unit))
    plane = np.full(grid.height, abs(a * e - b * d) * unit**2)
    if system.geodetic_crs is None:
        return plane
    degrees = Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
    ground = _on_ellipsoid(system, *degrees.transform(x, y))
    return plane if (abs(plane - ground) <= _EQUAL_AREA * ground).all() else ground


def _on_ellipsoid(
    system: CRS, longitude: NDArray[np.float64], latitude: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the areas of polygons by their corners in degrees, shape (polygons, corners)."""
    ellipsoid = system.get_geod() or Geod(ellps="WGS84")
    pairs = zip(longitude, latitude, strict=True)
    return np.array([abs(ellipsoid.polygon_area_perimeter(*each)[0]) for each in pairs])
