"""Clusters in a spectral embedding: k-way spectral clustering.

::

    k-means     rows of length 1 (Ng, Jordan, Weiss 2001), k-means|| start, Lloyd's steps
    column QR   pivoted QR of a few rows, a rotation, the largest entry of each row
                (Damle, Minden, Ying 2019): no start, no iteration

Both give every row a lead, 0 ... 1: by how much its cluster is ahead of the next best one.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.errors import InputError, MissingExtraError

Array = NDArray[np.floating]
Assigned = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Cluster and lead of each row."""

_KMEANS_ROWS = 4 * ROW_TILE
"""Rows of one task. It holds their distances to all candidates of the start, 80 bytes per cluster."""
_OVERSAMPLING, _ROUNDS = 2, 5
"""Of k-means||: candidates per cluster and round, and rounds (Bahmani and others 2012, section 5)."""
_SAMPLE_ROWS = 64
"""Rows given to the pivoted QR per cluster and doubling of their number."""


def row_normalized(vectors: Array) -> Array:
    """Return rows scaled to length 1; rows that are 0 stay so, and NaN stays NaN.

    Parameters
    ----------
    vectors : array, shape (m, d)
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=vectors.copy(), where=lengths > 0))


@dataclass(frozen=True)
class Means:
    """The outcome of k-means.

    Attributes
    ----------
    centers : array, shape (count, d)
    clusters : array of int, shape (n,)
        Number of the nearest centre of every sample.
    inertia
        Sum of the squared distances to them.
    """

    centers: Array
    clusters: NDArray[np.int32]
    inertia: float


def k_means(
    vectors: Any, count: int, *, seed: int = 0, starts: int = 2, threads: int | None = None
) -> Means:
    """Return the best of several runs of k-means, by dask-ml, started by k-means||.

    Parameters
    ----------
    vectors : array or dask array, shape (n, d)
        Finite. Rows of length 1 for spectral clustering: see `row_normalized`.
    count
        Clusters.
    seed
        Of the first run; the others follow.
    starts
        Runs, of which the one with the least inertia is kept.
    threads
        Threads to work on, every core by default.

    Raises
    ------
    InputError
        More clusters than samples.
    MissingExtraError
        dask-ml is not installed.
    """
    rows = vectors.shape[0]
    if not 1 <= count <= rows:
        raise InputError(f"{count} clusters of {rows} samples: give a number from 1 to {rows}.")
    import dask

    try:
        from dask_ml.cluster import KMeans  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("dask-ml", "clusters", "k-means") from error
    # Never the caller's cluster: this may itself be a task of it.
    with dask.config.set(scheduler="threads", num_workers=threads):
        runs = _run_k_means(KMeans, vectors, count, range(seed, seed + starts))
    return min(runs, key=lambda means: means.inertia)


def _run_k_means(kind: Any, vectors: Any, count: int, seeds: Iterable[int]) -> list[Means]:
    import dask.array

    if isinstance(vectors, np.ndarray):
        vectors = dask.array.from_array(vectors)
    vectors = vectors.rechunk((_KMEANS_ROWS, -1))  # draws go by chunks
    # The number of steps of k-means|| is the logarithm of the first cost, and the tolerance is an
    # absolute one: both mean something at distances about 1 only.
    scale = float(np.sqrt((vectors.var(axis=0, dtype=np.float64)).sum().compute())) or 1.0
    scaled = vectors / vectors.dtype.type(scale)
    runs = []
    for seed in seeds:
        # By itself dask-ml draws two candidates a round, and fills up with any samples.
        model = kind(
            count, init="k-means||", oversampling_factor=_OVERSAMPLING * count,
            init_max_iter=_ROUNDS, random_state=seed, n_init=1,
        )  # fmt: skip
        with warnings.catch_warnings():
            # Of few distinct samples all become candidates, and no cost is left to draw by (0 / 0).
            warnings.filterwarnings("ignore", "invalid value encountered in divide", RuntimeWarning)
            warnings.filterwarnings("ignore", "Number of distinct clusters")
            centers = model.fit(scaled).cluster_centers_ * scale
        runs.append(_assign(vectors, centers.astype(vectors.dtype)))
    return runs


def _assign(vectors: Any, centers: Array) -> Means:
    clusters = np.empty(vectors.shape[0], np.int32)
    inertia = 0.0
    for start in range(0, len(clusters), _KMEANS_ROWS):
        block = np.asarray(vectors[start : start + _KMEANS_ROWS])
        nearest, squared = nearest_center(block, centers)
        clusters[start : start + len(block)] = nearest
        inertia += float(squared.sum(dtype=np.float64))
    return Means(centers, clusters, inertia)


def nearest_center(vectors: Array, centers: Array) -> tuple[NDArray[np.int32], Array]:
    """Return the number of the nearest centre of each row, and the squared distance.

    Parameters
    ----------
    vectors : array, shape (m, d)
    centers : array, shape (count, d)
    """
    nearest = np.empty(len(vectors), np.int32)
    squared = np.empty(len(vectors), vectors.dtype)
    norms = np.einsum("ij,ij->i", centers, centers)
    for start in range(0, len(vectors), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        nearest[here] = (norms - 2 * (vectors[here] @ centers.T)).argmin(axis=1)
        away = vectors[here] - centers[nearest[here]]
        squared[here] = np.einsum("ij,ij->i", away, away)
    return nearest, squared


def nearest_with_lead(vectors: Array, centers: Array) -> Assigned:
    """Return the nearest centre of each row, and 1 - its distance / that of the next nearest.

    That is the simplified silhouette; 1 where there is one centre only, 0 where two are as near.

    Parameters
    ----------
    vectors : array, shape (m, d)
    centers : array, shape (count, d)
    """
    nearest, squared = nearest_center(vectors, centers)
    lead = np.ones(len(vectors), np.float32)
    if len(centers) == 1:
        return nearest, lead
    norms = np.einsum("ij,ij->i", centers, centers)
    for start in range(0, len(vectors), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        tile, own = vectors[here], nearest[here]
        others = norms - 2 * (tile @ centers.T)
        others[np.arange(len(tile)), own] = np.inf
        away = tile - centers[others.argmin(axis=1)]
        second = np.einsum("ij,ij->i", away, away)
        share = np.divide(squared[here], second, out=np.ones_like(second), where=second > 0)
        lead[here] = np.clip(1 - np.sqrt(share), 0, 1)
    return nearest, lead


def cluster_qr(vectors: Any, *, seed: int = 0, most_rows: int | None = None) -> NDArray[np.int32]:
    """Return clusters by column-pivoted QR, reading the vectors in blocks.

    Parameters
    ----------
    vectors : array, memory map, zarr or dask array, shape (n, k)
        Orthonormal columns, as many as clusters are wanted, the null vector among them.
    seed
        Of the draw of rows, where not all are used.
    most_rows
        Rows that the factorisation may use; 64 k log2(k) by default, and 4096 at least. Given more
        than these, it sees as many, drawn with probabilities as their squared lengths (algorithm 2
        of the paper).

    Returns
    -------
    array of int, shape (n,)
        Of 0 ... k-1.
    """
    rows, k = vectors.shape
    most_rows = most_rows or enough_rows(k)
    blocks = [slice(start, start + ROW_TILE) for start in range(0, rows, ROW_TILE)]
    chosen = np.arange(rows)
    if rows > most_rows:
        lengths = [np.square(np.asarray(vectors[here], np.float64)).sum(axis=1) for here in blocks]
        chosen = draw_rows(np.concatenate(lengths), most_rows, np.random.default_rng(seed))
    sample = []
    for here in blocks:
        within = slice(*np.searchsorted(chosen, [here.start, here.stop]))
        sample.append(np.asarray(vectors[here])[chosen[within] - here.start])
    rotation = qr_rotation(np.concatenate(sample))
    return np.concatenate(
        [largest_entry(np.asarray(vectors[here]), rotation)[0] for here in blocks]
    )


def enough_rows(count: int) -> int:
    """Return how many rows are enough for the pivoted QR of `count` clusters."""
    return max(ROW_TILE, round(_SAMPLE_ROWS * count * math.log2(count + 1)))


def draw_rows(
    leverage: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw distinct rows with probabilities as their leverage, ascending.

    Parameters
    ----------
    leverage : array, shape (n,)
        Squared length of each row; rows of 0 are drawn last.
    size
        How many.
    rng
        Source of the draw.
    """
    # The least of exponential variables of these rates: drawing one by one, all at once.
    waiting = rng.exponential(size=len(leverage))
    waiting = np.divide(waiting, leverage, out=np.full(len(leverage), np.inf), where=leverage > 0)
    return np.sort(np.argpartition(waiting, size - 1)[:size])


def qr_rotation(sample: Array) -> NDArray[np.float64]:
    """Return the rotation after which the largest entry of a row is that of its cluster.

    Parameters
    ----------
    sample : array, shape (rows, k)
        At least k rows.

    Returns
    -------
    array, shape (k, k)
        Orthogonal: the polar factor of the k rows that the pivots choose.
    """
    columns = np.asarray(sample, np.float64).T
    pivots = scipy.linalg.qr(columns, mode="r", pivoting=True)[1][: len(columns)]
    left, _, right = np.linalg.svd(columns[:, pivots])
    return np.asarray(left @ right)


def largest_entry(vectors: Array, rotation: NDArray[np.float64]) -> Assigned:
    """Return the column of the largest entry of each rotated row, and 1 - the next largest / it.

    Signs do not count.

    Parameters
    ----------
    vectors : array, shape (m, k)
    rotation : array, shape (k, k)
        See `qr_rotation`.
    """
    clusters = np.empty(len(vectors), np.int32)
    lead = np.ones(len(vectors), np.float32)
    turn = rotation.astype(vectors.dtype)
    for start in range(0, len(vectors), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        entries = np.abs(vectors[here] @ turn)
        rows, best = np.arange(len(entries)), entries.argmax(axis=1)
        clusters[here] = best
        if len(turn) > 1:
            largest = entries[rows, best]
            entries[rows, best] = -1
            second = entries.max(axis=1)
            lead[here] = 1 - np.divide(second, largest, out=np.ones_like(second), where=largest > 0)
    return clusters, lead
