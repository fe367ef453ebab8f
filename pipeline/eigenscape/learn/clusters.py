"""Clusters in a spectral embedding, and clusters by recursive normalised cuts.

::

    k-means        rows of length 1 (Ng, Jordan, Weiss 2001), k-means|| start, Lloyd's steps
    column QR      pivoted QR of a few rows, a rotation, the largest entry of each row
                   (Damle, Minden, Ying 2019): no start, no iteration
    recursive cut  the cheapest split first, until there are enough parts (Shi, Malik 2000)
"""

import heapq
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from eigenscape.errors import InputError, MissingExtraError
from eigenscape.learn.cuts import Split, as_block, fiedler_vector, separates, subgraph, sweep_cuts
from eigenscape.memory import ROW_TILE
from eigenscape.spectrum.operator import RowBlock

Array = NDArray[np.floating]

_KMEANS_ROWS = 4 * ROW_TILE
"""Rows of one task. It holds their distances to all candidates of the start, 80 bytes per cluster."""
_OVERSAMPLING, _ROUNDS = 2, 5
"""Of k-means||: candidates per cluster and round, and rounds (Bahmani and others 2012, section 5)."""
_SAMPLE_ROWS = 64
"""Rows that the pivoted QR sees per cluster and doubling of their number."""


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


def k_means(vectors: Any, count: int, *, seed: int = 0, starts: int = 2) -> Means:
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
    import dask.array

    try:
        from dask_ml.cluster import KMeans  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("dask-ml", "clusters", "k-means") from error
    if isinstance(vectors, np.ndarray):
        vectors = dask.array.from_array(vectors)
    vectors = vectors.rechunk((_KMEANS_ROWS, -1))  # draws go by chunks
    # The number of steps of k-means|| is the logarithm of the first cost, and the tolerance is an
    # absolute one: both mean something at distances about 1 only.
    scale = float(np.sqrt((vectors.var(axis=0, dtype=np.float64)).sum().compute())) or 1.0
    scaled = vectors / vectors.dtype.type(scale)
    runs = []
    for run in range(starts):
        # By itself dask-ml draws two candidates a round, and fills up with any samples.
        model = KMeans(
            count, init="k-means||", oversampling_factor=_OVERSAMPLING * count,
            init_max_iter=_ROUNDS, random_state=seed + run, n_init=1,
        )  # fmt: skip
        with warnings.catch_warnings():
            # Of few distinct samples all become candidates, and no cost is left to draw by (0 / 0).
            warnings.filterwarnings("ignore", "invalid value encountered in divide", RuntimeWarning)
            warnings.filterwarnings("ignore", "Number of distinct clusters")
            centers = model.fit(scaled).cluster_centers_ * scale
        runs.append(_assign(vectors, centers.astype(vectors.dtype)))
    return min(runs, key=lambda means: means.inertia)


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
    most_rows = most_rows or max(ROW_TILE, round(_SAMPLE_ROWS * k * np.log2(k + 1)))
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
    return np.concatenate([largest_entry(np.asarray(vectors[here]), rotation) for here in blocks])


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


def largest_entry(vectors: Array, rotation: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the column of the largest entry of each rotated row, its sign apart.

    Parameters
    ----------
    vectors : array, shape (m, k)
    rotation : array, shape (k, k)
        See `qr_rotation`.
    """
    rotated = vectors @ rotation.astype(vectors.dtype)
    return np.asarray(np.abs(rotated, out=rotated).argmax(axis=1), np.int32)


def recursive_cut(
    blocks: Sequence[RowBlock],
    degree: NDArray[np.float64],
    count: int,
    fiedler: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None,
    *,
    limit: float = np.inf,
    least: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Split the part that is cheapest to split, by normalised cut, until there are `count`.

    Prices are those of the part as a graph of its own (Shi, Malik 2000, 3.1): cut and volumes
    count its edges within. A part that is not connected falls apart at the price 0.

    Parameters
    ----------
    blocks
        Row blocks of W.
    degree : array, shape (n,)
        Row sums of W.
    count
        Parts to stop at.
    fiedler
        Takes the rows of a part, ascending, and returns a vector over them whose thresholds are
        tried; by default `fiedler_vector` of the part, for graphs that fit into memory.
    limit
        Ncut above which nothing is split.
    least
        Rows of the smallest part. Parts of k nearest neighbours shed single rows at the price 0: a
        thousandth of the rows or so keeps those from using up `count`.

    Returns
    -------
    clusters : array of int, shape (n,)
    prices : array, shape (splits,)
        Ncut of every split made, in the order of the splits.
    """
    clusters = np.zeros(len(degree), np.int32)
    prices: list[float] = []
    # (price, part, rows of the part, the split of them); no two parts have one number.
    waiting: list[tuple[float, int, NDArray[np.int64], Split]] = []

    def consider(part: int) -> None:
        members = np.flatnonzero(clusters == part)
        if len(members) < 2 * least:
            return
        graph = subgraph(blocks, members)
        vector = fiedler_vector(graph, least) if fiedler is None else fiedler(members)
        if np.isfinite(vector).all() and not separates(vector, least):
            return  # stays whole
        own = np.asarray(graph.sum(axis=1), np.float64)
        split = sweep_cuts([as_block(graph)], own, vector, least=least).ncut
        heapq.heappush(waiting, (split.ncut, part, members, split))

    if count > 1:
        consider(0)
    while waiting and len(prices) + 1 < count:
        price, part, members, split = heapq.heappop(waiting)
        if price > limit:
            break
        prices.append(price)
        clusters[members[split.inside]] = len(prices)
        if len(prices) + 1 < count:  # or nobody would ask for their splits
            consider(part)
            consider(len(prices))
    return clusters, np.array(prices)
