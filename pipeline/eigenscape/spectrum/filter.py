"""The Chebyshev filter and the Rayleigh-Ritz step, on arrays in memory.

The filter of degree q is a Chebyshev polynomial stretched so that [cut, bound] is where it stays
small: eigenvalues below the cut are amplified, the more the lower they are.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.operator import Operator

Array = NDArray[Any]


def chebyshev_filter(
    operator: Operator, X: Array, degree: int, cut: float, bound: float, low: float = 0.0
) -> Array:
    """Return p(A) X for one group of columns.

    Scaled so that p(low) = 1, which keeps single precision from overflowing (Zhou, Saad, Tiago,
    Chelikowsky 2006, algorithm 4.1).

    Parameters
    ----------
    operator
        A.
    X : array, shape (n, WIDTH)
        Overwritten.
    degree
        q >= 1; the cost is q products.
    cut, bound
        Interval to damp, low < cut < bound.
    low
        Where the filter is 1: the lowest eigenvalue.
    """
    half, centre = (bound - cut) / 2, (bound + cut) / 2
    sigma = half / (low - centre)
    tau = 2 / sigma
    Y = np.zeros_like(X)
    operator.step(X, Y, sigma / half, -centre * sigma / half, 0.0)
    for _ in range(2, degree + 1):
        following = 1 / (tau - sigma)
        operator.step(Y, X, 2 * following / half, -2 * following * centre / half, sigma * following)
        X, Y = Y, X
        sigma = following
    return Y


def degree_for(reduction: float, value: float, cut: float, bound: float) -> int:
    """Return the degree at which `value` is amplified `reduction` times over the cut.

    Parameters
    ----------
    reduction
        At least 1.
    value
        An eigenvalue below the cut.
    """
    x = 1 + 2 * max(cut - value, 1e-12) / (bound - cut)
    return math.ceil(math.acosh(max(reduction, 1.0)) / math.acosh(x))


def safe_degree(cut: float, bound: float, dtype: np.dtype[Any]) -> int:
    """Return the largest degree that rounding allows, at least 1.

    Rounding errors in the direction of the null vector are amplified most, though no column holds
    it: past a certain ratio to the columns next to the cut they would drown these.
    """
    most = 1e7 if dtype == np.float32 else 1e13
    return max(1, degree_for(most, 0.0, cut, bound) - 1)


@dataclass(frozen=True)
class Rotation:
    """What a Rayleigh-Ritz step does to a block of vectors: X <- Y C.

    Attributes
    ----------
    values : array, shape (m,)
        Ritz values, ascending; inf where a column carries no new direction.
    C : array, shape (m, m)
        0 in such columns.
    """

    values: NDArray[np.float64]
    C: NDArray[np.float64]

    @property
    def rank(self) -> int:
        """Number of columns that carry a direction."""
        return int(np.isfinite(self.values).sum())


def rayleigh_ritz(G: NDArray[np.float64], H: NDArray[np.float64]) -> Rotation:
    """Return the Ritz values of A in the span of Y.

    Parameters
    ----------
    G, H : array, shape (m, m)
        Y^T Y and Y^T A Y.
    """
    length = np.sqrt(np.diag(G))
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    share, U = np.linalg.eigh(scale[:, None] * G * scale)
    keep = share > 1e-11 * share[-1]
    T = scale[:, None] * U[:, keep] / np.sqrt(share[keep])
    values, Q = np.linalg.eigh(T.T @ ((H + H.T) / 2) @ T)
    m = len(G)
    C = np.zeros((m, m))
    C[:, : len(values)] = T @ Q
    return Rotation(np.concatenate([values, np.full(m - len(values), np.inf)]), C)


class NullSpace:
    """Orthonormal null vectors of a Laplacian: one for each connected component.

    Parameters
    ----------
    null : array, shape (n,)
        The positive vector that is the null vector on every component.
    component : array of int, shape (n,), optional
        Component of each row; one component by default.
    """

    def __init__(
        self, null: NDArray[np.float64], component: NDArray[np.int32] | None = None
    ) -> None:
        self.component = np.zeros(len(null), np.int32) if component is None else component
        self.count = int(self.component.max()) + 1
        lengths = np.sqrt(np.bincount(self.component, null * null, self.count))
        self.entries = null / lengths[self.component]

    def remove_from(self, X: Array) -> None:
        """Make the columns of X orthogonal to every null vector, in place.

        A filter amplifies the null vectors most of all: what rounding leaves of them in a column
        near the cut would otherwise outgrow it.
        """
        for column in range(X.shape[1]):
            shares = np.bincount(self.component, self.entries * X[:, column], self.count)
            X[:, column] -= (self.entries * shares[self.component]).astype(X.dtype)
