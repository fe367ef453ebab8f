"""Arrays of samples on the grid of their scene: strips of rows, and pictures of few pixels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.progress import Silent
from eigenscape.context import Context
from eigenscape.export.orthorectify import CELL_BYTES, open_map
from eigenscape.scenes.types import Grid

QUICKLOOK_PIXELS = 1200
"""Longest side of the quick-look's pictures."""

STRIP_BYTES = 2**25
"""Bytes of an array that are read at a time."""


class Canvas:
    """Reads arrays of samples as strips of the scene's grid, or of its map.

    Parameters
    ----------
    context
        The export stage's.
    grid
        The scene's grid.

    Attributes
    ----------
    grid
        The grid of what is read: the scene's, or of a scene in sensor geometry that of the map.
    """

    def __init__(self, context: Context, grid: Grid) -> None:
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
        array = self._context.open(name)
        width = self.grid.width
        ranges = self._ranges(array)
        reporter = self._context.reporter if label is not None else Silent()
        reporter.begin(label or "", len(ranges), 0)
        for start, stop in ranges:
            if self._map is not None:
                found = self._map.take(name, self._map.samples(start, stop), fill, columns)
                yield start, found if columns is None else np.moveaxis(found, -1, 0)
                self._context.reporter.advance()
                continue
            values, place = self.samples(array, start, stop)
            values = values if columns is None else values[:, columns].T
            strip = np.full((*values.shape[:-1], (stop - start) * width), fill, array.dtype)
            strip[..., place - start * width] = values
            yield start, strip.reshape(*values.shape[:-1], stop - start, width)
            reporter.advance()
        reporter.end()

    def samples(self, array: Any, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values and flat pixels of the samples in some rows of the scene."""
        first, last = int(self._row_start[start]), int(self._row_start[stop])
        return array[first:last], self._pixel[first:last]

    def _ranges(self, array: Any) -> list[Block]:
        """Cut the rows of the grid so that a strip of the array takes about 32 MiB."""
        pixel_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        pixel_bytes += CELL_BYTES * (self._map is not None)
        return blocks(self.grid.height, max(1, STRIP_BYTES // (self.grid.width * pixel_bytes)))

    def thumbnail(
        self, name: str, columns: tuple[int, ...] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return an array as a picture of at most `QUICKLOOK_PIXELS` a side, and where it is valid.

        Every few rows and columns are taken: classes have no mean.
        """
        if self._map is not None:
            return self._map_thumbnail(name, columns)
        grid = self.grid
        step = -(-max(grid.height, grid.width) // QUICKLOOK_PIXELS)
        shape = (-(-grid.height // step), -(-grid.width // step))
        array = self._context.open(name)
        depth = () if columns is None else (len(columns),)
        picture = np.zeros((*shape, *depth), array.dtype)
        valid = np.zeros(shape, np.bool_)
        for start, stop in self._ranges(array):
            values, place = self.samples(array, start, stop)
            row, column = place // grid.width, place % grid.width
            taken = (row % step == 0) & (column % step == 0)
            at = row[taken] // step, column[taken] // step
            picture[at] = values[taken] if columns is None else values[taken][:, list(columns)]
            valid[at] = True
        return picture, valid

    def _map_thumbnail(
        self, name: str, columns: tuple[int, ...] | None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        assert self._map is not None, "there is a map"
        grid, array = self.grid, self._context.open(name)
        step = -(-max(grid.height, grid.width) // QUICKLOOK_PIXELS)
        shape = (-(-grid.height // step), -(-grid.width // step))
        depth = () if columns is None else (len(columns),)
        picture = np.zeros((*shape, *depth), array.dtype)
        valid = np.zeros(shape, np.bool_)
        for start, stop in self._ranges(array):
            samples = self._map.samples(start, stop, step)
            first = -(-start // step)
            here = slice(first, first + len(samples))
            valid[here] = samples >= 0
            if columns is None:
                picture[here] = self._map.take(name, samples, 0)
                continue
            for number, column in enumerate(columns):
                one = self._map.take(name, samples, 0, slice(column, column + 1))
                picture[here, :, number] = one[..., 0]
        return picture, valid
