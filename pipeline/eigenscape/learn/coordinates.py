"""Classifiers that read eigenmap coordinates: class means, and least squares on eigenfunctions."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, chunk_rows, create_memmap, open_array, save_array
from eigenscape.learn import eigenfunctions
from eigenscape.learn.centroid import class_sums, nearest_class, smallest_angle, unit_means
from eigenscape.learn.labelled import Labelled
from eigenscape.stage import Block, Context, blocks

_TILE_BYTES = 2**24


@dataclass(frozen=True)
class Coordinates:
    """Eigenvectors of all samples, and beside them a copy of those of the labelled samples.

    Attributes
    ----------
    path
        Of ``spectrum/vector``.
    folder
        Where the copy lies, and where models go.
    labelled
        The labelled samples.
    modes
        Number of eigenvectors.
    constant
        Whether the first one is constant: that of a connected graph.
    """

    path: str
    folder: Path
    labelled: Labelled
    modes: int
    constant: bool

    def copy(self, mode: str = "r") -> NDArray[np.float32]:
        """Map the coordinates of the labelled samples, shape (labelled, modes)."""
        shape = (len(self.labelled.sample), self.modes)
        return attach_memmap(self.folder / "labelled", shape, np.float32, mode)

    def tiles(self) -> list[Block]:
        """Return ranges of the labelled samples that fit in memory many times over."""
        return blocks(len(self.labelled.sample), max(1, _TILE_BYTES // (8 * self.modes)))


def gather(context: Context, labelled: Labelled) -> Coordinates:
    """Copy the coordinates of the labelled samples, which every fit reads."""
    spectrum = context.run.record("spectrum")
    assert spectrum is not None, "learn follows the spectrum"
    samples, modes = context.open("spectrum/vector").shape
    coordinates = Coordinates(
        context.path("spectrum/vector"), context.workspace.folder("learn"), labelled, modes,
        spectrum.summary["null_vectors"] == 1,
    )  # fmt: skip
    create_memmap(coordinates.folder / "labelled", (len(labelled.sample), modes), np.float32)
    ranges = blocks(samples, chunk_rows(samples, 4 * modes))
    context.map("gather", partial(_gather, coordinates), ranges, label="labelled samples")
    return coordinates


def _gather(coordinates: Coordinates, block: Block) -> None:
    labelled = coordinates.labelled
    here = labelled.within(block)
    if here.start < here.stop:
        vectors = open_array(coordinates.path)[slice(*block)]
        coordinates.copy("r+")[here] = vectors[labelled.sample[here] - block[0]]


@dataclass(frozen=True)
class CentroidAngle:
    """The class whose mean has the smallest angle (Halevy 2011, 2.3).

    The constant eigenvector tells nothing apart; of a graph in several pieces the null vectors do.
    """

    coordinates: Coordinates

    @property
    def bytes_per_sample(self) -> float:
        """Coordinates, their products with the means, angles."""
        return 12 * self.coordinates.modes

    def fit(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.methods.Method`."""
        labelled, X = self.coordinates.labelled, self.coordinates.copy()
        skip = int(self.coordinates.constant)
        sums = np.zeros((1, labelled.count, X.shape[1] - skip))
        for tile in self.coordinates.tiles():
            here = slice(*tile)
            vectors = X[here, skip:]
            known = np.isfinite(vectors).all(axis=1)
            sums += class_sums(
                vectors[known], labelled.classes[here][known],
                labelled.train[number, None, here][:, known], labelled.count,
            )  # fmt: skip
        means = unit_means(sums)
        if number == 0:
            save_array(self.coordinates.folder / "means.npy", means[0])
        return np.concatenate(
            [nearest_class(X[slice(*tile), skip:], means)[0] for tile in self.coordinates.tiles()]
        )

    def classify(self, block: Block) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """See `eigenscape.learn.methods.Method`."""
        skip = int(self.coordinates.constant)
        vectors = open_array(self.coordinates.path)[slice(*block)][:, skip:]
        return smallest_angle(vectors, np.load(self.coordinates.folder / "means.npy"))


@dataclass(frozen=True)
class Eigenfunctions:
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5).

    Attributes
    ----------
    coordinates
        Of all samples; the constant one is among them.
    eigenvectors
        How many are used; "auto" is a fifth of the training samples.
    """

    coordinates: Coordinates
    eigenvectors: int | Literal["auto"]

    @property
    def bytes_per_sample(self) -> float:
        """Coordinates, scores of every class."""
        return 8 * self.coordinates.modes + 16 * self.coordinates.labelled.count

    def fit(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.methods.Method`."""
        labelled, X = self.coordinates.labelled, self.coordinates.copy()
        train = labelled.train[number]
        count = eigenfunctions.choose_count(
            self.eigenvectors, int(train.sum()), self.coordinates.modes
        )
        G = np.zeros((count, count))
        B = np.zeros((count, labelled.count))
        for tile in self.coordinates.tiles():
            here = slice(*tile)
            vectors = X[here, :count]
            known = train[here] & np.isfinite(vectors).all(axis=1)
            sums = eigenfunctions.normal_equations(
                vectors[known], labelled.classes[here][known], labelled.count
            )
            G += sums[0]
            B += sums[1]
        weights = eigenfunctions.solve(G, B)
        if number == 0:
            save_array(self.coordinates.folder / "weights.npy", weights)
        return np.concatenate(
            [
                eigenfunctions.classify(X[slice(*tile), :count], weights)[0]
                for tile in self.coordinates.tiles()
            ]
        )

    def classify(self, block: Block) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """See `eigenscape.learn.methods.Method`."""
        weights = np.load(self.coordinates.folder / "weights.npy")
        vectors = open_array(self.coordinates.path)[slice(*block)][:, : len(weights)]
        return eigenfunctions.classify(vectors, weights)
