"""Features on disk before they are filtered: what tasks read a window of the scene at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import attach_memmap, create_memmap, write_range
from eigenscape.features.spatial.kernels.windows import fill_window, take_samples

F4 = NDArray[np.float32]

WINDOW = (32, 256)
"""Rows and columns of pixels that a filter works on at a time, without those around them."""


@dataclass(frozen=True)
class Unfiltered:
    """Features of all samples and their pixels, in mapped files. Small, so that every task can carry it.

    Attributes
    ----------
    folder
        Of the files ``values`` and ``pixels``.
    samples, features
        How many.
    height, width
        Rows and columns of the scene.
    """

    folder: Path
    samples: int
    features: int
    height: int
    width: int

    def create(self) -> None:
        """Reserve the files."""
        create_memmap(self.folder / "values", (self.samples, self.features), np.float32)
        create_memmap(self.folder / "pixels", (self.samples,), np.int64)

    def write(self, start: int, values: F4, pixels: NDArray[np.int64]) -> None:
        """Write features and flat pixels of some samples, the first of which has the number `start`."""
        write_range(self.folder / "values", start, values)
        write_range(self.folder / "pixels", start, pixels)

    def values(self) -> F4:
        """Map the features, shape (samples, features)."""
        return _map(self.folder / "values", (self.samples, self.features), np.float32)

    def pixels(self) -> NDArray[np.int64]:
        """Map the flat pixel of each sample, ascending."""
        return _map(self.folder / "pixels", (self.samples,), np.int64)

    def filter_windows(
        self,
        block: Block,
        halo: int,
        work: Callable[[F4, NDArray[np.bool_], F4], None],
        filtered: F4,
    ) -> None:
        """Filter the samples of a block, window by window.

        Parameters
        ----------
        block
            Which samples.
        halo
            Pixels around a window on each side that its filter reads.
        work
            Called with a window (features, rows, columns) that has the halo, which of its pixels are
            valid, and where to write the filtered inner pixels.
        filtered : array, shape (rows of the block, features)
            Written.
        """
        values, pixels = self.values(), self.pixels()
        own = pixels[slice(*block)]
        for top, left, rows, columns in self._windows(own):
            first, last = ((top - halo) * self.width, (top + rows + halo) * self.width)
            near = slice(*np.searchsorted(pixels, [first, last]))
            shape = (rows + 2 * halo, columns + 2 * halo)
            window, valid = np.empty((self.features, *shape), np.float32), np.empty(shape, np.bool_)
            fill_window(
                values[near], pixels[near], self.width, top - halo, left - halo, window, valid
            )
            inner = np.empty((self.features, rows, columns), np.float32)
            work(window, valid, inner)
            take_samples(inner, own, self.width, top, left, filtered)

    def _windows(self, own: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
        """Yield first row and column, and numbers of rows and columns, of windows that hold pixels."""
        high, wide = WINDOW
        top, end = int(own[0]) // self.width, int(own[-1]) // self.width + 1
        while top < end:
            rows = min(high, end - top)
            here = own[slice(*np.searchsorted(own, [top * self.width, (top + rows) * self.width]))]
            for part in np.unique(here % self.width // wide):
                left = int(part) * wide
                yield top, left, rows, min(wide, self.width - left)
            # Rows without a pixel, of which a scene that is mostly masked has many, are passed over.
            after = np.searchsorted(own, (top + rows) * self.width)
            top = int(own[after]) // self.width if after < len(own) else end


def window_bytes(features: int, halo: int) -> int:
    """Return the memory that the windows of a task take: one with its halo, and what is filtered."""
    high, wide = WINDOW
    around = (high + 2 * halo) * (wide + 2 * halo)
    return 4 * features * (around + high * wide) + around


def _map(path: Path, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    # A plain view: compiled code takes no other type for a mapped array.
    return attach_memmap(path, shape, dtype).view(np.ndarray)
