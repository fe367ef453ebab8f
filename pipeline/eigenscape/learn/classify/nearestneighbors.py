"""Nearest neighbours: baselines in feature space and along the graph, and classes of new samples."""

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, save_array, write_range
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.labels.priors import training_shares
from eigenscape.labels.training import Labelled
from eigenscape.learn.classify.kernels.nearest import nearest_rows, vote
from eigenscape.learn.classify.shortlists import Shortlists, plan_shortlists
from eigenscape.learn.decide.kernels.decisions import evened
from eigenscape.learn.propagate.identical import Identical, find_identical
from eigenscape.learn.propagate.kernels.geodesic import geodesic_nearest, undirected
from eigenscape.scenes.writing import as_pandas
from eigenscape.spectrum.extension import band_numbers, finite_rows, read_rows
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.trained import Trained
from eigenscape.store.arrays import open_array, open_memmap
from eigenscape.store.manifest import HasPath, path_of
from eigenscape.store.rows import Rows

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
    folder
        Where a copy of their features lies.
    k
        How many vote; ties go to the nearer one.
    lists
        Neighbours of the labelled samples that serve every fit; None where each searches its own.
    """

    rows: Rows
    labelled: Labelled
    folder: Path
    k: int
    lists: Shortlists | None

    @property
    def bytes_per_sample(self) -> float:
        """Features, tiles of products, lists and votes."""
        return 8 * self.rows.shape[1] + 64 * self.k + 16 * self.labelled.count

    def implied(self, number: int) -> NDArray[np.float64]:
        """See `eigenscape.learn.method.Prepared`: the commoner a class, the more often it is near."""
        return training_shares(self.labelled, number)

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        features = self.features()
        found = []
        for tile in blocks(len(self.labelled.sample), ROW_TILE):
            queries = features[slice(*tile)]
            if self.lists is None:
                found.append(self._vote(queries, number))
                continue
            train, classes = self.labelled.train[number], self.labelled.classes
            votes, short = self.lists.vote(tile, train, classes, self.labelled.count)
            if len(short):
                votes[short] = self._vote(queries[short], number)
            found.append(votes)
        return np.concatenate(found)

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        return self._vote(self.rows.read(*block), number)

    def _vote(self, queries: Vectors, number: int) -> NDArray[np.float32]:
        features, members = self.features(), np.flatnonzero(self.labelled.train[number])
        index, _ = nearest_rows(
            queries, lambda start, stop: features[members[start:stop]], len(members), self.k
        )
        return vote(index, self.labelled.classes[members], self.k, self.labelled.count)

    def features(self) -> Vectors:
        """Map the features of the labelled samples."""
        if not self.rows.sparse:
            shape = (len(self.labelled.sample), self.rows.shape[1])
            return attach_memmap(self.folder / "features", shape, np.float32)
        indptr, indices, data = (
            np.load(self.folder / f"features-{part}.npy", mmap_mode="r") for part in _PARTS
        )
        return scipy.sparse.csr_array(
            (data, indices, indptr), shape=(len(indptr) - 1, self.rows.shape[1])
        )

    def search_lists(self, block: Block) -> None:
        """Search the lists of a range of labelled samples."""
        assert self.lists is not None, "there are lists to search"
        self.lists.search(self.features(), block)

    def copy_features(self, block: Block) -> None:
        """Copy the features of the labelled samples in a block; all of them if they are sparse."""
        if self.rows.sparse:
            found = scipy.sparse.csr_array(self.rows.take(self.labelled.sample))
            for part in _PARTS:
                save_array(self.folder / f"features-{part}.npy", getattr(found, part))
            return
        here = self.labelled.within(block)
        if here.start < here.stop:
            found = self.rows.read(*block)[self.labelled.sample[here] - block[0]]
            write_range(self.folder / "features", here.start, np.asarray(found, np.float32))


@dataclass(frozen=True)
class GeodesicNearest:
    """The class of the training sample nearest along the graph (Belkin 2003, 3.3 and 3.8).

    Samples that no path joins to a training sample get the class of the nearest in feature space.

    Attributes
    ----------
    folder
        Folder of the graph of distances, and of the results of the fits.
    nearest
        For samples out of reach.
    whole
        Whether all fits keep their scores of all samples, not the first alone.
    identical
        Groups of identical samples, each of which has the class that most of its labels have; None without.
    """

    folder: Path
    nearest: NearestNeighbors
    whole: bool
    identical: Identical | None = None

    @property
    def bytes_per_sample(self) -> float:
        """As where all are out of reach."""
        return self.nearest.bytes_per_sample

    def implied(self, number: int) -> None:
        """See `eigenscape.learn.method.Prepared`: a job with a prior is refused."""
        del number

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        labelled = self.nearest.labelled
        indptr, indices, data = (
            np.load(self.folder / f"{part}.npy", mmap_mode="r") for part in _PARTS
        )
        sample, classes = self._seeds(number)
        found = geodesic_nearest(RowBlock(0, indptr, indices, data), sample, classes)
        scores = found.scores(classes, labelled.count)
        if number == 0 or self.whole:
            save_array(self.folder / f"geodesic-{number}.npy", scores)
        own = scores[labelled.sample]
        away = np.isnan(own[:, 0])
        if away.any():
            own[away] = evened(self.nearest.fit(number)[away])
        return own

    def _seeds(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Return the samples that paths lead to, and their classes."""
        labelled = self.nearest.labelled
        train = labelled.train[number]
        if self.identical is None:
            return labelled.sample[train], labelled.classes[train]
        # Identical samples are as near to each other as to themselves: the first label would count alone.
        pool = self.identical.pool(labelled.sample)
        train = np.array(train)
        train[pool.position] = False
        counts = pool.counts(labelled, number)
        known = counts.any(axis=1)
        sample = np.append(labelled.sample[train], pool.representative[known])
        classes = np.append(labelled.classes[train], counts[known].argmax(axis=1))
        order = np.argsort(sample)
        return sample[order], classes[order]

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        stored = np.load(self.folder / f"geodesic-{number}.npy", mmap_mode="r")
        scores = np.array(stored[slice(*block)])
        away = np.isnan(scores[:, 0])
        if away.any():
            scores[away] = evened(self.nearest.scores(number, block)[away])
        return scores


def prepare_nearest(
    context: Context, labelled: Labelled, k: int, *, shared: bool = True
) -> NearestNeighbors:
    """Return the nearest neighbours in the features and the metric of a job.

    `shared` lets one search serve all fits where that pays: not for samples out of reach, which are few.
    """
    rows = Rows(context.path("features/values"), unit=context.job.neighbors.metric == "angle")
    folder = context.workspace.folder("learn")
    lists = plan_shortlists(folder / "lists", labelled.train, k) if shared else None
    method = NearestNeighbors(rows, labelled, folder, k, lists)
    samples, columns = rows.shape
    ranges = [(0, samples)]
    if not rows.sparse:
        ranges = blocks(samples, rows.step)
        shape = (len(labelled.sample), columns)
        create_memmap(method.folder / "features", shape, np.float32)
    work = partial(NearestNeighbors.copy_features, method)
    context.map("features", work, ranges, label="labelled samples")
    if lists is not None:
        lists.create()
        tiles = blocks(len(labelled.sample), ROW_TILE)
        search = partial(NearestNeighbors.search_lists, method)
        context.map("lists", search, tiles, label="nearest labelled samples")
    return method


def prepare_geodesic(context: Context, labelled: Labelled) -> GeodesicNearest:
    """Write the graph of distances: the lists of the neighbors stage, seen from both ends."""
    nearest = prepare_nearest(context, labelled, 1, shared=False)
    method = GeodesicNearest(
        nearest.folder, nearest, context.job.learn.smoothing > 0, find_identical(context)
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


def classify_new(
    run: str | Path | HasPath, samples: Any, *, k: int = 3
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Classify new samples by their neighbours among the classified samples of a run (Belkin 2003, 3.8.4).

    All samples with a class in the run are training samples, also those that were not labelled. So a k-NN
    classifier, which knows nothing of manifolds, profits from a method that does.

    Parameters
    ----------
    run
        Run directory whose class map is finished, or the result of `eigenscape.run`.
    samples : array, sparse array, data frame or list, shape (m, bands)
        As in `eigenscape.extend`; read in blocks. Samples with masked values are not finite.
    k
        Number of nearest neighbours that vote, at least 1; ties go to the class of the nearer one.

    Returns
    -------
    classes : array, shape (m,), uint16
        Class numbers of the source; 0 for samples that are not finite.
    share : array, shape (m,), float32
        Share of the votes for this class, from 0 to 1; 0 without a class.

    Raises
    ------
    InputError
        The run has no class map or has spatial edges, the number of bands is wrong, a band is missing by
        its name, or `k` is no number of neighbours.

    Notes
    -----
    Each is compared with all samples of the run, exactly: the time is proportional to the product of
    both numbers. A block of 4096 new samples, and a chunk of the run's, are in memory at a time.

    Examples
    --------
    >>> import eigenscape
    >>> scene = {"path": "scene.tif", "labels": "scene_labels.tif"}
    >>> job = eigenscape.parse_job({"preset": "halevy-2011", "scene": scene})
    >>> path = eigenscape.run(job).path
    >>> classes, share = eigenscape.classify_new(path, eigenscape.open_run(path)["values"][:5])
    >>> classes.shape, float(share.max())
    ((5,), 1.0)
    """
    if not isinstance(k, Integral) or k < 1:
        raise InputError(
            f"k = {k!r}: a whole number of neighbours votes, at least one. Give 1 or more."
        )
    samples = as_pandas(samples, "samples")
    if isinstance(samples, np.ma.MaskedArray):
        samples = samples.astype(np.float64).filled(np.nan)
    elif not hasattr(samples, "shape"):
        samples = np.asarray(samples)
    trained = Trained.open(path_of(run))
    path = trained.run.array_path("labels/class")
    if not (path / "zarr.json").exists():
        raise InputError(
            f"{run}: has no class map. Give the directory of a run with labels whose stage learn is finished."
        )
    called = np.asarray(open_array(path)[...])
    numbers, place = np.unique(called, return_inverse=True)
    # Samples without a class do not vote: they would take the places of voters, so they are not candidates.
    candidates = np.flatnonzero(called)
    classes, count = place[candidates], len(numbers)
    found = np.zeros(samples.shape[0], np.uint16)
    share = np.zeros(samples.shape[0], np.float32)
    bands = band_numbers(trained.bands, samples)

    def read(start: int, stop: int) -> Vectors:
        first, last = int(candidates[start]), int(candidates[stop - 1]) + 1
        return trained.rows.read(first, last)[candidates[start:stop] - first]

    for start, stop in blocks(samples.shape[0], ROW_TILE):
        given = read_rows(samples, start, stop, bands, trained.origin)
        finite = finite_rows(given)
        if not len(finite):
            continue
        index, _ = nearest_rows(trained.project(given[finite]), read, len(candidates), k)
        votes = vote(index, classes, int(k), count)
        best = votes.argmax(axis=1)
        known = np.isfinite(votes[:, 0])
        here = start + finite[known]
        found[here] = numbers[best[known]]
        # Whole votes: what decides ties is less than one.
        cast = (index[known, :k] >= 0).sum(axis=1)
        share[here] = np.round(votes[known, best[known]] * cast) / cast
    return found, share
