"""Baselines without eigenvectors: nearest neighbours in feature space, and along the graph."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import open_array, open_memmap, save_array
from eigenscape.learn.geodesic import geodesic_nearest, undirected
from eigenscape.learn.labelled import Labelled
from eigenscape.learn.nearest import nearest_rows, vote
from eigenscape.memory import ROW_TILE
from eigenscape.rows import Rows, Vectors
from eigenscape.spectrum.operator import RowBlock
from eigenscape.stage import Block, Context, blocks

Called = tuple[NDArray[np.intp], NDArray[np.float32]]

_PARTS = ("indptr", "indices", "data")


@dataclass(frozen=True)
class NearestNeighbors:
    """The class that most of the k nearest training samples have (Belkin 2003, 3.8).

    Attributes
    ----------
    rows
        Features of all samples.
    labelled
        The labelled samples.
    k
        How many vote; ties go to the nearer one.
    """

    rows: Rows
    labelled: Labelled
    k: int

    @property
    def bytes_per_sample(self) -> float:
        """Features, tiles of products, lists and votes."""
        return 8 * self.rows.shape[1] + 64 * self.k

    def fit(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.methods.Method`."""
        features = self.rows.take(self.labelled.sample)
        train = self.labelled.train[number]
        return np.concatenate(
            [
                self._vote(features[slice(*tile)], features[train], train)[0]
                for tile in blocks(len(train), ROW_TILE)
            ]
        )

    def classify(self, block: Block) -> Called:
        """See `eigenscape.learn.methods.Method`."""
        train = self.labelled.train[0]
        return self._vote(
            self.rows.read(*block), self.rows.take(self.labelled.sample[train]), train
        )

    def _vote(self, queries: Vectors, candidates: Vectors, train: NDArray[np.bool_]) -> Called:
        index, _ = nearest_rows(queries, candidates, self.k)
        return vote(index, self.labelled.classes[train], self.k)


@dataclass(frozen=True)
class GeodesicNearest:
    """The class of the training sample nearest along the graph (Belkin 2003, 3.3 and 3.8).

    Samples that no path joins to a training sample get the class of the nearest in feature space.

    Attributes
    ----------
    folder
        Where the graph of distances lies, and what the first fit found.
    nearest
        For samples out of reach.
    """

    folder: Path
    nearest: NearestNeighbors

    @property
    def bytes_per_sample(self) -> float:
        """As where all are out of reach."""
        return self.nearest.bytes_per_sample

    def fit(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.methods.Method`."""
        labelled = self.nearest.labelled
        train = labelled.train[number]
        indptr, indices, data = (
            np.load(self.folder / f"{part}.npy", mmap_mode="r") for part in _PARTS
        )
        classes = labelled.classes[train]
        found = geodesic_nearest(
            RowBlock(0, indptr, indices, data), labelled.sample[train], classes
        )
        called = found.classes(classes)
        if number == 0:
            save_array(self.folder / "class.npy", called)
            save_array(self.folder / "confidence.npy", found.confidence())
        own = called[labelled.sample]
        away = own < 0
        if away.any():
            own[away] = self.nearest.fit(number)[away]
        return own

    def classify(self, block: Block) -> Called:
        """See `eigenscape.learn.methods.Method`."""
        called, clear = (
            np.array(np.load(self.folder / f"{name}.npy", mmap_mode="r")[slice(*block)])
            for name in ("class", "confidence")
        )
        away = called < 0
        if away.any():
            # How clear that is cannot be told: confidence stays 0.
            called[away] = self.nearest.classify(block)[0][away]
        return called, clear


def prepare_nearest(context: Context, labelled: Labelled, k: int) -> NearestNeighbors:
    """Return the nearest neighbours in the features and the metric of a job."""
    unit = context.job.neighbors.metric == "angle"
    return NearestNeighbors(Rows(context.path("features/values"), unit=unit), labelled, k)


def prepare_geodesic(context: Context, labelled: Labelled) -> GeodesicNearest:
    """Write the graph of distances: the lists of the neighbors stage, seen from both ends."""
    method = GeodesicNearest(
        context.workspace.folder("learn"), prepare_nearest(context, labelled, 1)
    )
    paths = [context.path(f"neighbors/{name}") for name in ("index", "distance", "indptr")]
    work = partial(_write_distances, method.folder, paths)
    context.map("distances", work, ["all"], label="distances")
    return method


def _write_distances(folder: Path, paths: list[str], _: str) -> None:
    index, distance = (open_array(path)[...] for path in paths[:2])
    indptr = np.asarray(open_memmap(paths[2])) if Path(paths[2]).exists() else None
    graph = undirected(index, distance, indptr)
    for part, values in zip(_PARTS, (graph.indptr, graph.indices, graph.data), strict=True):
        save_array(folder / f"{part}.npy", values)
