"""Compiled inner loops on neighbour lists. A list is sorted by (distance, index).

Lists are two arrays of shape (rows, k): neighbour numbers, -1 where there is none yet, and squared
distances, inf there. Features are an array of shape (rows, d) or the parts of sparse rows.
"""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels.distances import squared

ROUNDING = np.float32(2**-18)
"""Share of |x|^2 + |y|^2 by which rounding can change |x|^2 - 2 x y + |y|^2: 32 units in the last
place, several times what blocked products of some thousand columns come to."""

LANES = 64
"""Interleaved groups of candidates. A constant, or the loop over them would not be vectorised."""


@njit(cache=True, nogil=True)
def insert(index, distance, row, candidate, d):  # type: ignore[no-untyped-def]
    """Put a candidate into a sorted list if it is nearer than the last and not there yet."""
    k = index.shape[1]
    worst = distance[row, k - 1]
    if d > worst or (d == worst and candidate >= index[row, k - 1] and index[row, k - 1] >= 0):
        return
    for slot in range(k):
        if index[row, slot] == candidate:
            return
    slot = k - 1
    while slot > 0 and (
        distance[row, slot - 1] > d
        or (distance[row, slot - 1] == d and index[row, slot - 1] > candidate)
    ):
        distance[row, slot] = distance[row, slot - 1]
        index[row, slot] = index[row, slot - 1]
        slot -= 1
    distance[row, slot] = d
    index[row, slot] = candidate


@njit(cache=True, nogil=True, fastmath={"nsz", "nnan"})
def _fold(products, norms, norm, line, low):  # type: ignore[no-untyped-def]
    """Write squared distances to `line`, and the least of each lane of them."""
    count = products.shape[0]
    whole = count // LANES * LANES
    for lane in range(LANES):
        low[lane] = np.float32(np.inf)
    for first in range(0, whole, LANES):
        for lane in range(LANES):
            d = norm + norms[first + lane] - np.float32(2) * products[first + lane]
            line[first + lane] = d
            low[lane] = d if d < low[lane] else low[lane]
    for b in range(whole, count):
        d = norm + norms[b] - np.float32(2) * products[b]
        line[b] = d
        low[b - whole] = d if d < low[b - whole] else low[b - whole]


@njit(cache=True, nogil=True, fastmath={"nsz", "nnan"})
def _count_below(low, limit):  # type: ignore[no-untyped-def]
    count = np.int32(0)
    for lane in range(LANES):
        count += np.int32(low[lane] <= limit)
    return count


@njit(cache=True, nogil=True)
def _bound_rank(low, rank):  # type: ignore[no-untyped-def]
    """Return a number that more than `rank` of the lanes' minima do not exceed, and few more do not.

    By bisection, which counts all lanes at once, rather than by sorting them.
    """
    below, above = low[0], low[0]
    for lane in range(LANES):
        below, above = min(below, low[lane]), max(above, low[lane])
    for _ in range(10):
        middle = np.float32(0.5) * (below + above)
        if _count_below(low, middle) > rank:
            above = middle
        else:
            below = middle
    return above


@njit(cache=True, nogil=True)
def push_products(  # type: ignore[no-untyped-def]
    left, right, products, norms_q, norms_c, queries, candidates, rows, index, distance
):
    """Offer every candidate of a tile to the list of every query, from their inner products.

    The products only select the candidates that are worth a look. The least of every lane of candidates
    is cheap to find, and the k-th of them bounds the k-th distance, so that few pass; those are
    compared by differences. So nothing is lost to cancellation, however near the neighbours.

    Parameters
    ----------
    left, right
        Features of the queries and of the candidates.
    products : array, shape (queries, candidates)
        Inner products; squared distances are norms_q + norms_c - 2 products.
    norms_q, norms_c : array
        Squared norms.
    queries, candidates : array of int
        Number of each; a query is never offered itself.
    rows : array of int
        Row of the lists of each query.
    index, distance : array, shape (rows, k)
        The lists, changed in place.
    """
    k = index.shape[1]
    count = products.shape[1]
    # The bound takes k + 1 lanes, since the query itself may be the least of one.
    bounded = 4 * (k + 1) <= 3 * LANES and count >= 2 * LANES
    line = np.empty(count, np.float32)
    low = np.empty(LANES, np.float32)
    passed = np.empty(count + 1, np.int64)
    largest = np.float32(0)
    for b in range(count):
        largest = max(largest, norms_c[b])
    lower = norms_c * (np.float32(1) - ROUNDING)
    for a in range(products.shape[0]):
        norm = norms_q[a] * (np.float32(1) - ROUNDING)
        _fold(products[a], lower, norm, line, low)
        row = rows[a]
        limit = distance[row, k - 1]
        inside = _count_below(low, limit)
        if inside == 0:
            continue
        if bounded and inside > k:
            slack = np.float32(2) * ROUNDING * (norms_q[a] + largest)
            limit = min(limit, max(_bound_rank(low, k), np.float32(0)) + slack)
        hits = 0
        for lane in range(LANES):
            if low[lane] <= limit:
                # Without a branch in it: which entries pass cannot be predicted.
                for b in range(lane, count, LANES):
                    passed[hits] = b
                    hits += line[b] <= limit
        for hit in range(hits):
            b = passed[hit]
            if line[b] <= limit and candidates[b] != queries[a]:
                d = squared(left, a, right, b)
                if d <= limit:
                    insert(index, distance, row, candidates[b], d)
                    limit = min(limit, distance[row, k - 1])


@njit(cache=True, nogil=True)
def within_products(left, right, products, norms_q, norms_c, queries, candidates, limit, found):  # type: ignore[no-untyped-def]
    """Find the pairs of a tile that are no farther apart than a radius.

    Parameters
    ----------
    left, right, products, norms_q, norms_c, queries, candidates
        As in `push_products`.
    limit : float32
        Squared radius.
    found : tuple of arrays (query, candidate, squared distance)
        Filled while there is room; a query is given by its position in the tile.

    Returns
    -------
    int
        How many pairs there are.
    """
    positions, numbers, lengths = found
    pairs = 0
    for a in range(products.shape[0]):
        for b in range(products.shape[1]):
            norms = norms_q[a] + norms_c[b]
            near = norms - np.float32(2) * products[a, b] - ROUNDING * norms
            if near <= limit and candidates[b] != queries[a]:
                d = squared(left, a, right, b)
                if d <= limit:
                    if pairs < positions.shape[0]:
                        positions[pairs] = a
                        numbers[pairs] = candidates[b]
                        lengths[pairs] = d
                    pairs += 1
    return pairs


@njit(cache=True, nogil=True)
def offer_lists(features, offered, index, distance):  # type: ignore[no-untyped-def]
    """Offer the neighbours in row r of `offered` (-1 = none) to list r, of row r of the features."""
    for row in range(offered.shape[0]):
        for slot in range(offered.shape[1]):
            candidate = offered[row, slot]
            if candidate >= 0 and candidate != row:
                d = squared(features, row, features, candidate)
                insert(index, distance, row, candidate, d)


@njit(cache=True, nogil=True)
def merge_lists(rows, more_index, more_distance, index, distance):  # type: ignore[no-untyped-def]
    """Merge list r of the second pair into list rows[r] of the first, in place."""
    for r in range(rows.shape[0]):
        for slot in range(more_index.shape[1]):
            if more_index[r, slot] >= 0:
                insert(index, distance, rows[r], more_index[r, slot], more_distance[r, slot])


@njit(cache=True, nogil=True)
def refine_lists(features, start, index, distance, fresh, out_index, out_distance):  # type: ignore[no-untyped-def]
    """One round of neighbour-of-neighbour search for as many rows as the new lists have.

    Reads the lists of the round before and writes new ones, so that the result does not depend on
    the order of the rows. A way i -> j -> l was tried before if neither of its steps is fresh
    (Dong, Moses, Li 2011).

    Parameters
    ----------
    features
        Rows that the lists number.
    start : int
        First row.
    index, distance : array, shape (n, k)
        Lists of the round before; numbers are rows of `features`.
    fresh : array of bool, shape (n, k)
        Which entries the round before found.
    out_index, out_distance : array, shape (rows, k)
        The new lists, of rows start ... start + rows - 1.
    """
    k = index.shape[1]
    # Who was met, in a hash table with linear probing, at most a quarter full.
    size = 64
    while size < 4 * k * (k + 1):
        size *= 2
    met = np.empty(size, np.int64)
    when = np.full(size, -1, np.int64)
    for here in range(out_index.shape[0]):
        row = start + here
        for slot in range(k):
            out_index[here, slot] = index[row, slot]
            out_distance[here, slot] = distance[row, slot]
        for slot in range(-1, k):
            known = np.int64(row if slot < 0 else index[row, slot])
            if known >= 0:
                meet(known, row, met, when)
        for slot in range(k):
            near = index[row, slot]
            if near < 0:
                continue
            for further in range(k):
                candidate = np.int64(index[near, further])
                if candidate < 0 or not (fresh[row, slot] or fresh[near, further]):
                    continue
                if not meet(candidate, row, met, when):
                    continue
                d = squared(features, row, features, candidate)
                if d <= out_distance[here, k - 1]:
                    insert(out_index, out_distance, here, candidate, d)


@njit(cache=True, nogil=True)
def meet(candidate, row, met, when):  # type: ignore[no-untyped-def]
    """Note in a hash table that a row has met a candidate; return whether it had not.

    Parameters
    ----------
    candidate, row : int
    met, when : array of int, shape (size,)
        Who was met, and by which row last; `size` is a power of two. Entries of other rows count as free.
    """
    at = (candidate * 2654435761) & (len(met) - 1)
    while when[at] == row and met[at] != candidate:
        at = (at + 1) & (len(met) - 1)
    new = when[at] != row
    when[at] = row
    met[at] = candidate
    return new


@njit(cache=True, nogil=True)
def mark_fresh(before, after):  # type: ignore[no-untyped-def]
    """Return which entries of lists the lists before did not have."""
    fresh = np.empty(after.shape, np.bool_)
    for row in range(after.shape[0]):
        for slot in range(after.shape[1]):
            known = False
            for other in range(before.shape[1]):
                known |= before[row, other] == after[row, slot]
            fresh[row, slot] = not known
    return fresh


@njit(cache=True, nogil=True)
def squared_pairs(features, rows, lists):  # type: ignore[no-untyped-def]
    """Squared distances of some rows of the features to the rows in their lists; inf for -1."""
    out = np.full(lists.shape, np.inf, np.float32)
    for place in range(rows.shape[0]):
        for slot in range(lists.shape[1]):
            if lists[place, slot] >= 0:
                out[place, slot] = squared(features, rows[place], features, lists[place, slot])
    return out
