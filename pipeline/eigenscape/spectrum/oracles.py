"""The two slow, well-known ways to the same eigenpairs: LAPACK and ARPACK, in double."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from eigenscape.errors import ConvergenceError
from eigenscape.spectrum.filter import NullSpace
from eigenscape.spectrum.operator import Operator

Pairs = tuple[NDArray[np.float64], NDArray[np.float64]]


def dense_pairs(operator: Operator, null: NullSpace, count: int) -> Pairs:
    """Return the lowest eigenpairs above the null space, from the full matrix.

    Parameters
    ----------
    operator
        A.
    null
        Its null space, which is moved to the top of the spectrum instead of being searched.
    count
        Pairs to return.

    Returns
    -------
    values : array, shape (count,), ascending
    vectors : array, shape (n, count), orthonormal
    """
    A = operator.matrix().toarray()
    for label in range(null.count):
        inside = np.flatnonzero(null.component == label)
        entries = null.entries[inside]
        A[np.ix_(inside, inside)] += 2 * operator.bound * np.outer(entries, entries)
    values, vectors = scipy.linalg.eigh(A, subset_by_index=[0, count - 1], overwrite_a=True)
    return values, vectors


def lanczos_pairs(operator: Operator, null: NullSpace, count: int, tolerance: float) -> Pairs:
    """Return the lowest eigenpairs above the null space by implicitly restarted Lanczos (ARPACK).

    The largest of ``bound - A`` are sought, which needs no factorisation. See `dense_pairs` for the
    parameters; `tolerance` bounds the residual norm.

    Raises
    ------
    ConvergenceError
        ARPACK gave up.
    """
    A = operator.matrix()
    bound = operator.bound

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.ravel(vector)
        image: NDArray[Any] = bound * x - A @ x
        shares = np.bincount(null.component, null.entries * x, null.count)
        return image - bound * null.entries * shares[null.component]

    shape = (operator.rows, operator.rows)
    flipped = scipy.sparse.linalg.LinearOperator(shape, matvec=apply, dtype=np.float64)
    start = np.random.default_rng(7).standard_normal(operator.rows)
    try:
        # ARPACK's tolerance is relative to the eigenvalue, here at most the bound.
        values, vectors = scipy.sparse.linalg.eigsh(
            flipped, count, which="LA", v0=start, tol=0.1 * tolerance / bound
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise ConvergenceError(
            f"spectrum.solver = 'lanczos': ARPACK found {len(error.eigenvalues)} of {count} pairs "
            "and gave up. Use spectrum.solver = 'chebyshev' or a larger spectrum.tolerance."
        ) from None
    order = np.argsort(-values)
    return bound - values[order], vectors[:, order]


def residual_norms(operator: Operator, pairs: Pairs) -> NDArray[np.float64]:
    """Return |A v - lambda v| of each pair, in double."""
    values, vectors = pairs
    norms: NDArray[np.float64] = np.linalg.norm(
        operator.matrix() @ vectors - vectors * values, axis=0
    )
    return norms
