"""Compiled inner loops of the graph: transposition, union, weights, components."""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels import CANCELLED, ROUNDING, squared

WEIGHT_FLOOR = np.float32(np.finfo(np.float32).eps)
"""Smallest weight of an edge.

exp(-d^2 / t) underflows for samples far from all others, and a sample whose weights are all 0 has
degree 0: D^-1/2 is infinite there and NaNs follow. An edge is an edge: it keeps this much."""


BRIDGE_WEIGHT = np.float32(np.exp(-1))
"""Weight of a bridge between components: that of an edge as long as its ends' own scales.

From its true length it would underflow, and the eigenvalues that belong to the components would be
lost in rounding. Bridges have the length NaN."""


@njit(cache=True, nogil=True)
def count_targets(index, block_rows, counts):  # type: ignore[no-untyped-def]
    """Count the entries of lists that point into each block of `block_rows` rows."""
    for row in range(index.shape[0]):
        for slot in range(index.shape[1]):
            if index[row, slot] >= 0:
                counts[index[row, slot] // block_rows] += 1


@njit(cache=True, nogil=True)
def bucket_edges(index, distance, first, block_rows, offsets, source, target, length):  # type: ignore[no-untyped-def]
    """Sort list entries by the block that they point into: the edges seen from their other end.

    Parameters
    ----------
    index, distance : array, shape (rows, k)
    first : int
        Number of the first row.
    block_rows : int
    offsets : array, shape (blocks,)
        Where the next entry of each block goes; moved on in place.
    source, target, length : array
        Filled: ``source`` is the row that the list belongs to, ``target`` the one it names.
    """
    for row in range(index.shape[0]):
        for slot in range(index.shape[1]):
            other = index[row, slot]
            if other >= 0:
                place = offsets[other // block_rows]
                source[place] = first + row
                target[place] = other
                length[place] = distance[row, slot]
                offsets[other // block_rows] += 1


@njit(cache=True, nogil=True)
def _sort_entries(columns, lengths):  # type: ignore[no-untyped-def]
    """Sort a row's entries by column, in place."""
    if columns.shape[0] > 64:  # a hub
        order = np.argsort(columns, kind="mergesort")
        columns[:] = columns[order]
        lengths[:] = lengths[order]
        return
    for entry in range(1, columns.shape[0]):
        column, length = columns[entry], lengths[entry]
        place = entry
        while place > 0 and columns[place - 1] > column:
            columns[place] = columns[place - 1]
            lengths[place] = lengths[place - 1]
            place -= 1
        columns[place] = column
        lengths[place] = length


@njit(cache=True, nogil=True)
def union_rows(first, index, distance, source, target, length):  # type: ignore[no-untyped-def]
    """Unite own lists with the edges that arrive from elsewhere, as CSR with sorted columns.

    Parameters
    ----------
    first : int
        Number of the first row.
    index, distance : array, shape (rows, k)
        Lists of the block's own rows.
    source, target, length : array, shape (edges,)
        Edges source -> target whose target lies in the block.

    Returns
    -------
    indptr : array, shape (rows + 1,)
    columns, lengths : array, shape (entries,)
    """
    rows, k = index.shape
    room = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        for slot in range(k):
            room[row + 1] += index[row, slot] >= 0
    for edge in range(source.shape[0]):
        room[target[edge] - first + 1] += 1
    for row in range(rows):
        room[row + 1] += room[row]
    columns = np.empty(room[rows], index.dtype)
    lengths = np.empty(room[rows], np.float32)
    filled = room[:-1].copy()
    for row in range(rows):
        for slot in range(k):
            if index[row, slot] >= 0:
                columns[filled[row]] = index[row, slot]
                lengths[filled[row]] = distance[row, slot]
                filled[row] += 1
    for edge in range(source.shape[0]):
        row = target[edge] - first
        columns[filled[row]] = source[edge]
        lengths[filled[row]] = length[edge]
        filled[row] += 1
    indptr = np.zeros(rows + 1, np.int64)
    kept = 0
    for row in range(rows):
        begin, end = room[row], room[row + 1]
        _sort_entries(columns[begin:end], lengths[begin:end])
        previous = -1
        for entry in range(begin, end):
            if columns[entry] == previous:
                # Both ends name each other; their lengths may differ by rounding, and the smaller
                # one is what the other end takes too.
                lengths[kept - 1] = min(lengths[kept - 1], lengths[entry])
            else:
                previous = columns[entry]
                columns[kept] = previous
                lengths[kept] = lengths[entry]
                kept += 1
        indptr[row + 1] = kept
    return indptr, columns[:kept].copy(), lengths[:kept].copy()


@njit(cache=True, nogil=True)
def self_tuning_weights(first, indptr, columns, lengths, scale, weights):  # type: ignore[no-untyped-def]
    """exp(-d^2 / (s_i s_j)), at least `WEIGHT_FLOOR`, in place (Zelnik-Manor, Perona 2004)."""
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            if np.isnan(lengths[entry]):
                weights[entry] = BRIDGE_WEIGHT
                continue
            d = np.float64(lengths[entry])
            t = np.float64(scale[first + row]) * np.float64(scale[columns[entry]])
            weights[entry] = max(np.float32(np.exp(-d * d / t)), WEIGHT_FLOOR)


@njit(cache=True, nogil=True)
def heat_weights(lengths, bandwidth, weights):  # type: ignore[no-untyped-def]
    """exp(-d^2 / t), at least `WEIGHT_FLOOR`, in place (Belkin 2003, 2.2)."""
    for entry in range(lengths.shape[0]):
        if np.isnan(lengths[entry]):
            weights[entry] = BRIDGE_WEIGHT
            continue
        d = np.float64(lengths[entry])
        weights[entry] = max(np.float32(np.exp(-d * d / bandwidth)), WEIGHT_FLOOR)


@njit(cache=True, nogil=True)
def _root(parent, row):  # type: ignore[no-untyped-def]
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@njit(cache=True, nogil=True)
def unite(index, parent):  # type: ignore[no-untyped-def]
    """Unite the sets of each row and of all that its list names, in place.

    The root of a set is its smallest row, so that the outcome does not depend on the edges' order.
    """
    for row in range(index.shape[0]):
        for slot in range(index.shape[1]):
            if index[row, slot] < 0:
                continue
            a, b = _root(parent, row), _root(parent, index[row, slot])
            if a < b:
                parent[b] = a
            elif b < a:
                parent[a] = b


@njit(cache=True, nogil=True)
def flatten(parent):  # type: ignore[no-untyped-def]
    """Point every row at the root of its set, in place."""
    for row in range(parent.shape[0]):
        parent[row] = _root(parent, row)


@njit(cache=True, nogil=True)
def nearest_outside(  # type: ignore[no-untyped-def]
    left, right, products, norms_q, norms_c, inside_q, inside_c, first, best, nearest
):
    """For each query keep the nearest candidate of another component, in place.

    Where a product cancels, the distance is computed by differences instead.

    Parameters
    ----------
    left, right : array, shape (queries or candidates, d)
    products : array, shape (queries, candidates)
    norms_q, norms_c : array
        Squared norms.
    inside_q, inside_c : array of int
        Component of each query and candidate.
    first : int
        Number of the first candidate.
    best, nearest : array, shape (queries,)
        Squared distance and number of the nearest so far.
    """
    for a in range(products.shape[0]):
        for b in range(products.shape[1]):
            if inside_c[b] == inside_q[a]:
                continue
            norms = norms_q[a] + norms_c[b]
            d = norms - np.float32(2) * products[a, b]
            if d < CANCELLED * norms and d - ROUNDING * norms < best[a]:
                d = squared(left, a, right, b)
            if d < best[a]:
                best[a] = d
                nearest[a] = first + b
