"""A scene whose pixels lie on a map that is not its own grid: which pixels are in which cells of the map."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.errors import SceneError
from eigenscape.scenes.geometry.parts import I8, TILE, Part, to_pixels
from eigenscape.scenes.grids import extent, full_turn, moved, same_crs
from eigenscape.scenes.types import Grid

MOST_CELLS = 2**36
"""Cells of a map."""


@dataclass(frozen=True)
class Line:
    """One scene of those that lie one below the other in a scene.

    Attributes
    ----------
    part
        Where its pixels are.
    first, width
        Its first row in the scene, and how many columns it has.
    offset
        What is added to the longitudes of the part: whole turns, by which it lies next to the first line.
    """

    part: Part
    first: int
    width: int
    offset: float = 0.0


@dataclass(frozen=True)
class Located:
    """Where the pixels of a scene are on a map. Small, so that every task can carry it.

    Attributes
    ----------
    grid
        The map.
    lines
        The scene, or those that it is made of.
    width
        Columns of the scene that they make.
    """

    grid: Grid
    lines: tuple[Line, ...]
    width: int

    def rows(self, line: int, start: int, stop: int) -> I8:
        """Return the pixel of the scene in each cell of rows start ... stop-1 of the map, -1 for none.

        Parameters
        ----------
        line
            Which of the lines.
        start, stop
            First row of the map and the one after the last.
        """
        found = np.empty((stop - start, self.grid.width), np.int64)
        # Tiles are whole whatever is asked for: a cell meets the same pixels then.
        for top in range(start // TILE * TILE, stop, TILE):
            bottom = min(top + TILE, self.grid.height)
            first, last = max(start, top), min(stop, bottom)
            for left, right in blocks(self.grid.width, TILE):
                tile = self.tile(line, (top, bottom, left, right))
                found[first - start : last - start, left:right] = tile[first - top : last - top]
        return found

    def tiles(self, line: int, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the tiles of the map in which pixels of rows start ... stop-1 of the scene may lie."""
        one = self.lines[line]
        own = moved(self.grid, -one.offset)
        for top, bottom in blocks(self.grid.height, TILE):
            for left, right in blocks(self.grid.width, TILE):
                low, high = one.part.reach(own, (top, bottom, left, right))
                if low + one.first < stop and high + one.first > start:
                    yield top, bottom, left, right

    def tile(self, line: int, window: tuple[int, int, int, int]) -> I8:
        """Return the pixel of the scene in each cell of a tile, -1 for none."""
        one = self.lines[line]
        own = one.part.lookup(moved(self.grid, -one.offset), window)
        row, column = np.divmod(own, one.width)
        return np.where(own < 0, -1, (row + one.first) * self.width + column)


def unite(lines: list[Line], names: list[str], width: int) -> Located:
    """Return where the pixels of several lines are on a map that holds all of them.

    The map has the cells of the first line's; all its own cells are among them. Lines on both sides of the
    date line lie side by side: longitudes of those on the other side are beyond 180, or below -180.

    Parameters
    ----------
    lines, names
        The lines, and what messages call them.
    width
        Columns of the scene that they make.

    Raises
    ------
    SceneError
        They are in different coordinate systems, or so far apart that the map is too large.
    """
    first = lines[0].part.extent
    low: NDArray[np.float64] = np.zeros(2)
    high = np.array([first.width, first.height], float)
    placed = []
    for line, name in zip(lines, names, strict=True):
        grid = line.part.extent
        if not same_crs(first, grid):
            raise SceneError(
                f"{names[0]} and {name} are in different coordinate systems. Bring them into one, for "
                "example with gdalwarp."
            )
        offset = _turns_between(first, grid)
        placed.append(replace(line, offset=offset))
        a, b, c, d, e, f = moved(grid, offset).transform  # type: ignore[misc]
        corners = [(0, 0), (grid.width, 0), (0, grid.height), (grid.width, grid.height)]
        x, y = (
            np.array([a * col + b * row + c for col, row in corners], float),
            np.array([d * col + e * row + f for col, row in corners], float),
        )
        place = np.array(to_pixels(first, x, y))
        low, high = np.minimum(low, place.min(axis=1)), np.maximum(high, place.max(axis=1))
    # Rounding of transforms makes no cell more.
    left, top = np.floor(low + 1e-6).astype(int).tolist()
    right, bottom = np.ceil(high - 1e-6).astype(int).tolist()
    if (right - left) * (bottom - top) > MOST_CELLS:
        raise SceneError(
            f"scene.path: a map of all lines would have {bottom - top:,} x {right - left:,} cells; "
            f"{MOST_CELLS:,} in all "
            "can be worked on. Give lines that lie near each other."
        )
    a, b, c, d, e, f = first.transform  # type: ignore[misc]
    transform = (a, b, a * left + b * top + c, d, e, d * left + e * top + f)
    return Located(Grid(bottom - top, right - left, first.crs_wkt, transform), tuple(placed), width)


def _turns_between(first: Grid, other: Grid) -> float:
    """Return by what longitudes of a grid are moved to lie as near those of the first as they can.

    It is a whole number of turns, 0 where x is no longitude.
    """
    turn = full_turn(first.crs_wkt)
    if turn is None:
        return 0.0
    (west, _, east, _), (left, _, right, _) = extent(first), extent(other)
    return turn * round((west + east - left - right) / (2 * turn))
