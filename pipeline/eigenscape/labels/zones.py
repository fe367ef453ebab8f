"""Zones of a scene: near pixels that a fit learned from, and far from all of them.

Neighbouring pixels are alike, so a classifier is more often right beside what it learned from than
where nobody labelled. Confidence is calibrated for each zone by itself.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.labels.training import Labelled
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array

REACH = 4
"""Pixels up to which a training pixel is near. Held-out pixels of a random tenth of the labels lie that
near to one (Indian Pines: 95 % within 3.6), those in squares of their own do not (95 % beyond 2)."""


@dataclass(frozen=True)
class Zones:
    """Which samples of a scene are near what a fit learned from, 0, and which are not, 1.

    Attributes
    ----------
    labelled
        The labelled samples and training sets.
    pixel
        Path of ``samples/pixel``.
    own
        Path of the pixels of the labelled samples.
    width
        Columns of the scene; 0 of a table, all of whose samples are in one zone.
    """

    labelled: Labelled
    pixel: str
    own: Path
    width: int

    @property
    def count(self) -> int:
        """Number of zones."""
        return 2 if self.width else 1

    def at_labels(self, number: int) -> NDArray[np.intp]:
        """Return the zones of the labelled samples, seen from a fit."""
        return self._zones(number, np.load(self.own, mmap_mode="r"))

    def of(self, block: Block) -> NDArray[np.intp]:
        """Return the zones of some samples, seen from the fit that makes the map."""
        return self._zones(0, open_array(self.pixel)[slice(*block)])

    def _zones(self, number: int, pixels: NDArray[np.int64]) -> NDArray[np.intp]:
        if not self.width:
            return np.zeros(len(pixels), np.intp)
        train = np.load(self.own, mmap_mode="r")[self.labelled.train[number]]
        return np.where(near(pixels, train, self.width), 0, 1)


def prepare_zones(labelled: Labelled, pixel: str, folder: Path, grid: Grid) -> Zones:
    """Note where the labelled samples lie.

    Parameters
    ----------
    labelled
        The labelled samples and training sets.
    pixel
        Path of ``samples/pixel``.
    folder
        Where their pixels are noted.
    grid
        Of the scene.
    """
    own = folder / "pixel.npy"
    save_array(own, open_array(pixel)[...][labelled.sample])
    return Zones(labelled, pixel, own, 0 if grid.is_table else grid.width)


def near(pixels: NDArray[np.int64], train: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Return which pixels have one of some others within `REACH`.

    Parameters
    ----------
    pixels, train : array of int
        row * width + column, ascending.
    width
        Columns of the scene.
    """
    inside = np.zeros(len(pixels), np.bool_)
    _mark_near(np.asarray(pixels), np.asarray(train), width, inside)
    return inside


@njit(cache=True, nogil=True)
def _mark_near(pixels, train, width, inside):  # type: ignore[no-untyped-def]
    count = len(train)
    for away in range(-REACH, REACH + 1):
        across = int(math.sqrt(REACH**2 - away**2))
        place = 0
        for number in range(len(pixels)):
            row, column = divmod(pixels[number], width)
            first = (row + away) * width + max(column - across, 0)
            last = (row + away) * width + min(column + across, width - 1)
            # Pixels in order take a step or two from the place before.
            if place > 0 and train[place - 1] >= first:
                place = np.searchsorted(train, first)
            while place < count and train[place] < first:
                place += 1
            if place < count and train[place] <= last:
                inside[number] = True
