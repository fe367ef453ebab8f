"""Arrays of samples on the grid of their scene: strips of rows, and pictures of few pixels."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.progress import Reporter
from eigenscape.scenes.types import Grid

QUICKLOOK_PIXELS = 1200
"""Longest side of the quick-look's pictures."""

STRIP_BYTES = 2**25
"""Bytes of an array that are read at a time."""


class Arrays(Protocol):
    """The arrays of a run: an `eigenscape.context.Context`, or a finished run."""

    @property
    def reporter(self) -> Reporter:
        """Where progress is reported."""
        ...

    def open(self, name: str) -> Any:
        """Open a zarr array."""
        ...


class Canvas:
    """Reads arrays of samples as strips of the scene's grid.

    Parameters
    ----------
    context
        The export stage's, or what else opens the arrays of a run.
    grid
        The scene's grid.
    """

    def __init__(self, context: Arrays, grid: Grid) -> None:
        self._context = context
        self.grid = grid
        self._row_start = context.open("samples/row_start")[...]
        self._pixel = context.open("samples/pixel")

    def strips(
        self, name: str, fill: float, columns: slice | None = None, *, label: str
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
            What the progress bar says.
        """
        array = self._context.open(name)
        width = self.grid.width
        ranges = self._ranges(array)
        self._context.reporter.begin(label, len(ranges), 0)
        for start, stop in ranges:
            values, place = self.samples(array, start, stop)
            values = values if columns is None else values[:, columns].T
            strip = np.full((*values.shape[:-1], (stop - start) * width), fill, array.dtype)
            strip[..., place - start * width] = values
            yield start, strip.reshape(*values.shape[:-1], stop - start, width)
            self._context.reporter.advance()
        self._context.reporter.end()

    def samples(self, array: Any, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values and flat pixels of the samples in some rows."""
        first, last = int(self._row_start[start]), int(self._row_start[stop])
        return array[first:last], self._pixel[first:last]

    def _ranges(self, array: Any) -> list[Block]:
        """Cut the rows of the grid so that a strip of the array takes about 32 MiB."""
        pixel_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        return blocks(self.grid.height, max(1, STRIP_BYTES // (self.grid.width * pixel_bytes)))

    def thumbnail(
        self, name: str, columns: tuple[int, ...] | None = None, step: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return an array as a picture, and where it is valid.

        Every `step` rows and columns are taken: classes have no mean. By default as few as make at most
        `QUICKLOOK_PIXELS` a side.
        """
        grid = self.grid
        step = step or -(-max(grid.height, grid.width) // QUICKLOOK_PIXELS)
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
