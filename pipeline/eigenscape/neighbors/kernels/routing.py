"""Compiled loops that send samples down a split tree."""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels.distances import projected


@njit(cache=True, nogil=True)
def hash_tie(sample):  # type: ignore[no-untyped-def]
    """Return a number in [0, 1) that depends on the sample's number alone (splitmix64)."""
    z = np.uint64(sample) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def hash_ties(samples):  # type: ignore[no-untyped-def]
    """`hash_tie` of every sample."""
    out = np.empty(samples.shape[0], np.float64)
    for place in range(samples.shape[0]):
        out[place] = hash_tie(samples[place])
    return out


@njit(cache=True, nogil=True)
def project_rows(features, rows, direction):  # type: ignore[no-untyped-def]
    """Inner product of some rows with a direction."""
    out = np.empty(rows.shape[0], np.float32)
    for place in range(rows.shape[0]):
        out[place] = projected(features, rows[place], direction)
    return out


@njit(cache=True, nogil=True)
def _below(value, tie, bound, bound_tie):  # type: ignore[no-untyped-def]
    return value < bound or (value == bound and tie < bound_tie)


@njit(cache=True, nogil=True)
def route_rows(  # type: ignore[no-untyped-def]
    features, samples, directions, bounds, ties, levels, counts, rows, parts, homes
):
    """Send rows down a split tree; a row in the overlap of a split goes both ways.

    Parameters
    ----------
    features
        Rows, dense or sparse.
    samples : array of int, shape (rows,)
        Number of each row's sample, which breaks ties.
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
    for row in range(samples.shape[0]):
        tie = hash_tie(samples[row])
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
            value = projected(features, row, directions[node])
            middle = _below(value, tie, bounds[node, 1], ties[node, 1])
            if not _below(value, tie, bounds[node, 0], ties[node, 0]):
                stack[depth], at_home[depth] = 2 * node + 2, home and not middle
                depth += 1
            if _below(value, tie, bounds[node, 2], ties[node, 2]):
                stack[depth], at_home[depth] = 2 * node + 1, home and middle
                depth += 1
        homes[begin : min(copies, homes.shape[0])] = residence
    return copies
