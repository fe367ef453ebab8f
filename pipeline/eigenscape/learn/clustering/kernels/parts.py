"""Parts of a weighted graph: their weights, their degrees, and the vectors to split them by.

The Fiedler vector of a part is the first eigenvector that is not constant of D^-1 (D - W), with the
weights W and degrees D within the part alone. `ritz_fiedler` takes instead the best vector that a few
eigenvectors of the whole graph have to offer: passes over the edges and small matrices, at any number
of rows. Of the whole graph both are the same; on Indian Pines 16 parts cost no more by the second
(Ncut 0.51 against 0.54, k = 12).
"""

from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.sparse
from numba import njit
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.kernels.operator import RowBlock

F8 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_RANK = 1e-10
"""Share of the largest variance below which a direction is taken to be a copy of others."""


def degrees_within(blocks: Sequence[RowBlock], members: Mask) -> F8:
    """Return the weight of the edges that lead from each row of a part to others of it.

    Parameters
    ----------
    blocks
        Row blocks of W.
    members : array of bool, shape (n,)
        The part, of m rows.

    Returns
    -------
    array, shape (m,)
    """
    members = np.asarray(members, np.bool_)
    degree = np.zeros(len(members))
    for block in blocks:
        _add_degrees(block.first, block.indptr, block.indices, block.data, members, degree)
    return degree[members]


def ritz_fiedler(
    blocks: Sequence[RowBlock], members: Mask, degree: F8, vectors: NDArray[np.floating]
) -> F8:
    """Return the vector of least Rayleigh quotient within a part, among combinations of a few.

    It minimises y^T (D - W) y / y^T D y over y = V c orthogonal to the constant under D, with the
    weights and degrees of the part: the Rayleigh-Ritz method.

    Parameters
    ----------
    blocks
        Row blocks of W.
    members : array of bool, shape (n,)
        The part, of m rows.
    degree : array, shape (m,)
        Row sums of W within the part: see `degrees_within`.
    vectors : array or memory map, shape (n, count)
        First eigenvectors of the whole graph's D^-1 (D - W); the constant one may be among them.

    Returns
    -------
    array, shape (m,)
        0 where the vectors are all constant on the part.
    """
    count = vectors.shape[1]
    A, B, mean = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    position = np.concatenate([[0], np.cumsum(members)])
    for block in blocks:
        last = block.first + len(block.indptr) - 1
        for start in range(block.first, last, ROW_TILE):
            stop = min(start + ROW_TILE, last)
            if position[start] == position[stop]:
                continue
            own = degree[position[start] : position[stop]]
            X = np.asarray(vectors[start:stop], np.float64)[members[start:stop]]
            image = np.zeros((len(own), count))
            _multiply_rows(
                start, stop, block.first, block.indptr, block.indices, block.data,
                members, vectors, image,
            )  # fmt: skip
            A += X.T @ (own[:, None] * X - image)
            B += X.T @ (own[:, None] * X)
            mean += own @ X
    volume = degree.sum()
    if volume > 0:
        B -= np.outer(mean, mean) / volume
    variance, directions = np.linalg.eigh(B)
    kept = variance > _RANK * max(variance[-1], np.finfo(float).tiny)
    basis = directions[:, kept] / np.sqrt(variance[kept])
    if not basis.size:
        return np.zeros(len(degree))
    _, combined = scipy.linalg.eigh(basis.T @ ((A + A.T) / 2) @ basis, subset_by_index=[0, 0])
    weights = basis @ combined[:, 0]
    inside = np.flatnonzero(members)
    found = np.empty(len(inside))
    for start in range(0, len(inside), ROW_TILE):
        here = inside[start : start + ROW_TILE]
        found[start : start + len(here)] = np.asarray(vectors[here], np.float64) @ weights
    return found


@njit(cache=True, nogil=True)
def _add_degrees(first, indptr, indices, weights, members, degree):  # type: ignore[no-untyped-def]
    """Add the weights among the members to the degrees of their rows."""
    for row in range(indptr.shape[0] - 1):
        if members[first + row]:
            total = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                if members[indices[entry]]:
                    total += weights[entry]
            degree[first + row] = total


@njit(cache=True, nogil=True)
def _multiply_rows(  # type: ignore[no-untyped-def]
    start, stop, first, indptr, indices, weights, members, vectors, image
):
    """Add W X to the image, for the members among some rows, W being that of the part."""
    own = 0
    for row in range(start - first, stop - first):
        if members[first + row]:
            for entry in range(indptr[row], indptr[row + 1]):
                other = indices[entry]
                if members[other]:
                    for column in range(vectors.shape[1]):
                        image[own, column] += weights[entry] * vectors[other, column]
            own += 1
