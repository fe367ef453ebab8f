"""The Chebyshev filter on what Ritz vectors lack, in half precision.

With R = A X - X Theta, a filter p turns Ritz vectors into ``p(A) X = (X + D) p(Theta)``, and D follows a
recurrence of its own, driven by R (R-ChFSI, arXiv 2503.22652):

    D_(k+1) = a_k ((A - c) D_k + R) - b_k D_(k-1)

Rounding errors are relative to D, so to the residual, and not to the vectors: with each pass they
become smaller as the residual does. So half precision is enough, and takes half the memory and its
traffic; the vectors themselves, R and the Rayleigh-Ritz step keep their precision.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator, read_only

_UNIT = 2.0**-8
"""Root mean square of R as it is stored: single entries of R and of D may be 10^7 times as large before
they overflow, and a hundredth as large before they lose digits."""


def filter_corrections(
    operator: Operator,
    X: Array,
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
    plan: FilterPlan,
    halves: Callable[[], NDArray[np.uint16]],
    Y: Array,
) -> None:
    """Y <- p(A) X, every column divided by p of its Ritz value, for one group of columns.

    Parameters
    ----------
    operator
        A, without ties.
    X : array, shape (n, WIDTH)
        Ritz vectors of length 1, or any others: what is added to them is as exact as they are close.
    values, residuals : array, shape (WIDTH,)
        Ritz values, and the norms |A x - theta x|; infinite where a column carries no direction.
    plan
        p.
    halves
        Returns zeros of shape (n, WIDTH).
    Y : array, shape (n, WIDTH)
        Overwritten.
    """
    X = read_only(X)
    # p is 0 at places above the cut, where nothing can be divided by it.
    shift = np.minimum(values, plan.cut)
    # A residual is orthogonal to its Ritz vector.
    norm = np.where(np.isfinite(residuals), np.hypot(residuals, values - shift), plan.bound)
    length = norm / np.sqrt(operator.rows) / _UNIT
    scale = np.divide(1, length, out=np.zeros(WIDTH), where=length > 0)
    D, Z = halves(), halves()
    # The result is written when R is not needed any more.
    R = Y.reshape(-1).view(np.uint16)[: X.size].reshape(X.shape)
    for block in operator.blocks:
        kernels.halve_residuals(
            block.indptr, block.indices, block.data, operator.diagonal, block.first,
            X, shift, scale, R,
        )  # fmt: skip
    centre = (plan.bound + plan.cut) / 2
    for a, b in _recurrence(shift, plan):
        for block in operator.blocks:
            kernels.filter_halves(
                block.indptr, block.indices, block.data, operator.diagonal, block.first,
                centre, D, Z, R, a, b,
            )  # fmt: skip
        D, Z = Z, D
    kernels.add_halves(X, D, length, Y)


def _recurrence(
    shift: NDArray[np.float64], plan: FilterPlan
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield a and b of every step, shape (WIDTH,), from the recurrence of p (see `chebyshev_filter`)."""
    half, centre = (plan.bound - plan.cut) / 2, (plan.bound + plan.cut) / 2
    sigma = half / (plan.low - centre)
    tau = 2 / sigma
    # p_k(theta) / p_(k+1)(theta): the polynomials themselves would leave the range of numbers.
    ratio = half / (sigma * (shift - centre))
    yield (sigma / half * ratio).astype(np.float32), np.zeros(WIDTH, np.float32)
    for _ in range(2, plan.degree + 1):
        following = 1 / (tau - sigma)
        before = ratio
        ratio = 1 / (2 * following / half * (shift - centre) - sigma * following * before)
        a, b = 2 * following / half * ratio, sigma * following * before * ratio
        yield a.astype(np.float32), b.astype(np.float32)
        sigma = following
