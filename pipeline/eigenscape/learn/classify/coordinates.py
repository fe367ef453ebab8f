"""Classifiers that are functions of eigenmap coordinates, fitted to tiles of them.

All samples of a large group of identical ones have the coordinates of one that represents no others
(`eigenscape.learn.propagate.identical`), so that it does not matter which of them are labelled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import (
    attach_memmap,
    create_memmap,
    note_rows,
    save_array,
    write_range,
)
from eigenscape.context import Context
from eigenscape.labels.priors import training_shares
from eigenscape.labels.training import Labelled
from eigenscape.learn.method import OfEigenvectors
from eigenscape.learn.propagate.identical import Identical, find_identical
from eigenscape.spectrum.extension import count_extended
from eigenscape.store.arrays import chunk_rows, open_array
from eigenscape.store.rows import Rows

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
    nulls
        How many of them, the first ones, are null vectors: constant on a component each.
    extended
        How many of the others extend to new samples (`eigenscape.spectrum.extension`).
    values : array, shape (modes,)
        Eigenvalues.
    identical
        Groups of identical samples that have the same coordinates; None without.
    """

    path: str
    folder: Path
    labelled: Labelled
    modes: int
    nulls: int
    extended: int
    values: NDArray[np.float64]
    identical: Identical | None = None

    def read(self, block: Block) -> NDArray[np.float32]:
        """Return the coordinates of a block of samples, shape (samples, modes)."""
        vectors: NDArray[np.float32] = open_array(self.path)[slice(*block)]
        if self.identical is None:
            return vectors
        group = self.identical.groups_of(np.arange(*block))
        inside = group >= 0
        vectors[inside] = self._groups()[group[inside]]
        return vectors

    def copy(self) -> NDArray[np.float32]:
        """Map the coordinates of the labelled samples, shape (labelled, modes)."""
        shape = (len(self.labelled.sample), self.modes)
        return attach_memmap(self.folder / "labelled", shape, np.float32)

    def gather(self, block: Block) -> None:
        """Copy those of the labelled samples of a block."""
        here = self.labelled.within(block)
        if here.start < here.stop:
            found = self.read(block)[self.labelled.sample[here] - block[0]]
            write_range(self.folder / "labelled", here.start, found)

    def gather_groups(self, _: str) -> None:
        """Copy those of one sample of each group, which all of it have."""
        assert self.identical is not None, "there are groups"
        copies, vectors, target = self.identical.copies(), Rows(self.path), self._groups("r+")
        order = np.argsort(copies)
        for tile in blocks(len(copies), self._rows):
            own = order[slice(*tile)]
            target[own] = vectors.take(copies[own])
        note_rows(target)

    def _groups(self, mode: str = "r") -> NDArray[np.float32]:
        assert self.identical is not None, "there are groups"
        shape = (self.identical.count, self.modes)
        return attach_memmap(self.folder / "groups", shape, np.float32, mode)

    def tiles(self) -> list[Block]:
        """Return ranges of the labelled samples, small enough that several fit in memory."""
        return blocks(len(self.labelled.sample), self._rows)

    @property
    def _rows(self) -> int:
        return max(1, _TILE_BYTES // (8 * self.modes))


def gather(context: Context, labelled: Labelled) -> Coordinates:
    """Copy the coordinates of the labelled samples, which every fit reads."""
    spectrum = context.run.record("spectrum")
    assert spectrum is not None, "learn follows the spectrum"
    samples, modes = context.open("spectrum/vector").shape
    nulls = spectrum.summary["null_vectors"]
    values = context.open("spectrum/value")[...]
    extended = modes
    if context.job.graph.potential is None:
        extended = count_extended(values, context.job.graph.laplacian)
    identical = find_identical(context)
    if identical is not None and not identical.same_edges:
        identical = None
    coordinates = Coordinates(
        context.path("spectrum/vector"), context.workspace.folder("learn"), labelled, modes,
        nulls, extended - nulls, values, identical,
    )  # fmt: skip
    if identical is not None:
        create_memmap(coordinates.folder / "groups", (identical.count, modes), np.float32)
        work = partial(Coordinates.gather_groups, coordinates)
        context.map("groups", work, ["all"], label="identical samples")
    create_memmap(coordinates.folder / "labelled", (len(labelled.sample), modes), np.float32)
    ranges = blocks(samples, chunk_rows(samples, 4 * modes))
    work = partial(Coordinates.gather, coordinates)
    context.map("gather", work, ranges, label="labelled samples")
    return coordinates


@dataclass(frozen=True)
class ByTiles:
    """A classifier that learns from tiles of coordinates (`eigenscape.learn.method.OfEigenvectors`).

    Attributes
    ----------
    coordinates
        Of all samples.
    method
        Learns and estimates.
    """

    coordinates: Coordinates
    method: OfEigenvectors

    @property
    def bytes_per_sample(self) -> float:
        """Coordinates, as much again for what the method makes of them, groups of identical samples."""
        return 12 * self.coordinates.modes + 32

    def implied(self, number: int) -> NDArray[np.float64]:
        """See `eigenscape.learn.method.Prepared`: it follows the training samples."""
        return training_shares(self.coordinates.labelled, number)

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        X, tiles = self.coordinates.copy(), self.coordinates.tiles()
        labelled = self.coordinates.labelled
        model = self.method.learn(_Training(self.coordinates, number), labelled.count)
        save_array(self.coordinates.folder / f"{self.method.model}-{number}.npy", np.asarray(model))
        return np.concatenate([self._estimate(X[slice(*tile)], model) for tile in tiles])

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        model = np.load(self.coordinates.folder / f"{self.method.model}-{number}.npy")
        return self._estimate(self.coordinates.read(block), model)

    def _estimate(self, X: NDArray[np.float32], model: NDArray[Any]) -> NDArray[np.float32]:
        """Return the scores of samples; NaN for those outside the graph, which have no coordinates."""
        scores = np.asarray(self.method.estimate(X, model), np.float32)
        wanted = (len(X), self.coordinates.labelled.count)
        if scores.shape != wanted:
            raise TypeError(
                f"{type(self.method).__name__}.estimate returned an array of shape {scores.shape}, not "
                f"(samples, classes) = {wanted}"
            )
        scores[np.isnan(X[:, 0])] = np.nan  # A sample has all coordinates or none.
        return scores


@dataclass(frozen=True)
class _Training:
    """See `eigenscape.learn.method.TrainingTiles`."""

    coordinates: Coordinates
    number: int

    @property
    def samples(self) -> int:
        return int(self.coordinates.labelled.train[self.number].sum())

    @property
    def modes(self) -> int:
        return self.coordinates.modes

    @property
    def nulls(self) -> int:
        return self.coordinates.nulls

    @property
    def extended(self) -> int:
        return self.coordinates.extended

    @property
    def values(self) -> NDArray[np.float64]:
        return self.coordinates.values

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.intp]]]:
        labelled, X = self.coordinates.labelled, self.coordinates.copy()
        for tile in self.coordinates.tiles():
            here = slice(*tile)
            vectors = X[here]
            known = labelled.train[self.number, here] & np.isfinite(vectors[:, 0])
            yield vectors[known], labelled.classes[here][known]
