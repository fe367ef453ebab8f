"""The Chebyshev filter on arrays in memory, and the null vectors that are kept out of it.

The filter of degree q is a Chebyshev polynomial stretched so that [cut, bound] is where it stays
small: eigenvalues below the cut are amplified, the more the lower they are.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.operator import Array, read_only

_LOCKED_NOISE = 0.1
"""Length that locked vectors may have, after a projection, beside a column of length 1 at the cut."""

_LEAST_SHARE = 1e-12
"""Share of the damped interval that a value lies below the cut at least."""

_MOST_SPREAD = 2e4
"""Times that a filter in half precision may amplify the lowest direction over the last wanted one."""

_MOST_CLEAN = 1001
"""Degree below which that is sought: no filter is longer than `columns._MOST_DEGREE`."""


@dataclass(frozen=True)
class FilterPlan:
    """A Chebyshev filter.

    Attributes
    ----------
    degree
        At least 1; the cost is as many products.
    cut, bound
        The interval that it damps, low < cut < bound.
    low
        Where it is 1: the lowest eigenvalue.
    times
        How often it is applied, with locked vectors projected out after each time.
    between
        Numbers of locked vectors, the lowest ones, that are projected out after each time but the last.
    halves
        Whether it works in half precision, on what the vectors lack (`corrections`).
    groups
        Groups of columns that are filtered, the others stay as they are; None for all that are not locked.
    """

    degree: int
    cut: float
    bound: float
    low: float
    times: int = 1
    between: tuple[int, ...] = ()
    halves: bool = False
    groups: tuple[int, ...] | None = None


class Steps(Protocol):
    """The part of an operator that a filter needs."""

    def step(self, X: Array, Z: Array, a: float, b: float, c: float) -> None:
        """Z <- a A X + b X - c Z."""


def chebyshev_filter(operator: Steps, X: Array, Y: Array, plan: FilterPlan) -> Array:
    """Return p(A) X for one group of columns.

    Scaled so that p(low) = 1, which keeps single precision from overflowing (Zhou, Saad, Tiago,
    Chelikowsky 2006, algorithm 4.1).

    Parameters
    ----------
    operator
        A.
    X, Y : array, shape (n, WIDTH)
        Overwritten; Y is zero. The result is one of them.
    plan
        p.
    """
    for factors in recurrence(plan):
        operator.step(X, Y, *factors)
        X, Y = Y, X
    return X


def recurrence(plan: FilterPlan) -> Iterator[tuple[float, float, float]]:
    """Yield a, b and c of every step ``Z <- a A X + b X - c Z`` of a filter (see `chebyshev_filter`).

    After it X and Z change places; the first Z is zero.
    """
    half, centre = (plan.bound - plan.cut) / 2, (plan.bound + plan.cut) / 2
    sigma = half / (plan.low - centre)
    tau = 2 / sigma
    yield sigma / half, -centre * sigma / half, 0.0
    for _ in range(2, plan.degree + 1):
        following = 1 / (tau - sigma)
        yield 2 * following / half, -2 * following * centre / half, sigma * following
        sigma = following


def degree_for(reduction: float, value: float, cut: float, bound: float) -> int:
    """Return the degree at which `value` is amplified `reduction` times over the cut.

    Parameters
    ----------
    reduction
        At least 1.
    value
        An eigenvalue below the cut.
    cut, bound
        Ends of the interval that the filter damps; the bound is one of the spectrum.
    """
    return math.ceil(math.acosh(max(reduction, 1.0)) / _growth(value, cut, bound))


def _growth(value: float, cut: float, bound: float) -> float:
    """Return arcosh of the stretched value: per degree a filter grows by its exponential there."""
    return math.acosh(1 + max(2 * (cut - value) / (bound - cut), _LEAST_SHARE))


def left_by_guards(
    plan: FilterPlan,
    value: float,
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the share of an error in direction of each guard that is left if it is not filtered.

    A Ritz vector lacks next to nothing in the direction of another: the product of what both lack. A filter
    leaves that as it is, but for its damping, and a Rayleigh-Ritz step takes it out but for what the guard
    itself lacks.

    Parameters
    ----------
    plan
        A filter of corrections, which acts on every column by itself.
    value
        The last wanted eigenvalue.
    values, residuals : array, shape (m,)
        Ritz values and residuals of the guards.
    """
    gap = max(plan.cut - value, 1e-12)
    lacking = residuals / gap
    # The eigenvalue is below the Ritz value by about the square of the residual, divided by the gap.
    below = np.maximum(plan.cut - (values - gap * lacking**2), 0)
    growth = np.arccosh(1 + 2 * below / (plan.bound - plan.cut))
    damping = plan.degree * (growth - _growth(value, plan.cut, plan.bound))
    left: NDArray[np.float64] = lacking**2 * np.exp(np.minimum(damping, 300))
    return left


def safe_degree(plan: FilterPlan, dtype: np.dtype[Any]) -> int:
    """Return the largest degree that rounding allows, at least 1.

    Rounding leaves a share eps of every direction in every column, and the lowest is amplified
    most. Once it outgrows the column's own direction the columns become nearly parallel, and the
    Rayleigh-Ritz step, whose images are rounded too, cannot tell them apart any more.
    """
    most = min(1 / float(np.finfo(dtype).eps), 1e13)
    return max(1, degree_for(most, plan.low, plan.cut, plan.bound) - 1)


def safe_correction_degree(plan: FilterPlan, value: float) -> int:
    """Return the largest degree of a filter of corrections in half precision, at least 1.

    Rounding leaves a share of every direction in what a column lacks, and the lowest is amplified
    most, but no more than the lowest is over the column's own (see `corrections`).

    Parameters
    ----------
    plan
        The filter, of any degree.
    value
        The last wanted eigenvalue.
    """
    apart = _growth(plan.low, plan.cut, plan.bound) - _growth(value, plan.cut, plan.bound)
    return max(1, int(math.log(_MOST_SPREAD) / max(apart, 1e-12)))


def clean_degree(
    plan: FilterPlan,
    dtype: np.dtype[Any],
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
) -> int:
    """Return the largest degree after which a projection still removes locked vectors, at least 1.

    A locked vector with residual r lacks about r / (distance to the cut) of the true one, and so
    much of that is left in the other columns, or what rounding leaves if it is more. A filter
    amplifies it as the low vector that it is; the projection takes it out but for the same share
    once more. What is left of all of them has to stay small beside a column at the cut.

    Parameters
    ----------
    plan
        The filter, of any degree.
    dtype
        Floating type of the products.
    values, residuals : array, shape (l,)
        Of the locked vectors.
    """
    left = _leftovers(plan, dtype, values, residuals)
    least, most = 1, _MOST_CLEAN
    while most - least > 1:
        degree = (least + most) // 2
        if math.sqrt(left(degree).sum()) <= _LOCKED_NOISE:
            least = degree
        else:
            most = degree
    return least


def amplified_counts(
    plan: FilterPlan,
    dtype: np.dtype[Any],
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
) -> tuple[int, ...]:
    """Return how many locked vectors to project out after each application of a filter but the last.

    Those near the cut are amplified so little that one of several projections removes them; all are
    projected out after the last application. None is left in until it has outgrown what rounding leaves of
    it in a projection, as it would grow from one to the next (see `safe_degree`).

    Parameters
    ----------
    plan
        The filter, of any number of applications.
    dtype
        Floating type of the products.
    values, residuals : array, shape (l,)
        Of the locked vectors, ascending.
    """
    left, counts = _leftovers(plan, dtype, values, residuals), []
    most = [safe_degree(replace(plan, low=value), dtype) for value in values.tolist()]
    since = np.zeros(len(values), np.int64)
    for _ in range(plan.times - 1):
        since += plan.degree
        ahead = np.where(since + plan.degree > most, np.inf, left(since + plan.degree))
        counts.append(int(np.count_nonzero(np.cumsum(ahead[::-1]) > _LOCKED_NOISE**2)))
        since[: counts[-1]] = 0
    return tuple(counts)


def _leftovers(
    plan: FilterPlan,
    dtype: np.dtype[Any],
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
) -> Callable[[int | NDArray[np.int64]], NDArray[np.float64]]:
    """Return a function of a filter's degree: squared lengths that a projection after it leaves."""
    below = np.maximum(plan.cut - values, 1e-12)
    share = np.log(np.maximum(residuals / below, float(np.finfo(dtype).eps)))
    growth = np.arccosh(1 + 2 * below / (plan.bound - plan.cut))

    def left(degree: int | NDArray[np.int64]) -> NDArray[np.float64]:
        squares: NDArray[np.float64] = np.exp(2 * np.minimum(2 * share + degree * growth, 300)) / 4
        return squares

    return left


class NullSpace:
    """Orthonormal null vectors of a Laplacian: one for each connected component.

    Parameters
    ----------
    null : array, shape (n,)
        The positive vector that is the null vector on every component.
    component : array of int, shape (n,), optional
        Component of each row; one component by default.
    singular
        False for an operator without null vectors: there are none then, and nothing is removed.

    Attributes
    ----------
    count
        Null vectors.
    squares : array, shape (components,)
        Squared length of `null` on every component.
    """

    def __init__(
        self,
        null: NDArray[np.float64],
        component: NDArray[np.int32] | None = None,
        *,
        singular: bool = True,
    ) -> None:
        self.null = read_only(null)
        self._several = component
        component = np.zeros(len(null), np.int32) if component is None else component
        self.component = read_only(component)
        pieces = int(self.component.max()) + 1
        self.count = pieces if singular else 0
        self.squares: NDArray[np.float64] = np.asarray(
            np.bincount(self.component, null * null, pieces), np.float64
        )

    @cached_property
    def entries(self) -> NDArray[np.float64]:
        """The null vectors, of shape (n,): they do not overlap."""
        return self.null / np.sqrt(self.squares)[self.component]

    def part_of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the components of one vector, shape (n,), along the null vectors."""
        if not self.count:
            return np.zeros_like(x)
        shares = np.bincount(self.component, self.entries * x, self.count)
        return np.asarray(self.entries * shares[self.component])

    def remove_from(self, X: Array) -> None:
        """Make the columns of X orthogonal to every null vector, in place.

        A filter amplifies the null vectors most of all: what rounding leaves of them in a column
        near the cut would otherwise outgrow it.
        """
        if self.count:
            sums = tiles.null_sums(self.null, self._several, X, tiles.tile_rows(len(X)))
            shares = tiles.null_shares(sums, self.squares)
            kernels.subtract_null(self.null, self.component, shares, X)
