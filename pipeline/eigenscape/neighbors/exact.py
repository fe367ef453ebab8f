"""Neighbour lists by brute force in tiles, and by NN-descent in memory."""

import warnings
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import open_array
from eigenscape.neighbors import kernels
from eigenscape.stage import Block, Context, blocks

_QUERY_ROWS = 1024
_CANDIDATE_ROWS = 2048


def read_rows(values: str, samples: NDArray[np.int64]) -> NDArray[np.float32]:
    """Gather the features of some samples, given in ascending order, block by block."""
    stored = open_array(values)
    picked = np.empty((len(samples), stored.shape[1]), np.float32)
    for start, stop in blocks(stored.shape[0], stored.chunks[0]):
        first, last = np.searchsorted(samples, [start, stop])
        if last > first:
            picked[first:last] = stored[start:stop][samples[first:last] - start]
    return picked


def brute_force(
    values: str,
    queries: NDArray[np.float32],
    own: NDArray[np.int64],
    k: int,
    candidates: list[Block],
    dtype: type[np.signedinteger],
) -> tuple[NDArray[np.signedinteger], NDArray[np.float32]]:
    """Return the k nearest of all candidates for each query: nothing larger than a tile is made.

    Parameters
    ----------
    values
        Path of the features.
    queries : array, shape (q, d)
    own : array, shape (q,)
        Number of each query, which it is never offered.
    k
        Neighbours per query.
    candidates
        Ranges of samples to search.
    dtype
        Integer type of the lists.

    Returns
    -------
    index, distance : array, shape (q, k)
        Numbers and squared distances, sorted by (distance, number).
    """
    index = np.full((len(queries), k), -1, dtype)
    distance = np.full((len(queries), k), np.inf, np.float32)
    stored = open_array(values)
    for start, stop in candidates:
        block = stored[start:stop]
        _push_block(queries, own, block, start, index, distance)
    return index, distance


def _push_block(
    queries: NDArray[np.float32],
    own: NDArray[np.int64],
    block: NDArray[np.float32],
    first: int,
    index: NDArray[np.signedinteger],
    distance: NDArray[np.float32],
) -> None:
    """Offer a block of candidates to every query, then make the distances exact.

    A product tells near neighbours apart only down to 1e-7 of the squared norms, so a few
    candidates more than wanted are kept and compared by differences.
    """
    k = index.shape[1]
    spare = min(len(block), k + max(4, k // 4))
    rows = np.arange(len(queries))
    found = np.full((len(queries), spare), -1, index.dtype)
    squared = np.full((len(queries), spare), np.inf, np.float32)
    for tile in range(0, len(block), _CANDIDATE_ROWS):
        near = block[tile : tile + _CANDIDATE_ROWS]
        centre = near.mean(axis=0, dtype=np.float64).astype(np.float32)
        near = near - centre
        norms = np.einsum("ij,ij->i", near, near)
        numbers = np.arange(tile, tile + len(near))
        for start in range(0, len(queries), _QUERY_ROWS):
            here = slice(start, start + _QUERY_ROWS)
            query = queries[here] - centre
            query_norms = np.einsum("ij,ij->i", query, query)
            kernels.push_products(
                queries, block, query @ near.T, query_norms, norms,
                rows[here], own[here] - first, numbers, found, squared,
            )  # fmt: skip
    numbers = np.arange(first, first + len(block))
    kernels.exact_distances(block, queries, numbers, found, squared)
    kernels.merge_lists(rows, found, squared, index, distance)


def exact_lists(context: Context, index: str, distance: str) -> None:
    """Fill the lists by comparing every sample with every other."""
    rows, width = context.open("features/values").shape
    k = context.job.neighbors.k
    step = open_array(index).chunks[0]
    # A chunk of queries is one task; it streams all candidates past itself.
    candidates = max(_CANDIDATE_ROWS, context.task_bytes // (16 * width))
    work = partial(
        _exact_block, context.path("features/values"), index, distance, k,
        blocks(rows, min(candidates, 8 * _CANDIDATE_ROWS)),
    )  # fmt: skip
    context.map("exact", work, blocks(rows, step), label="comparing all pairs")


def _exact_block(
    values: str, index: str, distance: str, k: int, candidates: list[Block], block: Block
) -> None:
    start, stop = block
    queries = open_array(values)[start:stop]
    lists = open_array(index)
    found, squared = brute_force(
        values, queries, np.arange(start, stop), k, candidates, lists.dtype.type
    )
    lists[start:stop] = found
    open_array(distance)[start:stop] = np.sqrt(squared)


def nndescent_lists(context: Context, index: str, distance: str) -> None:
    """Fill the lists by NN-descent (pynndescent), which holds all features in memory."""
    work = partial(
        _nndescent, context.path("features/values"), index, distance,
        context.job.neighbors.k, min(context.executor.width, numba.config.NUMBA_NUM_THREADS),
    )  # fmt: skip
    context.map("nn-descent", work, ["all"], label="NN-descent")


def _nndescent(values: str, index: str, distance: str, k: int, threads: int, _: Any) -> None:
    from pynndescent import NNDescent

    features = open_array(values)[...]
    rows = np.arange(len(features))
    # One more than wanted, since each list begins with the sample itself (or its duplicates).
    with warnings.catch_warnings():
        # It finds too few neighbours for some samples at times; they are dealt with below.
        warnings.filterwarnings("ignore", "Failed to correctly find n_neighbors")
        search = NNDescent(
            features, n_neighbors=min(k + 1, len(features)), random_state=0, n_jobs=threads
        )
        near, _distances = search.neighbor_graph
    target = open_array(index)
    found = np.full((len(features), k), -1, target.dtype)
    squared = np.full((len(features), k), np.inf, np.float32)
    own = near == rows[:, None]
    # A sample that is missing from its own list (duplicates) gives up its last entry instead.
    own[~own.any(axis=1), -1] = True
    found[:, : near.shape[1] - 1] = near[~own].reshape(len(features), -1)
    kernels.exact_distances(features, features, rows, found, squared)
    short = np.flatnonzero((found < 0).any(axis=1))
    if len(short):
        tiles = blocks(len(features), 8 * _CANDIDATE_ROWS)
        found[short], squared[short] = brute_force(
            values, features[short], short, k, tiles, target.dtype.type
        )
    target[...] = found
    open_array(distance)[...] = np.sqrt(squared)
