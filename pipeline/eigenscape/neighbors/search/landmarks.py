"""Lists among landmarks: a few samples, found by k-means, among which all samples seek neighbours.

::

    choose    one task       k-means on samples drawn at random; the sample nearest to each centre
    nearest   rank blocks    every sample against all landmarks

Eigenvectors of the landmarks' own graph are then extended to all samples by the Nystrom formula
(`eigenscape.spectrum.landmarks`). Centres of k-means are the choice of Zhang, Tsang and Kwok (2008,
*Improved Nystrom low rank approximation and error analysis*), with which Halevy 2011, section 4.4,
compares: the error is bounded by how far samples lie from them. The sample nearest to a centre
stands for it here, so that landmarks are samples of the run.
"""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.neighbors.kernels.tiles import push_tiles, square_norms
from eigenscape.neighbors.search.exhaustive import TASK_RANKS
from eigenscape.neighbors.search.layout import Layout
from eigenscape.neighbors.search.scratch import Lists, Ranked
from eigenscape.store.workspace import Workspace

DRAWN = 32
"""Samples for each landmark that k-means is given: more move its centres little."""

_ROUNDS = 10
"""Of k-means: its cost hardly falls after a few (Zhang, Tsang, Kwok 2008 stop after 5)."""


def choose_landmarks(ranked: Ranked, count: int, seed: int) -> NDArray[np.int64]:
    """Return the ranks of the samples nearest to the centres of k-means, ascending.

    Parameters
    ----------
    ranked
        Features by rank.
    count
        How many; all samples if there are no more.
    seed
        Of the samples that k-means is given, and of its start.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if count >= ranked.rows:
        return np.arange(ranked.rows)
    rng = np.random.default_rng([seed, 5])
    drawn = rng.choice(ranked.rows, min(ranked.rows, DRAWN * count), replace=False)
    drawn.sort()
    features = ranked.take(drawn)
    model = KMeans(
        count, init="random", n_init=1, max_iter=_ROUNDS, random_state=int(rng.integers(2**31))
    )
    # One thread: the order of sums, and so the answer, would follow their number.
    with threadpool_limits(1), warnings.catch_warnings():
        # Fewer different samples than centres: others take their places below.
        warnings.simplefilter("ignore")
        model.fit(_short_indices(features))
    member = model.labels_
    order = np.lexsort((_away(features, model.cluster_centers_, member), member))
    first = order[np.unique(member[order], return_index=True)[1]]
    others = rng.permutation(np.setdiff1d(np.arange(len(drawn)), first))
    chosen = np.concatenate([first, others[: count - len(first)]])
    return np.sort(drawn[chosen]).astype(np.int64)


def _away(
    features: Vectors, centres: NDArray[np.float32], member: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return the squared distance of every sample to the centre of its cluster."""
    away = np.empty(features.shape[0], np.float32)
    for start, stop in blocks(len(away), ROW_TILE):
        rows, own = features[start:stop], centres[member[start:stop]]
        if isinstance(rows, np.ndarray):
            away[start:stop] = square_norms(rows - own)
        else:
            across = np.asarray(rows.multiply(own).sum(axis=1)).ravel()
            away[start:stop] = square_norms(rows) - 2 * across + square_norms(own)
    return away


def _short_indices(vectors: Vectors) -> Vectors:
    """Return sparse rows as scikit-learn takes them: with indices of 32 bits."""
    if isinstance(vectors, np.ndarray):
        return vectors
    parts = (vectors.data, vectors.indices.astype(np.int32), vectors.indptr.astype(np.int32))
    return csr_array(parts, vectors.shape)


def landmark_lists(
    context: Context, layout: Layout, k: int, count: int, seed: int
) -> tuple[Lists, NDArray[np.int64]]:
    """Fill the lists with the nearest landmarks of every sample; return them and their ranks."""
    folder = context.workspace.folder("landmarks")
    lists = Lists(folder, layout.ranked.rows, k, layout.dtype)
    lists.create(0)
    choose = partial(_choose, layout.ranked, seed, folder)
    context.map("choose", choose, [count], label="choosing landmarks")
    ranges = blocks(lists.rows, TASK_RANKS)
    work = partial(_nearest, layout.ranked, lists)
    context.map("nearest", work, ranges, label="comparing with the landmarks")
    return lists, np.load(folder / "ranks.npy")


def _choose(ranked: Ranked, seed: int, folder: Path, count: int) -> None:
    save_array(folder / "ranks.npy", choose_landmarks(ranked, count, seed))


def _nearest(ranked: Ranked, lists: Lists, block: Block) -> None:
    start, stop = block
    ranks = np.load(lists.folder / "ranks.npy")
    landmarks = ranked.take(ranks)
    queries = np.full(stop - start, -1, np.int64)
    inside = slice(*np.searchsorted(ranks, [start, stop]))
    queries[ranks[inside] - start] = np.arange(inside.start, inside.stop)
    index = np.full((stop - start, lists.k), -1, lists.dtype)
    distance = np.full(index.shape, np.inf, np.float32)
    push_tiles(
        ranked.read(start, stop), queries, lambda first, last: landmarks[first:last],
        (0, len(ranks)), index, distance,
    )  # fmt: skip
    lists.write(0, start, ranks[index], distance)


def write_landmarks(
    workspace: Workspace, layout: Layout, ranks: NDArray[np.int64], wanted: int
) -> NDArray[np.int64]:
    """Write ``neighbors/landmark``, and return it: the landmarks' samples, ascending.

    Where as many are wanted as there are samples, the copies of others are landmarks too: then
    nothing is left to extend, and the eigenvectors are those of the whole graph.
    """
    every = wanted >= layout.samples
    landmark = np.arange(layout.samples) if every else np.sort(layout.order()[ranks])
    workspace.write_array("neighbors/landmark", landmark, whole=True, dims=("landmark",))
    return landmark
