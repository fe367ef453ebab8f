"""Compiled inner loops on connected components: union-find, and the way out of a component."""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels.distances import squared
from eigenscape.neighbors.kernels.lists import ROUNDING

_LARGEST = np.finfo(np.float32).max


@njit(cache=True, nogil=True)
def _root(parent, row):  # type: ignore[no-untyped-def]
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@njit(cache=True, nogil=True)
def _join(parent, a, b):  # type: ignore[no-untyped-def]
    """Unite two sets and return whether they were two.

    The root of a set is its smallest row, so that the outcome does not depend on the edges' order.
    """
    a, b = _root(parent, a), _root(parent, b)
    if a < b:
        parent[b] = a
    elif b < a:
        parent[a] = b
    return a != b


@njit(cache=True, nogil=True)
def unite(first, indptr, index, parent):  # type: ignore[no-untyped-def]
    """Unite the sets of each row and of all that its list names, in place.

    Parameters
    ----------
    first : int
        Number of the first row.
    indptr : array, shape (rows + 1,)
    index : array, shape (entries,)
    parent : array, shape (n,)
        A forest: the parent of each row, roots their own.
    """
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            if index[entry] >= 0:
                _join(parent, first + row, index[entry])


@njit(cache=True, nogil=True)
def join_pairs(left, right, parent):  # type: ignore[no-untyped-def]
    """Unite the sets of pair after pair, in place; return which pairs joined two sets."""
    joined = np.zeros(left.shape[0], np.bool_)
    for pair in range(left.shape[0]):
        joined[pair] = _join(parent, left[pair], right[pair])
    return joined


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

    The products only select the candidates that can be nearer than the best so far; those are compared
    by differences, so that no rounding of a product decides.

    Parameters
    ----------
    left, right
        Queries and candidates: arrays of shape (rows, d), or parts of sparse rows.
    products : array, shape (queries, candidates)
        Inner products, of rows that may be shifted by what `norms_q` and `norms_c` are.
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
            # Where norms overflow, d is NaN or infinite: any outsider is better than none.
            if not d - ROUNDING * norms >= best[a]:
                d = min(squared(left, a, right, b), _LARGEST)
                if d < best[a]:
                    best[a] = d
                    nearest[a] = first + b
