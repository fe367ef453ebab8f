"""Thin graphs: curves, narrow strips, trees. A sparse factorisation of their Laplacian costs little.

Their low eigenvalues are many orders of magnitude below the largest, so that a filter would have to be
thousands of products long. Shift and invert turns the spectrum round: with the factors of A + s the
lowest pairs are the first that Lanczos finds, in double and to the last digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from eigenscape.errors import ConvergenceError
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.kernels.operator import Operator, RowBlock
from eigenscape.spectrum.kernels.oracles import dense_pairs, lanczos_bytes

F8 = NDArray[np.float64]

FACTOR_BYTES = 24
"""Of two triangles: a number and an index each."""

MOST_BYTES = 2**25
"""Memory that factors may take without being asked for: any limit leaves it, so none changes the choice."""

_FILTER_PRODUCTS = 50
"""Products with all columns that a factorisation may cost: those of a filter on an easy graph."""

_SHIFT = 1e-9
"""Of twice the median diagonal entry, or of the bound of the spectrum if that is smaller. A potential on one
sample raises the bound: a shift by that would be above all small eigenvalues, and nothing told them apart."""

_TOLERANCE = 1e-12
_MOST_DEFLATIONS = 5


@dataclass(frozen=True)
class Profile:
    """Costs of a symmetric factorisation within the envelope of a matrix.

    Attributes
    ----------
    entries
        Of one triangle; minimum-degree orderings leave fewer.
    operations
        Multiplications.
    edges
        Entries of the matrix.
    """

    entries: int
    operations: float
    edges: int

    @property
    def bytes(self) -> int:
        """Memory of the factors."""
        return FACTOR_BYTES * self.entries

    def is_thin(self, columns: int) -> bool:
        """Whether factors are small, and cost less than a filter of so many columns."""
        affordable = self.operations <= _FILTER_PRODUCTS * float(self.edges) * columns
        return affordable and self.bytes <= MOST_BYTES


def whole_structure(blocks: Sequence[RowBlock]) -> scipy.sparse.csr_array:
    """Return the structure of some row blocks as one matrix of ones, a byte each."""
    starts = [np.zeros(1, np.int64)]
    for block in blocks:
        starts.append(starts[-1][-1] + np.asarray(block.indptr[1:]))
    columns = np.concatenate([block.indices for block in blocks])
    rows = sum(len(block.indptr) - 1 for block in blocks)
    ones = np.ones(len(columns), np.int8)
    return scipy.sparse.csr_array((ones, columns, np.concatenate(starts)), shape=(rows, rows))


def profile(structure: scipy.sparse.csr_array) -> Profile:
    """Return the profile of a symmetric matrix in its reverse Cuthill-McKee order.

    Parameters
    ----------
    structure : csr_array, shape (n, n)
        Its entries do not matter.
    """
    n = structure.shape[0]
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(structure), symmetric_mode=True)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    # The least place among the neighbours of each row; of a row without any its own.
    first = np.arange(n)
    filled = np.diff(structure.indptr) > 0
    if filled.any():
        least = np.minimum.reduceat(place[structure.indices], structure.indptr[:-1][filled])
        first[place[filled]] = np.minimum(least, place[filled])
    widths = (np.arange(n) - first + 1).astype(np.float64)
    return Profile(int(widths.sum()), float((widths**2).sum()), structure.nnz)


def shifted_pairs(
    operator: Operator, null: NullSpace, count: int, tolerance: float = 0.0
) -> tuple[F8, F8]:
    """Return the lowest eigenpairs above the null space, by Lanczos on the inverse (ARPACK, SuperLU).

    Lanczos from one vector can miss copies of a multiple eigenvalue: the eigenvalues below the last one
    are counted by Sylvester's law of inertia, and what is missing is sought beside what was found.

    Parameters
    ----------
    operator
        A, in double.
    null
        Its null space, which is kept out.
    count
        Pairs to return.
    tolerance
        Not used: the pairs are exact to the last digits.

    Returns
    -------
    values : array, shape (count,), ascending
    vectors : array, shape (n, count), orthonormal

    Raises
    ------
    ConvergenceError
        ARPACK gave up.
    """
    if count >= operator.rows:
        return dense_pairs(operator, null, count)  # ARPACK finds all but one at most
    A = scipy.sparse.csc_array(operator.matrix())
    shift = _SHIFT * min(operator.bound, 2 * float(np.median(A.diagonal())))
    solve = _factorise(A, shift).solve
    values, vectors = _invert(A, solve, shift, null, count, None)
    for _ in range(_MOST_DEFLATIONS):
        missed = _count_missed(A, null, values)
        if not missed:
            break
        more = min(missed, operator.rows - null.count - len(values))
        further, beside = _invert(A, solve, shift, null, more, vectors)
        values = np.concatenate([values, further])
        order = np.argsort(values)
        values, vectors = values[order], np.hstack([vectors, beside])[:, order]
    return values[:count], vectors[:, :count]


def shifted_bytes(rows: int, modes: int, entries: float) -> float:
    """Return the memory of an inverse of few entries: the profile, factors to solve with and to count by.

    Larger ones, which have to be asked for, are refused by the graph itself. See `lanczos_bytes`.
    """
    factors = min(MOST_BYTES, FACTOR_BYTES * rows**2 // 2)
    return lanczos_bytes(rows, modes, entries) + 2 * factors + 8 * entries


def _factorise(A: scipy.sparse.csc_array, shift: float) -> Any:
    """Return the factors of A + shift, symmetric pivots alone."""
    lifted = scipy.sparse.csc_array(A + shift * scipy.sparse.eye_array(A.shape[0], format="csc"))
    return scipy.sparse.linalg.splu(
        lifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


def _invert(
    A: scipy.sparse.csc_array,
    solve: Callable[[F8], F8],
    shift: float,
    null: NullSpace,
    count: int,
    found: F8 | None,
) -> tuple[F8, F8]:
    def clean(x: F8) -> F8:
        x = x - null.part_of(x)
        return x if found is None else np.asarray(x - found @ (found.T @ x))

    def apply(x: F8) -> F8:
        return clean(solve(clean(np.ravel(x))))

    n = A.shape[0]
    inverse = scipy.sparse.linalg.LinearOperator((n, n), matvec=apply, dtype=np.float64)
    start = clean(np.random.default_rng(7).standard_normal(n))
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            A, count, sigma=-shift, OPinv=inverse, which="LM", v0=start, tol=_TOLERANCE
        )
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise ConvergenceError(
            f"spectrum.solver = 'shift-invert': ARPACK found {len(error.eigenvalues)} of {count} pairs "
            "and gave up. Use spectrum.solver = 'chebyshev' or a smaller spectrum.dimension."
        ) from None
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _count_missed(A: scipy.sparse.csc_array, null: NullSpace, values: F8) -> int:
    """Return how many eigenvalues below the found ones are missing, 0 where the count is not certain.

    They are counted at the widest gap that the upper half of the values leaves.
    """
    half = len(values) // 2
    gaps = np.diff(values[half:])
    if not len(gaps) or gaps.max() <= 1e-6 * values[-1]:
        return 0
    at = half + int(np.argmax(gaps))
    factors = _factorise(A, -float(values[at] + values[at + 1]) / 2)
    if (factors.perm_r != factors.perm_c).any():
        return 0  # rows were exchanged, so that the signs of the pivots say nothing
    below = int((factors.U.diagonal() < 0).sum())
    return max(0, below - null.count - (at + 1))
