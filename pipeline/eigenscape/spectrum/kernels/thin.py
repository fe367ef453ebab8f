"""Thin graphs: curves, narrow strips, trees. A sparse factorisation of their Laplacian costs little.

Their low eigenvalues are many orders of magnitude below the largest, so that a filter would have to be
thousands of products long. Shift and invert turns the spectrum round: with the factors of A + s the
lowest pairs are the first that Lanczos finds, in double and to the last digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from eigenscape.errors import ConvergenceError
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.kernels.operator import Operator, RowBlock
from eigenscape.spectrum.kernels.oracles import (
    FIRST_SEED,
    Pairs,
    dense_pairs,
    further_seeds,
    lanczos_bytes,
    lowest_of,
    place_below_last,
)

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
_SAME_VALUE = 1e-6
_ROUNDING = 1e-12
_SHARES = (0.45, 0.35)


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


def shifted_pairs(operator: Operator, null: NullSpace, count: int, tolerance: float = 0.0) -> Pairs:
    """Return the lowest eigenpairs above the null space, by Lanczos on the inverse (ARPACK, SuperLU).

    Lanczos from one vector can miss copies of a multiple eigenvalue: the eigenvalues below the last one
    are counted by Sylvester's law of inertia, and what is missing is sought beside what was found. The
    lowest of what is left is always among what Lanczos finds, so as many searches as pairs are enough.

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
        ARPACK gave up, or the eigenvalues could not be counted.
    """
    if count + null.count >= operator.rows:
        return dense_pairs(operator, null, count)  # ARPACK finds all but one at most
    A = scipy.sparse.csc_array(operator.matrix())
    shift = _SHIFT * min(operator.bound, 2 * float(np.median(A.diagonal())))
    search = partial(_invert, A, _factorise(A, shift).solve, shift, null)
    pairs = search(FIRST_SEED, count)
    for seed in further_seeds(count):
        missed, below = _count_missed(A, null, pairs[0], _ROUNDING * operator.bound)
        if not missed:
            break
        rest = operator.rows - null.count - count
        further = search(seed, min(missed, count, rest), pairs[1])
        if further[0][0] > below:
            break  # rounding has counted one too many: nothing is lower than what was found
        pairs = lowest_of(pairs, further)
    return pairs


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
    seed: int,
    count: int,
    found: F8 | None = None,
) -> Pairs:
    """Return the lowest pairs beside the null space and the vectors that were found."""

    def clean(x: F8) -> F8:
        x = x - null.part_of(x)
        return x if found is None else np.asarray(x - found @ (found.T @ x))

    def apply(x: F8) -> F8:
        return clean(solve(clean(np.ravel(x))))

    n = A.shape[0]
    inverse = scipy.sparse.linalg.LinearOperator((n, n), matvec=apply, dtype=np.float64)
    start = clean(np.random.default_rng(seed).standard_normal(n))
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


def _count_missed(
    A: scipy.sparse.csc_array, null: NullSpace, values: F8, rounding: float
) -> tuple[int, float]:
    """Return how many eigenvalues below the last found one are missing, and where they were counted.

    Raises
    ------
    ConvergenceError
        Rows were exchanged, so that the signs of the pivots say nothing.
    """
    limit = max(_SAME_VALUE * float(values[-1]), rounding)
    place = place_below_last(values, limit)
    if place is None:
        return 0, 0.0
    at, top = place
    # Not in the middle, where a pivot of a matrix of few distinct entries can be 0.
    for share in _SHARES:
        below = top - share * limit
        factors = _factorise(A, -below)
        if (factors.perm_r == factors.perm_c).all():
            return max(0, int((factors.U.diagonal() < 0).sum()) - null.count - at), below
    raise ConvergenceError(
        f"spectrum.solver = 'shift-invert': the eigenvalues below {top:g} could not be counted, so that some "
        "may be missing among those found. Use spectrum.solver = 'chebyshev'."
    )
