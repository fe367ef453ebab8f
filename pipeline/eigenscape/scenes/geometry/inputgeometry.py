"""Lookups by the coordinates of every pixel (IGM): of each cell the nearest pixel within a pixel's size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS

from eigenscape.base.blocks import blocks
from eigenscape.errors import SceneError
from eigenscape.scenes.geometry.arrays import F8, lookup_shape, read_window
from eigenscape.scenes.geometry.parts import I8, PATCH, Window, to_pixels
from eigenscape.scenes.grids import cell_size
from eigenscape.scenes.types import Geolocation, Grid

_SAMPLED = 64
"""Bands of rows in which the distance of neighbouring pixels is measured."""

_MOST_CELLS = 64
"""Cells of the map for each pixel of the scene: more, and coordinates are wrong."""

_FEW_CELLS = 2**20

_FILL = -9999

_DENSEST = 3
"""Times that pixels may be denser along the track than across it, or the other way, with a cell for each."""


@dataclass(frozen=True, eq=False)
class IgmPart:
    """A scene of whose pixels coordinates are known.

    Attributes
    ----------
    geolocation
        The coordinates.
    height, width
        Of the scene.
    extent
        A north-up grid around them, with square cells of the distance of neighbouring pixels (on the ground,
        where the coordinates are degrees), of the lesser along and across the track.
    boxes : array, shape (patches, 4)
        Least x, greatest x, least y, greatest y of each patch of pixels, row by row; NaN of one without any.
    farthest
        Cells by which the centre of a cell may be apart from the nearest pixel.
    shifted
        Whether 360 degrees are added to western longitudes: the scene lies across the date line.
    """

    geolocation: Geolocation
    height: int
    width: int
    extent: Grid
    boxes: F8
    farthest: float
    shifted: bool

    def lookup(self, grid: Grid, window: Window) -> I8:
        """See `eigenscape.scenes.geometry.parts.Part.lookup`: the nearest pixel."""
        from scipy.spatial import cKDTree

        top, bottom, left, right = window
        reach = self._reach(grid)
        found = np.full((bottom - top, right - left), -1, np.int64)
        places, pixels = [], []
        for rows, columns in self._near(grid, window):
            x, y = _coordinates(self.geolocation, rows, columns, self.shifted)
            column, row = to_pixels(grid, x, y)
            inside = (column > left - reach) & (column < right + reach)
            inside &= (row > top - reach) & (row < bottom + reach)
            places.append(np.column_stack([column[inside], row[inside]]))
            at, along = np.nonzero(inside)
            pixels.append((at + rows[0]) * self.width + along + columns[0])
        points = np.concatenate(places) if places else np.empty((0, 2))
        if not len(points):
            return found
        across, down = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
        tree = cKDTree(points)
        _, nearest = tree.query(
            np.column_stack([across.ravel(), down.ravel()]),
            distance_upper_bound=reach,
        )
        named = np.append(np.concatenate(pixels), -1)[nearest]
        found[...] = named.reshape(found.shape)
        return found

    def reach(self, grid: Grid, window: Window) -> tuple[int, int]:
        """See `eigenscape.scenes.geometry.parts.Part.reach`."""
        near = [rows for rows, _ in self._near(grid, window)]
        if not near:
            return self.height, 0
        return min(rows[0] for rows in near), max(rows[1] for rows in near)

    def _reach(self, grid: Grid) -> float:
        """Return `farthest` in cells of a grid."""
        return self.farthest * cell_size(self.extent) / cell_size(grid)

    def _near(self, grid: Grid, window: Window) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Return rows and columns of windows of the scene with all pixels near a window of the map."""
        top, bottom, left, right = window
        reach = self._reach(grid)
        x0, x1, y0, y1 = self.boxes.T
        corners = [to_pixels(grid, x, y) for x in (x0, x1) for y in (y0, y1)]
        column, row = (np.array(part) for part in zip(*corners, strict=True))
        with np.errstate(invalid="ignore"):
            meets = (column.max(axis=0) > left - reach) & (row.max(axis=0) > top - reach)
            meets &= column.min(axis=0) < right + reach
            meets &= row.min(axis=0) < bottom + reach
        across = -(-self.width // PATCH)
        down, along = np.divmod(np.flatnonzero(meets), across)
        found = []
        for one in np.unique(down).tolist():
            own = along[down == one]
            rows = one * PATCH, min((one + 1) * PATCH, self.height)
            found.append(
                (rows, (int(own.min()) * PATCH, min((int(own.max()) + 1) * PATCH, self.width)))
            )
        return found


def igm_part(geolocation: Geolocation, height: int, width: int) -> IgmPart:
    """Return the part of a scene with coordinates: these are read through once.

    Raises
    ------
    SceneError
        They are not of the scene's size, or lie too far apart.
    """
    path = geolocation.x.path
    shape = lookup_shape(geolocation)
    if shape != (height, width):
        raise SceneError(
            f"{path}: has coordinates of {shape[0]} x {shape[1]} pixels (rows x columns), and the scene "
            f"{height} x {width}. Give those of this scene in scene.geometry."
        )
    crs = geolocation.crs_wkt
    if crs is None:
        raise SceneError(
            f"{path}: the coordinate system of the scene's coordinates is unknown. Name it in "
            'scene.geometry_crs, for example "EPSG:32633".'
        )
    degrees = bool(CRS.from_wkt(crs).is_geographic)
    boxes, along, across = _survey(geolocation, height, width, degrees, shifted=False)
    shifted = degrees and bool(np.nanmax(boxes[:, 1]) - np.nanmin(boxes[:, 0]) > 180)
    if shifted:
        boxes, along, across = _survey(geolocation, height, width, degrees, shifted=True)
    west, east = float(np.nanmin(boxes[:, 0])), float(np.nanmax(boxes[:, 1]))
    south, north = float(np.nanmin(boxes[:, 2])), float(np.nanmax(boxes[:, 3]))
    # No pixel is lost between cells, unless they are much denser in one direction.
    size = max(min(along, across), max(along, across) / _DENSEST)
    # Of cells that are square on the ground.
    wide = size / max(np.cos(np.radians((south + north) / 2)), 0.01) if degrees else size
    # Numbers, not yet whole: of damaged coordinates they are infinite.
    map_rows, map_columns = (north - south) / size + 1, (east - west) / float(wide) + 1
    if not map_rows * map_columns <= max(_MOST_CELLS * height * width, _FEW_CELLS):
        raise SceneError(
            f"{path}: coordinates reach from x {west:.9g} to {east:.9g} and y {south:.9g} to "
            f"{north:.9g}, which would be a map of {map_rows:,.7g} x {map_columns:,.7g} cells for "
            f"{height} x {width} pixels {size:.3g} apart. Some are fill values: mark them by the "
            "header's data ignore value, or leave them NaN."
        )
    columns, rows = round((east - west) / wide) + 1, round((north - south) / size) + 1
    transform = (float(wide), 0.0, west - float(wide) / 2, 0.0, -size, north + size / 2)
    farthest = max(1.0, 0.75 * max(along, across) / size)
    return IgmPart(
        geolocation, height, width, Grid(rows, columns, crs, transform), boxes, farthest, shifted
    )


def _coordinates(
    geolocation: Geolocation, rows: tuple[int, int], columns: tuple[int, int], shifted: bool
) -> tuple[F8, F8]:
    """Return x and y of a window of pixels, NaN where unknown."""
    x, y = (read_window(array, rows, columns) for array in (geolocation.x, geolocation.y))
    unknown = ~(np.isfinite(x) & np.isfinite(y))
    # The usual fill value, where no header marks it.
    unknown |= (x == _FILL) & (y == _FILL)
    x[unknown] = y[unknown] = np.nan
    if shifted:
        x = np.where(x < 0, x + 360, x)
    return x, y


def _survey(
    geolocation: Geolocation, height: int, width: int, degrees: bool, *, shifted: bool
) -> tuple[F8, float, float]:
    """Return the boxes of all patches, and how far neighbours are apart along and across the track."""
    bands = blocks(height, PATCH)
    measured = set(np.unique(np.linspace(0, len(bands) - 1, _SAMPLED).astype(int)).tolist())
    boxes: list[F8] = []
    along: list[NDArray[np.float64]] = []
    across: list[NDArray[np.float64]] = []
    for number, rows in enumerate(bands):
        x, y = _coordinates(geolocation, rows, (0, width), shifted)
        if degrees and (np.abs(y[np.isfinite(y)]) > 90).any():
            raise SceneError(
                f"{geolocation.y.path}: latitudes reach {np.nanmax(np.abs(y)):.9g} degrees. Name the "
                "coordinate "
                "system of the scene's coordinates in scene.geometry_crs, or mark fill values in the header."
            )
        for left, right in blocks(width, PATCH):
            here = x[:, left:right], y[:, left:right]
            boxes.append(np.concatenate([_range(part) for part in here]))
        if number in measured:
            scale = np.cos(np.radians(np.nanmean(y))) if degrees and np.isfinite(y).any() else 1.0
            along.append(np.hypot(np.diff(x, axis=0) * scale, np.diff(y, axis=0)).ravel())
            across.append(np.hypot(np.diff(x, axis=1) * scale, np.diff(y, axis=1)).ravel())
    apart = [_median(np.concatenate(part)) for part in (along, across)]
    apart = [value for value in apart if np.isfinite(value) and value > 0]
    found = np.array(boxes)
    if not np.isfinite(found).any() or not apart:
        raise SceneError(
            f"{geolocation.x.path}: no two neighbouring pixels have coordinates. Give the coordinates of "
            "this "
            'scene in scene.geometry, or "none" for maps in sensor geometry.'
        )
    return found, apart[0], apart[-1]


def _range(values: F8) -> F8:
    known = values[np.isfinite(values)]
    return np.array([known.min(), known.max()]) if len(known) else np.full(2, np.nan)


def _median(values: F8) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
