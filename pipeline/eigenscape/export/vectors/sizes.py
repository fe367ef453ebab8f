"""Areas of pixels in square metres, where the coordinate system says what a metre is."""

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod

from eigenscape.scenes.types import Grid


def pixel_sizes(grid: Grid) -> NDArray[np.float64] | None:
    """Return the area of a pixel of each row in square metres; None without a coordinate system.

    In a projected system it is that of the map plane, without the scale of the projection. In a
    geographic one it is that of the pixel on the ellipsoid, in the middle column of each row.
    """
    if grid.crs_wkt is None or grid.transform is None:
        return None
    system, (a, b, c, d, e, f) = CRS.from_wkt(grid.crs_wkt), grid.transform
    unit = system.axis_info[0].unit_conversion_factor if system.axis_info else 1.0
    if not system.is_geographic:
        return np.full(grid.height, abs(a * e - b * d) * unit**2)
    ellipsoid, degrees = system.get_geod() or Geod(ellps="WGS84"), np.degrees(unit)
    column, rows = grid.width // 2, np.arange(grid.height)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    x = np.stack([a * (column + i) + b * (rows + j) + c for i, j in corners], axis=1) * degrees
    y = np.stack([d * (column + i) + e * (rows + j) + f for i, j in corners], axis=1) * degrees
    return np.array(
        [abs(ellipsoid.polygon_area_perimeter(*each)[0]) for each in zip(x, y, strict=True)]
    )
