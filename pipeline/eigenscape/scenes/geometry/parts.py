"""Lookups from cells of a map to pixels of a scene: by a GLT, by coordinates (IGM), by a transform.

All of them answer for windows of the map, which are tiles of `TILE` cells a side, so that nothing of
the size of the map or of the scene is held.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.transform import Affine

from eigenscape.base.blocks import blocks
from eigenscape.errors import SceneError
from eigenscape.scenes.geometry.arrays import F8, lookup_shape, read_window
from eigenscape.scenes.types import Geolocation, Grid

TILE = 256
"""Cells along the side of a tile."""

PATCH = 64
"""Pixels along the side of the patches by which those near a tile are found."""

Window = tuple[int, int, int, int]
"""First row and the one after the last, first column and the one after the last."""

I8 = NDArray[np.int64]


class Part(Protocol):
    """Where the pixels of one scene are on a map."""

    def lookup(self, grid: Grid, window: Window) -> I8:
        """Return the pixel (row * width + column) in each cell of a window, -1 where there is none.

        Parameters
        ----------
        grid
            The map.
        window
            Of its cells: a tile, or a part of one at an edge of the map.
        """
        ...

    def reach(self, grid: Grid, window: Window) -> tuple[int, int]:
        """Return the first row of the scene that a window can hold, and the one after the last."""
        ...

    @property
    def extent(self) -> Grid:
        """The map grid of its own."""
        ...


def centres(grid: Grid, window: Window) -> tuple[F8, F8]:
    """Return x and y of the centres of the cells of a window, each of its shape."""
    top, bottom, left, right = window
    assert grid.transform is not None, "a map has a transform"
    column, row = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
    a, b, c, d, e, f = grid.transform
    return a * column + b * row + c, d * column + e * row + f


def to_pixels(grid: Grid, x: F8, y: F8) -> tuple[F8, F8]:
    """Return column and row of coordinates on a grid, as numbers that are whole at the corners of cells."""
    assert grid.transform is not None, "a map has a transform"
    a, b, c, d, e, f, *_ = tuple(~Affine(*grid.transform))
    return a * x + b * y + c, d * x + e * y + f


@dataclass(frozen=True)
class GridPart:
    """A scene that lies on a map grid itself.

    Attributes
    ----------
    extent
        Its grid.
    """

    extent: Grid

    def lookup(self, grid: Grid, window: Window) -> I8:
        """See `Part.lookup`: of each cell the pixel that its centre lies in."""
        return _flat(self.extent, *to_pixels(self.extent, *centres(grid, window)))

    def reach(self, grid: Grid, window: Window) -> tuple[int, int]:
        """See `Part.reach`."""
        return _bounds(self.extent, grid, window)[:2]


@dataclass(frozen=True)
class GltPart:
    """A scene whose pixels a table names for each cell of a map grid (GLT).

    Attributes
    ----------
    geolocation
        The table.
    height, width
        Of the scene.
    extent
        The grid of the table.
    rows : tuple of pairs
        For each tile of the table, row by row, the first row of the scene that it names and the one after
        the last.
    """

    geolocation: Geolocation
    height: int
    width: int
    extent: Grid
    rows: tuple[tuple[int, int], ...] = ()

    def lookup(self, grid: Grid, window: Window) -> I8:
        """See `Part.lookup`: what the table names where the centre of each cell lies.

        Raises
        ------
        SceneError
            The table names pixels that the scene does not have.
        """
        column, row = to_pixels(self.extent, *centres(grid, window))
        cells = _flat(self.extent, column, row)
        found = np.full(cells.shape, -1, np.int64)
        inside = cells >= 0
        if not inside.any():
            return found
        rows, columns = np.divmod(cells[inside], self.extent.width)
        top, left = int(rows.min()), int(columns.min())
        part = self._read((top, int(rows.max()) + 1), (left, int(columns.max()) + 1))
        found[inside] = part[rows - top, columns - left]
        return found

    def reach(self, grid: Grid, window: Window) -> tuple[int, int]:
        """See `Part.reach`."""
        across = -(-self.extent.width // TILE)
        top, bottom, left, right = _bounds(self.extent, grid, window)
        low, high = self.height, 0
        for down in range(top // TILE, -(-bottom // TILE)):
            for along in range(left // TILE, -(-right // TILE)):
                one = self.rows[down * across + along]
                low, high = min(low, one[0]), max(high, one[1])
        return low, high

    def surveyed(self) -> "GltPart":
        """Return the part with the rows of the scene that each tile names: the table is read through once.

        Raises
        ------
        SceneError
            The table names no pixel at all.
        """
        rows = []
        for top, bottom in blocks(self.extent.height, TILE):
            for left, right in blocks(self.extent.width, TILE):
                found = self._read((top, bottom), (left, right))
                named = found[found >= 0] // self.width
                rows.append(
                    (int(named.min()), int(named.max()) + 1) if len(named) else (self.height, 0)
                )
        if not any(first < last for first, last in rows):
            raise SceneError(
                f"{self.geolocation.x.path}: no cell of the lookup table names a pixel, so that the map "
                'would be empty. Give the table of this scene in scene.geometry, or "none" for maps in '
                "sensor geometry."
            )
        return GltPart(self.geolocation, self.height, self.width, self.extent, tuple(rows))

    def _read(self, rows: tuple[int, int], columns: tuple[int, int]) -> I8:
        # A negative number is the nearest pixel, where the sensor saw none of the cell itself.
        x, y = (
            np.abs(np.nan_to_num(read_window(array, rows, columns)))
            for array in (self.geolocation.x, self.geolocation.y)
        )
        known = (x >= 1) & (y >= 1)
        if (x[known] > self.width).any() or (y[known] > self.height).any():
            raise SceneError(
                f"{self.geolocation.x.path}: names column {x.max():.0f} and row {y.max():.0f} of a scene of "
                f"{self.height} rows and {self.width} columns. Give the lookup table of this scene in "
                'scene.geometry, or "none" for maps in sensor geometry.'
            )
        found = (y.astype(np.int64) - 1) * self.width + x.astype(np.int64) - 1
        return np.where(known, found, -1)


def glt_part(geolocation: Geolocation, height: int, width: int) -> GltPart:
    """Return the part of a scene with a GLT.

    Raises
    ------
    SceneError
        The table has no place on a map, or is of another scene.
    """
    if geolocation.transform is None:
        raise SceneError(
            f"{geolocation.x.path}: is a lookup table without a transform, so that the position of its "
            'cells is unknown. Give one with its map info, or scene.geometry = "none".'
        )
    a, b, _, d, e, _ = geolocation.transform
    if not np.isfinite(geolocation.transform).all() or a * e == b * d:
        raise SceneError(
            f"{geolocation.x.path}: the transform of its lookup table, {geolocation.transform}, gives "
            "cells without "
            'an area. Correct its map info, or set scene.geometry = "none".'
        )
    shape = lookup_shape(geolocation)
    extent = Grid(*shape, geolocation.crs_wkt, geolocation.transform)
    return GltPart(geolocation, height, width, extent).surveyed()


def _flat(grid: Grid, column: F8, row: F8) -> I8:
    """Return the number of the pixel at places of a grid, -1 outside."""
    # Centres of cells of the same grid lie at halves: rounding does not move them to another pixel.
    rows, columns = np.floor(row), np.floor(column)
    inside = (rows >= 0) & (rows < grid.height) & (columns >= 0) & (columns < grid.width)
    flat = np.where(inside, rows, 0).astype(np.int64) * grid.width
    flat += np.where(inside, columns, 0).astype(np.int64)
    return np.where(inside, flat, -1)


def _bounds(extent: Grid, grid: Grid, window: Window) -> Window:
    """Return the window of one grid that holds a window of another one."""
    top, bottom, left, right = window
    corners = np.array([[left, top], [right, top], [left, bottom], [right, bottom]], float).T
    a, b, c, d, e, f = grid.transform  # type: ignore[misc]
    x, y = a * corners[0] + b * corners[1] + c, d * corners[0] + e * corners[1] + f
    column, row = to_pixels(extent, x, y)
    low_row, high_row = np.clip([np.floor(row.min()), np.ceil(row.max())], 0, extent.height)
    low, high = np.clip([np.floor(column.min()), np.ceil(column.max())], 0, extent.width)
    return int(low_row), int(high_row), int(low), int(high)
