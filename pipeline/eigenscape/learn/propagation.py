"""Labels of few rows spread over a graph, as linear systems with its Laplacian.

A column is one class of one fit, so that a group of columns holds several classes, several training
sets, or both. Rows of X follow the operator. Every function holds X and at most four more arrays of
its shape.

    method            known rows           elsewhere      source
    interpolate       f = y                L f = 0        Zhu et al. 2003; Belkin 2003
    regularize        f near y             S f = 0        Belkin 2003
    poisson           L f = y - mean y     L f = 0        Calder et al. 2020
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.learn.conjugate import F8, Allocate, Solved, System, solve
from eigenscape.learn.smoothness import Heat, Marked, Power
from eigenscape.learn.targets import Labels
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.operator import Array, Operator

Start = Callable[[NDArray[np.int64], F8, Array], None]
"""Called with the rows on which B is not 0, B there and zeros X, sets X to about the solution."""

_MOST_PRODUCTS = 2000


@dataclass(frozen=True)
class Propagated:
    """Columns over all rows, and how well they fulfil their equations.

    Attributes
    ----------
    X : array, shape (n, WIDTH)
        Of the type of the operator.
    solved
        Iterations and relative residuals.
    """

    X: Array
    solved: Solved


def interpolate(
    operator: Operator, labels: Labels, allocate: Allocate, *,
    tolerance: float = 1e-4, most: int = _MOST_PRODUCTS,
) -> Propagated:  # fmt: skip
    """Return the smoothest functions that have the given values: interpolated regularisation.

    f = y on the known rows and L_UU f_U = -L_UL y on the others: a harmonic function, each of whose
    values is the weighted mean of its neighbours' (Zhu, Ghahramani, Lafferty 2003; Belkin 2003,
    3.7.1, whose printed solution lacks the minus). On a connected component without known rows f is
    the multiple of the null vector that is closest to all labels: their mean.

    Parameters
    ----------
    operator
        L.
    labels
        What each column knows: -1 and 1, or 0 and 1, for a class against all others.
    allocate
        Gives X and three work arrays.
    tolerance, most
        See `conjugate.solve`.
    """
    kind = operator.diagonal.dtype
    # Constants are harmonic already, so only the rest is solved for: smaller numbers, less rounding.
    weights = operator.null[labels.rows] if operator.singular else np.zeros(len(labels.rows))
    rest, share = labels.centred(weights)
    free = ~labels.known
    inverse = 1 / operator.diagonal
    X = allocate(operator.rows)
    X[labels.rows] = rest
    system = System(
        Marked(Power(operator), labels.rows, free.astype(kind), np.zeros(rest.shape, kind)),
        inverse,
        labels.rows,
        (free * inverse[labels.rows, None]).astype(kind),
        np.zeros(rest.shape, kind),
    )
    solved = solve(system, X, allocate, tolerance=tolerance, most=most)
    _add_outer(X, operator.null, share)
    X[labels.rows] = np.where(free, X[labels.rows], labels.values)
    return Propagated(X, solved)


def regularize(
    operator: Operator, labels: Labels, allocate: Allocate, *, gamma: float,
    power: int | None = 1, time: float = 1.0,
    tolerance: float = 1e-4, most: int = _MOST_PRODUCTS,
) -> Propagated:  # fmt: skip
    """Return the functions with least square error and roughness: Tikhonov regularisation.

    The minimum of (1 / k) sum (f_i - y_i)^2 + gamma f^T S f over the k rows that a column knows,
    (P + k gamma S) f = P y, where y has its mean subtracted (Belkin 2003, 3.7.1). The mean is not
    added again: classes are compared better without it, since far from all labels f falls to it.
    f is 0 on a connected component without known rows.

    S is L^p or exp(t L), the inverse of the heat kernel. Belkin names exp(-t L), which as S would
    punish smooth functions most; as the kernel of the space of functions it is what Kondor and
    Lafferty (2002) use, and that is what is solved here: f = exp(-t L) P^T a with
    (P exp(-t L) P^T + k gamma) a = P y, conjugate gradients on the labelled rows alone.

    Parameters
    ----------
    operator
        L.
    labels
        What each column knows.
    allocate
        Gives X and three work arrays, four with a power from 2 on; for the heat kernel two, and four
        of the labelled rows.
    gamma
        Above 0; the larger, the smoother. In units of 1 / S.
    power
        p; None for the heat kernel.
    time
        t of the heat kernel, in units of 1 / L.
    tolerance, most
        See `conjugate.solve`.

    Raises
    ------
    ValueError
        gamma, power or time is not positive.
    """
    if not (gamma > 0 and time > 0 and (power is None or power >= 1)):
        raise ValueError(f"gamma {gamma}, time {time} and power {power} have to be positive")
    kind = operator.diagonal.dtype
    rest, _ = labels.centred(np.ones(len(labels.rows)))
    count = labels.known.sum(axis=0)
    X = allocate(operator.rows)
    if power is None:
        penalty = gamma * np.maximum(count, 1)
        solved = _solve_kernel(operator, labels, rest, penalty, time, X, allocate, tolerance, most)
        return Propagated(X, solved)
    # Divided by k gamma, so that only the labelled rows depend on the column.
    weight = labels.known / (gamma * np.maximum(count, 1))
    spare = allocate(operator.rows) if power > 1 else None
    diagonal = operator.diagonal.astype(np.float64) ** power
    system = System(
        Marked(
            Power(operator, power, spare),
            labels.rows,
            np.ones(rest.shape, kind),
            weight.astype(kind),
        ),
        (1 / diagonal).astype(kind),
        labels.rows,
        (1 / (diagonal[labels.rows, None] + weight)).astype(kind),
        (weight * rest).astype(kind),
    )
    # From 0 the residual on the labelled rows alone would decide, the more the smaller gamma is.
    X[labels.rows] = system.inverse_at * system.source
    return Propagated(X, solve(system, X, allocate, tolerance=tolerance, most=most))


@dataclass(frozen=True)
class _Sampled:
    """P K P^T + diag(penalty), columns by columns, on the labelled rows alone."""

    kernel: Heat
    rows: NDArray[np.int64]
    known: Array
    penalty: Array
    X: Array
    image: Array

    def apply(self, X: Array, Z: Array) -> None:
        self.X[:] = 0
        self.X[self.rows] = self.known * X
        self.kernel.apply(self.X, self.image)
        Z[:] = self.known * self.image[self.rows] + self.penalty * X


def _solve_kernel(
    operator: Operator, labels: Labels, rest: F8, penalty: F8, time: float,
    X: Array, allocate: Allocate, tolerance: float, most: int,
) -> Solved:  # fmt: skip
    """Solve for the heat kernel's coefficients on the labelled rows; X becomes its image."""
    kind, rows = operator.diagonal.dtype, labels.rows
    known = labels.known.astype(kind)
    whole, spare = allocate(operator.rows), allocate(operator.rows)
    kernel = Heat(operator, time, spare)
    product = _Sampled(kernel, rows, known, penalty.astype(kind), whole, X)
    a, places = allocate(len(rows)), np.arange(len(rows))
    ones = np.ones(rest.shape, kind)
    system = System(product, ones[:, 0].copy(), places, ones, rest.astype(kind))
    solved = solve(system, a, allocate, tolerance=tolerance, most=most)
    whole[:] = 0
    whole[rows] = known * a
    kernel.apply(whole, X)
    return solved


def poisson(
    operator: Operator, labels: Labels, allocate: Allocate, *,
    component: NDArray[np.int32] | None = None, shares: F8 | None = None,
    start: Start | None = None, tolerance: float = 1e-4, most: int = _MOST_PRODUCTS,
) -> Propagated:  # fmt: skip
    """Return the potentials of sources at the known rows: Poisson learning.

    L u = sum over the known rows j of (y_j - mean y) delta_j, with sum_i d_i u_i = 0 (Calder, Cook,
    Thorpe, Slepcev 2020). Unlike a harmonic function it does not become flat away from few labels.

    Every connected component is solved for itself, with the mean of its own labels; that mean less
    the mean of all is added, so that a component in which one class alone is known goes to that
    class. u is 0 on a component without known rows.

    Parameters
    ----------
    operator
        L, unnormalised.
    labels
        What each column knows: 1 for rows of its class, 0 for others.
    allocate
        Gives X and three work arrays.
    component : array of int, shape (n,), optional
        Connected component of each row; one component by default.
    shares : array, shape (WIDTH,), optional
        Share of all rows that each column's class is known to have: columns are multiplied by it
        and divided by the mean of their labels.
    start
        What is known of L^+ beforehand; nothing by default.
    tolerance, most
        See `conjugate.solve`.

    Raises
    ------
    ValueError
        The operator is not an unnormalised Laplacian.
    """
    source, offset = sources(operator, labels, component)
    kind, inverse = operator.diagonal.dtype, 1 / operator.diagonal
    spread = np.broadcast_to(inverse[labels.rows, None], source.shape).copy()
    system = System(Power(operator), inverse, labels.rows, spread, source.astype(kind))
    X = allocate(operator.rows)
    if start is not None:
        start(labels.rows, source, X)
    solved = solve(system, X, allocate, tolerance=tolerance, most=most)
    where = np.zeros(operator.rows, np.int32) if component is None else component
    _centre(X, operator.diagonal, where, offset)
    if shares is not None:
        mean = labels.centred(np.ones(len(labels.rows)))[1]
        X *= np.divide(shares, mean, out=np.ones(WIDTH), where=mean > 0).astype(kind)
    return Propagated(X, solved)


def sources(
    operator: Operator, labels: Labels, component: NDArray[np.int32] | None = None
) -> tuple[F8, F8]:
    """Return the right-hand sides of `poisson`, and the mean that each component is to have.

    Returns
    -------
    source : array, shape (l, WIDTH)
        They sum to 0 on every component.
    offset : array, shape (components, WIDTH)

    Raises
    ------
    ValueError
        The operator is not an unnormalised Laplacian.
    """
    if not operator.singular or np.ptp(operator.null) > 0:
        raise ValueError("Poisson learning needs the unnormalised Laplacian, without a potential")
    overall = labels.centred(np.ones(len(labels.rows)))[1]
    where = np.zeros(len(labels.rows), np.intp) if component is None else component[labels.rows]
    source = np.zeros(labels.values.shape)
    offset = np.zeros((1 if component is None else int(component.max()) + 1, WIDTH))
    for number in np.unique(where):
        own = where == number
        part = Labels(labels.rows[own], labels.values[own])
        source[own], mean = part.centred(np.ones(int(own.sum())))
        offset[number] = np.where(part.known.any(axis=0), mean - overall, 0)
    return source, offset


@njit(cache=True, nogil=True)
def _centre(X, weights, component, means):  # type: ignore[no-untyped-def]
    """Shift the columns of X, in place, to given weighted means on every component."""
    shift, total = np.zeros(means.shape), np.zeros(len(means))
    for row in range(len(X)):
        total[component[row]] += weights[row]
        for column in range(WIDTH):
            shift[component[row], column] += np.float64(weights[row]) * X[row, column]
    for part in range(len(means)):
        for column in range(WIDTH):
            shift[part, column] = means[part, column] - shift[part, column] / total[part]
    for row in range(len(X)):
        for column in range(WIDTH):
            X[row, column] += shift[component[row], column]


@njit(cache=True, nogil=True)
def _add_outer(X, column_vector, row_vector):  # type: ignore[no-untyped-def]
    for row in range(len(X)):
        for column in range(WIDTH):
            X[row, column] += column_vector[row] * row_vector[column]
