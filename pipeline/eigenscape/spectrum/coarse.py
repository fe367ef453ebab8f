"""A start from a smaller graph: aggregate, solve there, carry back (several levels)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.spectrum import kernels
from eigenscape.spectrum.filter import (
    Array,
    NullSpace,
    chebyshev_filter,
    rayleigh_ritz,
    safe_degree,
)
from eigenscape.spectrum.operator import Operator, as_operator, upper_bound

DENSE_ROWS = 1200
"""Order up to which a coarse problem is solved by LAPACK."""

_SMOOTH_DEGREE = 12
_SMOOTH_PASSES = 2


def aggregate_rows(operator: Operator) -> NDArray[np.int32]:
    """Return an aggregate for every row: a root and its neighbours, as far as they are free."""
    label = np.full(operator.rows, -1, np.int32)
    count = 0
    for stage in range(3):
        for block in operator.blocks:
            count = kernels.aggregate(
                block.first, block.indptr, block.indices, block.data, label, count, stage
            )
        if stage == 1:
            joined = label < -1
            label[joined] = -2 - label[joined]
    return label


def coarsen(operator: Operator, label: NDArray[np.int32]) -> tuple[Operator, NDArray[np.float64]]:
    """Return the Galerkin product P^T A P and the entries of P.

    Column a of P is the null vector restricted to aggregate a, of length 1; so the null vector is
    kept exactly, and the coarse operator is a Laplacian of the coarse graph.

    Returns
    -------
    coarse : Operator
    weight : array, shape (n,)
        P has ``weight[i]`` in row i and column ``label[i]``.
    """
    count = int(label.max()) + 1
    length = np.sqrt(np.bincount(label, operator.null**2, count))
    weight = operator.null / length[label]
    diagonal = np.bincount(label, np.asarray(operator.diagonal, np.float64) * weight**2, count)
    A: Any = scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal))
    for block in operator.blocks:
        rows = len(block.indptr) - 1
        here = slice(block.first, block.first + rows)
        own = np.repeat(np.arange(rows, dtype=np.int32), np.diff(block.indptr))
        entries = weight[here][own] * block.data * weight[block.indices]
        # Summed block by block: only the coarse matrix and one block's entries are in memory.
        A = (
            A
            - scipy.sparse.coo_array(
                (entries, (label[here][own], label[block.indices])), shape=(count, count)
            ).tocsr()
        )
    return as_operator(A, length, operator.diagonal.dtype), weight


@dataclass(frozen=True)
class CoarseStart:
    """Approximate lowest eigenvectors of an operator, as those of a smaller one.

    Attributes
    ----------
    values : array, shape (columns,)
        Eigenvalues of the coarse problem: at or above those of the operator.
    vectors : array, shape (aggregates, columns)
    label, weight : array, shape (n,)
        Row i of the operator takes ``weight[i] * vectors[label[i]]``.
    """

    values: NDArray[np.float64]
    vectors: Array
    label: NDArray[np.int32]
    weight: NDArray[np.float64]

    def columns(self, which: slice) -> Array:
        """Return some columns, carried back to the operator's rows."""
        return self.weight[:, None] * self.vectors[self.label, which]


def coarse_start(operator: Operator, columns: int) -> CoarseStart | None:
    """Return approximate lowest eigenvectors of an operator, null vectors not counted.

    Parameters
    ----------
    operator
        In memory or mapped.
    columns
        How many, a multiple of the group width.

    Returns
    -------
    CoarseStart or None
        None when the graph cannot be made smaller: nearly every sample is an aggregate of its own,
        or too few aggregates are left.
    """
    label = aggregate_rows(operator)
    count = int(label.max()) + 1
    if count > 0.9 * operator.rows or count < 2 * columns:
        return None
    coarse, weight = coarsen(operator, label)
    if coarse.rows <= max(DENSE_ROWS, 4 * columns):
        values, vectors = np.linalg.eigh(coarse.matrix().toarray())
        values, vectors = values[1 : columns + 1], vectors[:, 1 : columns + 1]
    else:
        values, vectors = _solve(coarse, columns, coarse_start(coarse, columns))
    return CoarseStart(values, vectors, label, weight)


def _solve(
    operator: Operator, columns: int, start: CoarseStart | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rough eigenpairs of a coarse operator, by a few short filters."""
    width, kind = kernels.WIDTH, operator.diagonal.dtype
    bound = upper_bound(operator)
    if start is None:
        rng = np.random.default_rng(4)
        X = rng.standard_normal((operator.rows, columns))
        values = np.full(columns, 0.25 * bound)
    else:
        X, values = start.columns(slice(None)), start.values
    null = NullSpace(operator.null)
    AX = np.empty_like(X)
    for number in range(_SMOOTH_PASSES):
        cut = cut_above(values, bound)
        degree = min(_SMOOTH_DEGREE * (1 + 2 * number), safe_degree(cut, bound, kind))
        for at in range(0, columns, width):
            here = slice(at, at + width)
            group = np.ascontiguousarray(X[:, here], kind)
            group = chebyshev_filter(operator, group, degree, cut, bound)
            null.remove_from(group)
            X[:, here], AX[:, here] = group, operator.times(group)
        rotation = rayleigh_ritz(X.T @ X, X.T @ AX)
        X = X @ rotation.C
        values = rotation.values
    return values, X


def cut_above(values: NDArray[np.float64], bound: float) -> float:
    """Return where a filter's damping begins: the last finite Ritz value, kept off both ends."""
    last = float(values[np.isfinite(values)][-1])
    return min(max(last, 1e-6 * bound), 0.9 * bound)
