"""Compiled inner loops of the neighbour search. A list is sorted by (distance, index).

Lists are two arrays of shape (rows, k): neighbour numbers, -1 where there is none yet, and squared
distances, inf there.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

F4 = NDArray[np.float32]
I4 = NDArray[np.int32]

CANCELLED = np.float32(2**-13)
"""Share of |x|^2 + |y|^2 below which |x|^2 - 2 x y + |y|^2 has lost too many digits to compare."""

ROUNDING = np.float32(2**-19)
"""Share of |x|^2 + |y|^2 by which rounding can change it."""


@njit(cache=True, nogil=True, inline="always")
def _insert(index, distance, row, candidate, d):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, inline="always")
def squared(x, i, y, j):  # type: ignore[no-untyped-def]
    """Squared distance by differences: exact 0 for equal rows, no cancellation for near ones."""
    total = np.float32(0)
    for c in range(x.shape[1]):
        difference = x[i, c] - y[j, c]
        total += difference * difference
    return total


@njit(cache=True, nogil=True)
def push_products(  # type: ignore[no-untyped-def]
    left, right, products, norms_q, norms_c, queries, own, candidates, index, distance
):
    """Offer every candidate of a tile to the list of every query, from their inner products.

    Where a product cancels (near neighbours in a tile that reaches far), the distance is computed
    by differences instead.

    Parameters
    ----------
    left, right : array, shape (..., d)
        Features of the queries and of the candidates.
    products : array, shape (queries, candidates)
        Inner products; squared distances are norms_q + norms_c - 2 products.
    norms_q, norms_c : array
        Squared norms.
    queries : array of int
        Row of `left` and of the lists of each query.
    own : array of int
        Number of each query as a candidate: it is never offered itself.
    candidates : array of int
        Number of each candidate, and its row of `right`.
    index, distance : array, shape (rows, k)
        The lists, changed in place.
    """
    last = index.shape[1] - 1
    for a in range(products.shape[0]):
        row = queries[a]
        norm = norms_q[a]
        worst = distance[row, last]
        for b in range(products.shape[1]):
            norms = norm + norms_c[b]
            d = norms - np.float32(2) * products[a, b]
            lost = d < CANCELLED * norms
            if d <= worst or (lost and d - ROUNDING * norms <= worst):
                candidate = candidates[b]
                if candidate != own[a]:
                    if lost:
                        d = squared(left, row, right, candidate)
                    _insert(index, distance, row, candidate, d)
                    worst = distance[row, last]


@njit(cache=True, nogil=True)
def exact_distances(features, own, others, index, distance):  # type: ignore[no-untyped-def]
    """Replace the distances of lists by exact ones and sort them again.

    Parameters
    ----------
    features : array, shape (candidates, d)
    own : array, shape (rows, d)
        Feature of each row of the lists.
    others : array of int
        Number that stands in the lists for each row of `features` after the call; the lists hold
        rows of `features` before it.
    index, distance : array, shape (rows, k)
        The lists, changed in place.
    """
    k = index.shape[1]
    for row in range(index.shape[0]):
        for slot in range(k):
            neighbour = index[row, slot]
            if neighbour >= 0:
                d = squared(own, row, features, neighbour)
                name = others[neighbour]
                place = slot
                while place > 0 and (
                    distance[row, place - 1] > d
                    or (distance[row, place - 1] == d and index[row, place - 1] > name)
                ):
                    distance[row, place] = distance[row, place - 1]
                    index[row, place] = index[row, place - 1]
                    place -= 1
                distance[row, place] = d
                index[row, place] = name


@njit(cache=True, nogil=True)
def merge_lists(rows, more_index, more_distance, index, distance):  # type: ignore[no-untyped-def]
    """Merge list r of the second pair into list rows[r] of the first, in place."""
    for r in range(rows.shape[0]):
        for slot in range(more_index.shape[1]):
            if more_index[r, slot] >= 0:
                _insert(index, distance, rows[r], more_index[r, slot], more_distance[r, slot])


@njit(cache=True, nogil=True)
def refine_lists(features, start, stop, index, distance, out_index, out_distance):  # type: ignore[no-untyped-def]
    """One round of neighbour-of-neighbour search for rows start ... stop-1.

    Reads the lists of the round before and writes new ones, so that the result does not depend on
    the order of the rows.

    Parameters
    ----------
    features : array, shape (n, d)
    start, stop : int
    index, distance : array, shape (n, k)
        Lists of the round before; numbers are rows of `features`.
    out_index, out_distance : array, shape (stop - start, k)
        The new lists.

    Returns
    -------
    int
        How many entries are new.
    """
    k = index.shape[1]
    changed = 0
    for row in range(start, stop):
        here = row - start
        out_index[here] = index[row]
        out_distance[here] = distance[row]
        for slot in range(k):
            near = index[row, slot]
            if near < 0:
                continue
            for further in range(k):
                candidate = index[near, further]
                if candidate < 0 or candidate == row:
                    continue
                known = False
                for other in range(k):
                    known |= out_index[here, other] == candidate
                if known:
                    continue
                d = squared(features, row, features, candidate)
                if d <= out_distance[here, k - 1]:
                    _insert(out_index, out_distance, here, candidate, d)
        for slot in range(k):
            known = False
            for other in range(k):
                known |= index[row, other] == out_index[here, slot]
            changed += not known
    return changed


@njit(cache=True, nogil=True)
def hash_tie(sample):  # type: ignore[no-untyped-def]
    """Return a number in [0, 1) that depends on the sample's number alone (splitmix64)."""
    z = np.uint64(sample) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def project_row(features, row, direction):  # type: ignore[no-untyped-def]
    """Inner product of a row with a direction: one function, so that ties stay ties."""
    total = np.float32(0)
    for c in range(features.shape[1]):
        total += features[row, c] * direction[c]
    return total


@njit(cache=True, nogil=True)
def project_rows(features, direction):  # type: ignore[no-untyped-def]
    """`project_row` of every row."""
    out = np.empty(features.shape[0], np.float32)
    for row in range(features.shape[0]):
        out[row] = project_row(features, row, direction)
    return out


@njit(cache=True, nogil=True)
def _below(value, tie, bound, bound_tie):  # type: ignore[no-untyped-def]
    return value < bound or (value == bound and tie < bound_tie)


@njit(cache=True, nogil=True)
def route_rows(features, first, directions, bounds, ties, levels, counts, rows, parts, homes):  # type: ignore[no-untyped-def]
    """Send rows down a split tree; a row in the overlap of a split goes both ways.

    Parameters
    ----------
    features : array, shape (rows, d)
    first : int
        Number of the first row's sample; the others follow.
    directions : array, shape (nodes, d)
    bounds, ties : array, shape (nodes, 3)
        Projection and tie-breaker at the lower, middle and upper quantile, nodes in heap order.
    levels : int
        Depth of the tree; it has 2**levels parts.
    counts : array, shape (parts,)
        Copies in each part, added to in place.
    rows, parts, homes : array
        Filled, while there is room, with row and part of each copy, and with the home of its row:
        the part on the row's own side of every median.

    Returns
    -------
    int
        Number of copies.
    """
    inner = (1 << levels) - 1
    stack = np.empty(levels + 1, np.int64)
    at_home = np.empty(levels + 1, np.bool_)
    copies = 0
    for row in range(features.shape[0]):
        tie = hash_tie(first + row)
        stack[0], at_home[0] = 0, True
        depth = 1
        begin, residence = copies, 0
        while depth:
            depth -= 1
            node, home = stack[depth], at_home[depth]
            if node >= inner:
                part = node - inner
                counts[part] += 1
                if copies < rows.shape[0]:
                    rows[copies] = row
                    parts[copies] = part
                if home:
                    residence = part
                copies += 1
                continue
            value = project_row(features, row, directions[node])
            middle = _below(value, tie, bounds[node, 1], ties[node, 1])
            if not _below(value, tie, bounds[node, 0], ties[node, 0]):
                stack[depth], at_home[depth] = 2 * node + 2, home and not middle
                depth += 1
            if _below(value, tie, bounds[node, 2], ties[node, 2]):
                stack[depth], at_home[depth] = 2 * node + 1, home and middle
                depth += 1
        homes[begin : min(copies, homes.shape[0])] = residence
    return copies
