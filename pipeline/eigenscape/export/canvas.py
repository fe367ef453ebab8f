"""Arrays of samples on the grid of their scene: strips of rows, and pictures of few pixels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.process.progress import Silent
from eigenscape.export.arrays import Arrays
from eigenscape.export.orthorectify import CELL_BYTES, open_map
from eigenscape.scenes.types import Grid

QUICKLOOK_PIXELS = 1200
"""Longest side of the quick-look's pictures."""

STRIP_BYTES = 2**25
"""Bytes of a strip: of an array, and of the pixels of its samples."""

_PLACE_BYTES = 32
"""Of a sample of a strip: its pixel, row and column, and one of them in between."""


class Canvas:
    """Reads arrays of samples as strips of the scene's grid, or of its map.

    Parameters
    ----------
    context
        The export stage's, or what else opens the arrays of a run.
    grid
        The scene's grid.

    Attributes
    ----------
    grid
        The grid of what is read: the scene's, or of a scene in sensor geometry that of the map.
    """

    def __init__(self, context: Arrays, grid: Grid) -> None:
        self._context = context
        self._map = open_map(context)
        self.grid = grid if self._map is None else self._map.grid
        self._row_start = context.open("samples/row_start")[...]
        self._pixel = context.open("samples/pixel")

    def strips(
        self, name: str, fill: float, columns: slice | None = None, *, label: str | None
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield first row and values, (rows, width) or (columns, rows, width), of each strip.

        Parameters
        ----------
        name
            Array of samples.
        fill
            Value where there is no sample.
        columns
            Which columns of a two-dimensional array.
        label
            What the progress bar says; None for arrays that are read beside another one.
        """
        ranges = self._ranges(self._context.open(name))
        reporter = self._context.reporter if label is not None else Silent()
        reporter.begin(label or "", len(ranges), 0)
        for start, stop in ranges:
            yield start, self.strip(name, start, stop, fill, columns)
            reporter.advance()
        reporter.end()

    def strip(
        self, name: str, start: int, stop: int, fill: float, columns: slice | None = None
    ) -> NDArray[Any]:
        """Return rows start ... stop-1 of an array, as `strips` does."""
        if self._map is not None:
            found = self._map.take(name, self._map.samples(start, stop), fill, columns)
            return found if columns is None else np.moveaxis(found, -1, 0)
        array, width = self._context.open(name), self.grid.width
        values, place = self.samples(array, start, stop)
        values = values if columns is None else values[:, columns].T
        strip = np.full((*values.shape[:-1], (stop - start) * width), fill, array.dtype)
        strip[..., place - start * width] = values
        return strip.reshape(*values.shape[:-1], stop - start, width)

    def samples(self, array: Any, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values and flat pixels of the samples in some rows of the scene."""
        first, last = int(self._row_start[start]), int(self._row_start[stop])
        return array[first:last], self._pixel[first:last]

    def _ranges(self, array: Any) -> list[Block]:
        """Cut the rows of the grid so that a strip of the array takes about 32 MiB with its places."""
        pixel_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        pixel_bytes += _PLACE_BYTES if self._map is None else CELL_BYTES
        return blocks(self.grid.height, max(1, STRIP_BYTES // (self.grid.width * pixel_bytes)))

    def thumbnail(
        self, name: str, columns: tuple[int, ...] | None = None, step: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return an array as a picture, and where it is valid.

        Every `step` rows and columns are taken: classes have no mean. By default as few as make at most
        `QUICKLOOK_PIXELS` a side.
        """
        grid, array = self.grid, self._context.open(name)
        step = step or -(-max(grid.height, grid.width) // QUICKLOOK_PIXELS)
        shape = (-(-grid.height // step), -(-grid.width // step))
        depth = () if columns is None else (len(columns),)
        picture = np.zeros((*shape, *depth), array.dtype)
        valid = np.zeros(shape, np.bool_)
        ranges = self._ranges(array)
        if step * grid.width >= array.chunks[0] and self._map is None:
            # Rows that are taken lie in chunks of their own: nothing else is read.
            ranges = [(row, row + 1) for row in range(0, grid.height, step)]
        for start, stop in ranges:
            if self._map is not None:
                samples = self._map.samples(start, stop, step)
                first = -(-start // step)
                here = slice(first, first + len(samples))
                valid[here] = samples >= 0
                picture[here] = self._map.take(
                    name, samples, 0, None if columns is None else list(columns)
                )
                continue
            values, place = self.samples(array, start, stop)
            row, column = place // grid.width, place % grid.width
            taken = (row % step == 0) & (column % step == 0)
            at = row[taken] // step, column[taken] // step
            picture[at] = values[taken] if columns is None else values[taken][:, list(columns)]
            valid[at] = True
        return picture, valid

    def spots(self, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return flat cells in a regular grid, those that hold a sample, and the sample of each.

        Parameters
        ----------
        step
            Every how many rows and columns, the first in the middle of the first step.
        """
        grid = self.grid
        rows = np.arange(min(step // 2, grid.height - 1), grid.height, step)
        columns = np.arange(min(step // 2, grid.width - 1), grid.width, step)
        cells, samples = [], []
        for row in rows.tolist():
            if self._map is not None:
                found = self._map.samples(row, row + 1)[0, columns]
            else:
                first, last = int(self._row_start[row]), int(self._row_start[row + 1])
                found = np.full(grid.width, -1)
                found[self._pixel[first:last] - row * grid.width] = np.arange(first, last)
                found = found[columns]
            there = found >= 0
            cells.append(row * grid.width + columns[there])
            samples.append(found[there])
        return np.concatenate(cells), np.concatenate(samples)
