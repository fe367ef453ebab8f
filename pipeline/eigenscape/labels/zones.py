"""Zones of a scene: near pixels that a fit learned from, and far from all of them.

Neighbouring pixels are alike, so a classifier is more often right beside what it learned from than
where nobody labelled. Confidence is calibrated for each zone by itself.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.labels.kernels.nearness import near
from eigenscape.labels.training import Labelled
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array


@dataclass(frozen=True)
class Zones:
    """Which samples of a scene are near what a fit learned from, 0, and which are not, 1.

    Attributes
    ----------
    labelled
        The labelled samples and training sets.
    place
        Path of the array of where samples lie.
    own
        Path of the places of the labelled samples.
    width
        Columns of the grid that places count; 0 of a table, all of whose samples are in one zone.
    """

    labelled: Labelled
    place: str
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
        return self._zones(0, open_array(self.place)[slice(*block)])

    def _zones(self, number: int, places: NDArray[np.int64]) -> NDArray[np.intp]:
        if not self.width:
            return np.zeros(len(places), np.intp)
        train = np.sort(np.load(self.own, mmap_mode="r")[self.labelled.train[number]])
        return np.where(near(places, train, self.width), 0, 1)


def prepare_zones(labelled: Labelled, place: str, folder: Path, grid: Grid) -> Zones:
    """Note where the labelled samples lie.

    Parameters
    ----------
    labelled
        The labelled samples and training sets.
    place
        Path of the array of where samples lie.
    folder
        Where their places are noted.
    grid
        In which they lie.
    """
    own = folder / "place.npy"
    save_array(own, open_array(place)[...][labelled.sample])
    return Zones(labelled, place, own, 0 if grid.is_table else grid.width)
