"""Smoothness matrices of a graph as products with groups of columns, changed on a few rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.polynomial.chebyshev import chebinterpolate
from numpy.typing import NDArray
from scipy.special import ive

from eigenscape.learn.propagate.kernels.conjugate import F8, Product
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator, upper_bound

_TAIL = 1e-4
"""Sum of the coefficients that `Steps` leaves out."""


@dataclass(frozen=True)
class Power:
    """The smoothness matrix L^p, by p products.

    Attributes
    ----------
    operator
        L.
    exponent
        p, at least 1.
    spare : array, shape (n, WIDTH), optional
        Finite; needed from p = 2 on.
    """

    operator: Operator
    exponent: int = 1
    spare: Array | None = None

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- L^p X."""
        for left in range(self.exponent, 0, -1):
            image = Z if left % 2 else self.spare
            assert image is not None, "a power needs a spare array"
            self.operator.step(X, image, 1.0, 0.0, 0.0)
            X = image


@dataclass(frozen=True)
class Marked:
    """A smoothness matrix S that is changed on a few rows: Z_i = keep_i (S X)_i + added_i X_i.

    Attributes
    ----------
    smooth
        S.
    rows : array of int, shape (l,)
    keep, added : array, shape (l, WIDTH)
    """

    smooth: Product
    rows: NDArray[np.int64]
    keep: Array
    added: Array

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- S X, changed on the rows."""
        self.smooth.apply(X, Z)
        _change(X, Z, self.rows, self.keep, self.added)


@njit(cache=True, nogil=True)
def _change(X, Z, rows, keep, added):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        for column in range(WIDTH):
            Z[rows[number], column] = (
                keep[number, column] * Z[rows[number], column]
                + added[number, column] * X[rows[number], column]
            )


@dataclass(frozen=True)
class Heat:
    """The heat kernel exp(-t L), by an expansion in Chebyshev polynomials (Hammond et al. 2011).

    Attributes
    ----------
    operator
        L.
    time
        t.
    spare : array, shape (n, WIDTH)
        Finite.
    """

    operator: Operator
    time: float
    spare: Array

    def coefficients(self, dtype: Any) -> F8:
        """Return those of the expansion on [0, bound]: as many as the floating type can tell from 0."""
        reach = self.time * self.operator.bound / 2
        # Bessel functions fall faster than any power once their order exceeds the square root.
        enough = int(20 + 10 * np.sqrt(reach))
        series: F8 = 2 * (-1.0) ** np.arange(enough) * ive(np.arange(enough), reach)
        series[0] /= 2
        return series[: int(np.flatnonzero(np.abs(series) > np.finfo(dtype).eps / 100).max()) + 1]

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- exp(-t L) X."""
        apply_series(self.operator, self.coefficients(X.dtype), X, Z, self.spare)


@dataclass(frozen=True)
class Inverse:
    """The smoother (1 + w L)^-1, by its expansion in Chebyshev polynomials.

    Attributes
    ----------
    operator
        L.
    weight
        w.
    spare : array, shape (n, WIDTH)
        Finite.
    """

    operator: Operator
    weight: float
    spare: Array

    def coefficients(self, dtype: Any) -> F8:
        """Return those of the expansion on [0, bound]: as many as the floating type can tell from 0.

        1 / (c + d x) = (1 + 2 sum_k (-r)^k T_k(x)) / s, s = sqrt(c^2 - d^2), r = (c - s) / d.
        """
        d = self.weight * self.operator.bound / 2
        # c - s without the difference of large numbers that are alike.
        s = np.sqrt(1 + 2 * d)
        ratio = d / (1 + d + s)
        # The share of the sum that a term is: 2 r^k (1 - r).
        enough = np.log(np.finfo(dtype).eps / 100) / np.log(ratio) if ratio > 0 else 0
        series: F8 = 2 * (-ratio) ** np.arange(int(enough) + 1) / s
        series[0] /= 2
        return series

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- (1 + w L)^-1 X."""
        apply_series(self.operator, self.coefficients(X.dtype), X, Z, self.spare)


@dataclass(frozen=True)
class Steps:
    """Explicit steps of the heat equation, (1 - L / d)^count with d the largest entry of the diagonal.

    Written as Chebyshev polynomials on [0, upper bound of the spectrum] most of the terms are
    next to 0: 40 steps take about 20 products.

    Attributes
    ----------
    operator
        L.
    count
        Number of steps.
    spare : array, shape (n, WIDTH)
        Finite.
    """

    operator: Operator
    count: int
    spare: Array

    @cached_property
    def bounded(self) -> Operator:
        """The operator with a bound that is close to its largest eigenvalue."""
        return replace(self.operator, bound=upper_bound(self.operator))

    @cached_property
    def coefficients(self) -> F8:
        """Those of the expansion, without a tail that changes nothing by more than a ten-thousandth."""
        reach = self.bounded.bound / float(self.operator.diagonal.max())

        def steps(y: Any) -> Any:
            return (1 - reach * (y + 1) / 2) ** self.count

        series: F8 = chebinterpolate(steps, self.count)
        tails = np.cumsum(np.abs(series[::-1]))[::-1]
        return series[: max(1, int((tails > _TAIL).sum()))]

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- (1 - L / d)^count X."""
        apply_series(self.bounded, self.coefficients, X, Z, self.spare)


def apply_series(operator: Operator, coefficients: F8, X: Array, Z: Array, spare: Array) -> None:
    """Z <- sum_k c_k T_k(2 L / bound - 1) X by Clenshaw's recurrence, which needs no third array.

    Parameters
    ----------
    operator
        L.
    coefficients : array, shape (terms,)
    X, Z, spare : array, shape (n, WIDTH)
    """
    half = operator.bound / 2
    series = coefficients.astype(X.dtype)
    Z[:], spare[:] = 0, 0
    # Both take turns; with an even number of terms Z would not come last.
    last, before = (Z, spare) if len(series) % 2 else (spare, Z)
    for number in range(len(series) - 1, 0, -1):
        # last <- c X + 2 T before - last, T = (L - half) / half.
        operator.step(before, last, 2 / half, -2.0, 1.0)
        _add(last, series[number], X)
        last, before = before, last
    operator.step(before, last, 1 / half, -1.0, 1.0)
    _add(last, series[0], X)


@njit(cache=True, nogil=True)
def _add(Z, factor, X):  # type: ignore[no-untyped-def]
    for row in range(len(X)):
        for column in range(WIDTH):
            Z[row, column] += factor * X[row, column]
