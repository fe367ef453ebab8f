"""Areas of pixels on a map, and whether they are those on the ground."""

import re

import numpy as np
from numpy.typing import NDArray
from rasterio._err import CPLE_BaseError
from rasterio.crs import CRS
from rasterio.warp import transform

from eigenscape.scenes.types import Grid

_EQUAL_AREA = 0.01
"""Difference from the ellipsoid that a map plane may have: that of UTM is 0.2 % at most in its zone."""

_PARTS = 4
"""Parts of the height and the width at whose ends areas are compared."""

_ELLIPSOID = re.compile(r'(?:SPHEROID|ELLIPSOID)\["[^"]*",([^,\]]+),([^,\]]+)')
"""Semi-major axis and inverse flattening in WKT; of a sphere the latter is 0."""


def plane_area(grid: Grid) -> float | None:
    """Return the area of a pixel on the map plane in square metres, where it is the area on the ground.

    Returns
    -------
    float or None
        None without a coordinate system, in a geographic one, without a unit of length, and where the
        projection changes areas by more than 1 % at a quarter, half or three quarters of the scene, on its
        edges or in its corners. A local system, which knows no ellipsoid, is taken at its word.
    """
    if grid.crs_wkt is None or grid.transform is None:
        return None
    crs = CRS.from_wkt(grid.crs_wkt)
    unit, metres = crs.units_factor
    if crs.is_geographic or unit == "unknown":
        return None
    a, b, _, d, e, _ = grid.transform
    plane = float(abs(a * e - b * d) * metres**2)
    ellipsoid = _ELLIPSOID.search(crs.wkt)
    if ellipsoid is None:
        return plane
    axis, inverse = map(float, ellipsoid.groups())
    flattening = 1 / inverse if inverse else 0.0
    ground = [
        _ground_area(grid, crs, (axis, flattening), (row, column))
        for row in {part * (grid.height - 1) // _PARTS for part in range(_PARTS + 1)}
        for column in {part * (grid.width - 1) // _PARTS for part in range(_PARTS + 1)}
    ]
    # A scene of a whole hemisphere has corners beside it, and edges.
    known = [area for area in ground if area is not None]
    kept = all(abs(plane - area) <= _EQUAL_AREA * area for area in known)
    return plane if known and kept else None


def _ground_area(
    grid: Grid, crs: CRS, ellipsoid: tuple[float, float], pixel: tuple[int, int]
) -> float | None:
    """Return the area of a pixel (row, column) on the ellipsoid (axis, flattening); None off the map."""
    assert grid.transform is not None
    (a, b, c, d, e, f), (axis, flattening) = grid.transform, ellipsoid
    corners = [(pixel[1] + i, pixel[0] + j) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
    x, y = zip(*((a * i + b * j + c, d * i + e * j + f) for i, j in corners), strict=True)
    # On the ellipsoid of the map itself, which is not always that of the Earth.
    degrees = CRS.from_dict(proj="longlat", a=axis, b=axis * (1 - flattening))
    try:
        longitude, latitude = np.reshape(transform(crs, degrees, x, y), (2, 2, 2))
    except CPLE_BaseError:
        return None
    # Not every projection fails there.
    if not np.isfinite([longitude, latitude]).all():
        return None
    return float(quadrangle_areas(longitude, latitude, axis, flattening)[0, 0])


def quadrangle_areas(
    longitude: NDArray[np.floating], latitude: NDArray[np.floating], axis: float, flattening: float
) -> NDArray[np.float64]:
    """Return the areas of pixels on an ellipsoid.

    They are half the cross products of the diagonals in space, so that neither poles nor the antimeridian
    matter. Those of pixels of a degree are off by less than 1 part in 10,000.

    Parameters
    ----------
    longitude, latitude
        Degrees of the corners, shape (rows + 1, columns + 1).
    axis, flattening
        Semi-major axis, whose unit is that of lengths, and flattening of the ellipsoid.

    Returns
    -------
    array, shape (rows, columns)
    """
    longitude, latitude = np.radians(longitude), np.radians(latitude)
    squeezed = (1 - flattening) ** 2
    normal = axis / np.sqrt(np.cos(latitude) ** 2 + squeezed * np.sin(latitude) ** 2)
    place = normal * np.stack([
        np.cos(latitude) * np.cos(longitude),
        np.cos(latitude) * np.sin(longitude),
        squeezed * np.sin(latitude),
    ])  # fmt: skip
    falling = place[:, 1:, 1:] - place[:, :-1, :-1]
    rising = place[:, 1:, :-1] - place[:, :-1, 1:]
    return np.asarray(np.linalg.norm(np.cross(falling, rising, axis=0), axis=0) / 2)
