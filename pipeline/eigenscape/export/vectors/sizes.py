"""Areas of the pixels of each row in square metres."""

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Geod, Transformer

from eigenscape.scenes.pixelareas import plane_area
from eigenscape.scenes.types import Grid


def pixel_sizes(grid: Grid) -> NDArray[np.float64] | None:
    """Return the area of a pixel of each row in square metres; None where no unit of length is known.

    In a projected system it is that of the map plane, without the scale of the projection. In a
    geographic one, and in a projection that changes areas by more than 1 % (that of web maps doubles them at
    45 degrees), it is that of the pixel on the ellipsoid, in the middle column of each row.
    """
    if grid.crs_wkt is None or grid.transform is None:
        return None
    if (plane := plane_area(grid)) is not None:
        return np.full(grid.height, plane)
    system, (a, b, c, d, e, f) = CRS.from_wkt(grid.crs_wkt), grid.transform
    if system.geodetic_crs is None:
        return None
    column, rows = grid.width // 2, np.arange(grid.height)
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    x = np.stack([a * (column + i) + b * (rows + j) + c for i, j in corners], axis=1)
    y = np.stack([d * (column + i) + e * (rows + j) + f for i, j in corners], axis=1)
    degrees = Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
    unit = np.degrees(system.geodetic_crs.axis_info[0].unit_conversion_factor)
    longitude, latitude = (unit * values for values in degrees.transform(x, y))
    ellipsoid = system.get_geod() or Geod(ellps="WGS84")
    pairs = zip(longitude, latitude, strict=True)
    return np.array([abs(ellipsoid.polygon_area_perimeter(*each)[0]) for each in pairs])
