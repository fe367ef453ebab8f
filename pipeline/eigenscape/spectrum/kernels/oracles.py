"""The well-known ways to the same eigenpairs, in double: LAPACK, ARPACK, LOBPCG with multigrid."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from eigenscape.errors import ConvergenceError, MissingExtraError
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.kernels.operator import Operator

Pairs = tuple[NDArray[np.float64], NDArray[np.float64]]

_LOBPCG_ITERATIONS = 200
_LOBPCG_ROWS = 5
"""Times the columns of a block that LOBPCG needs as rows: SciPy takes a dense solver below."""

_LIFT = 1e-5

FIRST_SEED = 7
"""Seed of the first start of a Lanczos iteration."""


def dense_pairs(operator: Operator, null: NullSpace, count: int, tolerance: float = 0.0) -> Pairs:
    """Return the lowest eigenpairs above the null space, from the full matrix.

    Parameters
    ----------
    operator
        A.
    null
        Its null space, which is moved to the top of the spectrum instead of being searched.
    count
        Pairs to return.
    tolerance
        Not used: residuals are those of rounding.

    Returns
    -------
    values : array, shape (count,), ascending
    vectors : array, shape (n, count), orthonormal
    """
    # In the order of LAPACK, which then works in it without a copy.
    A = operator.matrix().toarray(order="F")
    for label in range(null.count):
        inside = np.flatnonzero(null.component == label)
        entries = null.null[inside] / np.linalg.norm(null.null[inside])
        for column, entry in zip(inside.tolist(), entries, strict=True):
            A[inside, column] += 2 * operator.bound * (entries * entry)
    values, vectors = scipy.linalg.eigh(A, subset_by_index=[0, count - 1], overwrite_a=True)
    return values, vectors


def dense_bytes(rows: int, modes: int, entries: float) -> float:
    """Return the memory of `dense_pairs`: the matrix, which of its entries are finite, and vectors."""
    return 9.0 * rows**2 + 24.0 * rows * modes


def _product(operator: Operator) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return a function that multiplies columns by A; ties as a matrix would have m^2 entries."""
    A = replace(operator, ties=None).matrix()

    def apply(X: NDArray[np.float64]) -> NDArray[np.float64]:
        X = np.ascontiguousarray(X)
        image: NDArray[np.float64] = np.ascontiguousarray(A @ X)
        if operator.ties is not None:
            operator.ties.add(X.reshape(len(X), -1), image.reshape(len(X), -1), 1.0)
        return image

    return apply


def lanczos_pairs(operator: Operator, null: NullSpace, count: int, tolerance: float) -> Pairs:
    """Return the lowest eigenpairs above the null space by implicitly restarted Lanczos (ARPACK).

    The largest of ``bound - A`` are sought, which needs no factorisation. One vector can miss copies of
    a multiple eigenvalue, but not the lowest of what is left beside the pairs found: searches go on
    until that is no lower than the last of them. See `dense_pairs` for the parameters; `tolerance`
    bounds the residual norm.

    Raises
    ------
    ConvergenceError
        ARPACK gave up.
    """
    rest = operator.rows - null.count - count
    if rest <= 0:
        return dense_pairs(operator, null, count)  # ARPACK finds all but one at most
    width = min(operator.rows, max(2 * count + 1, 20))
    search = partial(_search, operator, _product(operator), null, tolerance, width)
    pairs, more = search(FIRST_SEED, count), 1
    for seed in further_seeds(count):
        further = search(seed, min(more, rest), pairs[1])
        if further[0][0] >= pairs[0][-1] - tolerance:
            break
        pairs, more = lowest_of(pairs, further), min(2 * more, count)
    return pairs


def _search(
    operator: Operator,
    product: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    null: NullSpace,
    tolerance: float,
    width: int,
    seed: int,
    count: int,
    found: NDArray[np.float64] | None = None,
) -> Pairs:
    """Return the lowest pairs beside the null space and the vectors found, from a basis of some width."""
    bound = operator.bound

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.ravel(vector)
        x = x if found is None else x - found @ (found.T @ x)
        image: NDArray[Any] = bound * x - product(x)
        image -= bound * null.part_of(x)
        return image if found is None else image - found @ (found.T @ image)

    shape = (operator.rows, operator.rows)
    flipped = scipy.sparse.linalg.LinearOperator(shape, matvec=apply, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(operator.rows)
    try:
        # ARPACK's tolerance is relative to the eigenvalue, here at most the bound.
        values, vectors = scipy.sparse.linalg.eigsh(
            flipped, count, which="LA", v0=start, ncv=width, tol=0.1 * tolerance / bound
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise ConvergenceError(
            f"spectrum.solver = 'lanczos': ARPACK found {len(error.eigenvalues)} of {count} pairs "
            "and gave up. Use spectrum.solver = 'chebyshev' or a larger spectrum.tolerance."
        ) from None
    order = np.argsort(-values)
    return bound - values[order], vectors[:, order]


def lanczos_bytes(rows: int, modes: int, entries: float) -> float:
    """Return the memory of ARPACK's vectors and results, and of the matrix in double and a copy.

    Parameters
    ----------
    rows, entries
        Of the matrix.
    modes
        Pairs to find.
    """
    # The basis, the result in two orders, and what was found before.
    vectors = max(2 * modes + 1, 20) + 3 * modes
    # And a twentieth of it: 598 MiB were measured on 640,976 pixels, where 580 were counted.
    return 1.05 * (32 * entries + 8.0 * rows * vectors)


def lobpcg_pairs(operator: Operator, null: NullSpace, count: int, tolerance: float) -> Pairs:
    """Return the lowest eigenpairs above the null space by LOBPCG, preconditioned by multigrid.

    Locally optimal block preconditioned conjugate gradients (Knyazev 2001) from SciPy with smoothed
    aggregation from PyAMG: what scikit-learn's ``eigen_solver="amg"`` does. See `dense_pairs` for
    the parameters; `tolerance` bounds the residual norm.

    Raises
    ------
    MissingExtraError
        PyAMG is not installed.
    """
    try:
        import pyamg
    except ImportError:
        raise MissingExtraError("pyamg", "amg", "spectrum.solver = 'lobpcg'") from None
    A = scipy.sparse.csr_matrix(replace(operator, ties=None).matrix())
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    near = np.asarray(operator.null)[:, None]
    # Off zero, so that the coarsest system of every component can be solved.
    lifted = A + _LIFT * operator.bound * scipy.sparse.eye_array(operator.rows, format="csr")
    with _seeded(7):
        hierarchy = pyamg.smoothed_aggregation_solver(
            scipy.sparse.csr_matrix(lifted), B=near, symmetry="symmetric"
        )
    constraints = None
    if null.count:
        constraints = np.zeros((operator.rows, null.count))
        constraints[np.arange(operator.rows), null.component] = null.entries
    guards = max(4, count // 10)
    width = min(count + guards, operator.rows - null.count)
    if operator.rows - null.count < _LOBPCG_ROWS * width:
        return dense_pairs(operator, null, count)  # as SciPy would, but beside the null vectors
    start = np.random.default_rng(7).standard_normal((operator.rows, width))
    with warnings.catch_warnings():
        # The residuals show what was not reached; SciPy's warning is not needed.
        warnings.simplefilter("ignore", UserWarning)
        values, vectors = scipy.sparse.linalg.lobpcg(
            _product(operator), start, M=hierarchy.aspreconditioner(), Y=constraints, tol=tolerance,
            largest=False, maxiter=_LOBPCG_ITERATIONS,
        )  # fmt: skip
    order = np.argsort(values)[:count]
    return values[order], vectors[:, order]


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, from which PyAMG draws its estimates of spectral radii."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def lobpcg_bytes(rows: int, modes: int, entries: float) -> float:
    """Return the memory of the matrix and its hierarchy, blocks of vectors, directions and images, PyAMG."""
    return 12 * entries * 8 + 8 * rows * 10 * (modes + max(4, modes // 10)) + 2**23


def count_below(operator: Operator, value: float) -> int:
    """Return how many eigenvalues lie below a value: Sylvester's law of inertia.

    They follow from the signs of D in the factors A - value I = L D L^T. One matrix of order n is held:
    LAPACK leaves the factors in its place (Bunch and Kaufman's pivoting, LAPACK Users' Guide, SYTRF).
    """
    A = operator.matrix().toarray(order="F")
    A[np.diag_indices_from(A)] -= value
    work = int(lapack.dsytrf_lwork(len(A), lower=1)[0])
    factors, pivots, _ = lapack.dsytrf(A, lower=1, lwork=work, overwrite_a=1)
    # D has blocks of order 1 and 2, whose pivots are negative; one of order 2 has one negative eigenvalue.
    single = pivots > 0
    return int((np.diag(factors)[single] < 0).sum() + (~single).sum() // 2)


def place_below_last(values: NDArray[np.float64], limit: float) -> tuple[int, float] | None:
    """Return how many values lie below the last group of equal ones, and the lowest of that group.

    Eigenvalues that are counted just below that group tell whether the values are the lowest: any that is
    missing further up belongs to the group, or lies above it.

    Parameters
    ----------
    values : array, shape (count,)
        Found eigenvalues above the null space, ascending.
    limit
        Distance up to which two are the same.

    Returns
    -------
    tuple or None
        None where all values are 0 but for the limit, below which nothing can be counted.
    """
    apart = np.flatnonzero(np.diff(values, prepend=0.0) > limit)
    return (int(apart[-1]), float(values[apart[-1]])) if len(apart) else None


def further_seeds(count: int) -> range:
    """Return the seeds of the searches beside found pairs: each brings at least one of `count`.

    Each needs a start of its own: of a multiple eigenvalue, a start holds the very vector that it has led to.
    """
    return range(FIRST_SEED + 1, FIRST_SEED + 1 + count)


def lowest_of(pairs: Pairs, further: Pairs) -> Pairs:
    """Return the lowest of two sets of eigenpairs, as many as the first holds."""
    values = np.concatenate([pairs[0], further[0]])
    order = np.argsort(values)[: len(pairs[0])]
    return values[order], np.hstack([pairs[1], further[1]])[:, order]


def residual_norms(operator: Operator, pairs: Pairs) -> NDArray[np.float64]:
    """Return |A v - lambda v| of each pair, in double."""
    values, vectors = pairs
    norms: NDArray[np.float64] = np.linalg.norm(
        _product(operator)(vectors) - vectors * values, axis=0
    )
    return norms
