"""Labels of few rows spread over a graph, as linear systems with its Laplacian.

A column is one class of one fit, so that a group of columns holds several classes, several training
sets, or both. Rows of X follow the operator. Every function holds X and at most four more arrays of
its shape.

    method            known rows           elsewhere      source
    interpolate       f = y                L f = 0        Zhu et al. 2003; Belkin 2003
    regularize        f near y             S f = 0        Belkin 2003
    poisson           L f = y - mean y     L f = 0        Calder et al. 2020
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.conjugate import F8, Allocate, Solved, System, solve
from eigenscape.learn.propagate.kernels.heatkernel import solve_kernel
from eigenscape.learn.propagate.kernels.multigrid import CoarseGraph, Cycle, levels_of
from eigenscape.learn.propagate.kernels.smoothness import Marked, Power
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator

Start = Callable[[NDArray[np.int64], Array, Array], None]
"""Called with the rows on which B is not 0, B there and zeros X, sets X to about the solution."""

_MOST_PRODUCTS = 2000

_FIRM = 1e4
"""Weight of a row that stays as it is, in parts of its diagonal: coarse graphs hold its aggregate."""


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
    operator: Operator, labels: ColumnLabels, allocate: Allocate, *,
    graphs: Sequence[CoarseGraph] | None = None, tolerance: float = 1e-4, most: int = _MOST_PRODUCTS,
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
    graphs
        See `regularize`.
    tolerance, most
        See `conjugate.solve`.
    """
    # Constants are harmonic already, so only the rest is solved for: smaller numbers, less rounding.
    weights = operator.null[labels.rows] if operator.singular else np.zeros(len(labels.rows))
    share, inverse = labels.share(weights), 1 / operator.diagonal
    rest, free, nothing, inverse_at = (allocate(len(labels.rows)) for _ in range(4))
    labels.take_off(weights, share, rest)
    for piece, known in labels.pieces():
        free[piece] = ~known
        inverse_at[piece] = ~known * inverse[labels.rows[piece], None]
    X = allocate(operator.rows)
    X[labels.rows] = rest
    marked = Marked(Power(operator), labels.rows, free, nothing)
    cycle = None
    if graphs is not None:
        firm = allocate(len(labels.rows))
        firm[:] = _FIRM * (1 - free) * operator.diagonal[labels.rows, None]
        cycle = Cycle(levels_of(operator, graphs, labels.rows, firm, allocate), free=free)
    system = System(marked, inverse, labels.rows, inverse_at, nothing, cycle)
    solved = solve(system, X, allocate, tolerance=tolerance, most=most)
    _add_outer(X, operator.null, share)
    for piece, known in labels.pieces():
        at = labels.rows[piece]
        X[at] = np.where(known, labels.values[piece], X[at])
    return Propagated(X, solved)


def regularize(
    operator: Operator, labels: ColumnLabels, allocate: Allocate, *, gamma: float,
    power: int | None = 1, time: float = 1.0, graphs: Sequence[CoarseGraph] | None = None,
    tolerance: float = 1e-4, most: int = _MOST_PRODUCTS,
) -> Propagated:  # fmt: skip
    """Return the functions with least square error and roughness: Tikhonov regularisation.

    The minimum of (1 / k) sum (f_i - y_i)^2 + gamma f^T S f over the k rows that a column knows,
    (P + k gamma S) f = P y, where y has its mean subtracted (Belkin 2003, 3.7.1). The mean is not
    added again: classes are compared better without it, since far from all labels f falls to it.
    The mean of several labels of a row counts as often in the sum, in k and in P.
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
    graphs
        Smaller graphs of the operator, for multigrid cycles: powers are solved in a tenth of the
        iterations, with two more arrays of a third of the rows. None for no cycles.
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
    ones, penalty = np.ones(len(labels.rows)), gamma * np.maximum(labels.counts(), 1)
    rest = allocate(len(labels.rows))
    labels.take_off(ones, labels.share(ones), rest)
    X = allocate(operator.rows)
    if power is None:
        solved = solve_kernel(operator, labels, rest, penalty, time, X, allocate, tolerance, most)
        return Propagated(X, solved)
    spare = allocate(operator.rows) if power > 1 else None
    diagonal = operator.diagonal.astype(np.float64) ** power
    keep, added, inverse_at = (allocate(len(labels.rows)) for _ in range(3))
    keep[:], source = 1, rest
    for piece, known in labels.pieces():
        # Divided by k gamma, so that only the labelled rows depend on the column.
        weight, at = labels.numbers(piece, known) / penalty, labels.rows[piece]
        added[piece], source[piece] = weight, weight * rest[piece]
        inverse_at[piece] = 1 / (diagonal[at, None] + weight)
        # From 0 the residual on the labelled rows alone would decide, the more the smaller gamma is.
        X[at] = inverse_at[piece] * source[piece]
    cycle = None
    if graphs is not None:
        # (L + marks^(1/p))^p is about L^p + marks.
        levels = levels_of(operator, graphs, labels.rows, added ** (1 / power), allocate)
        cycle = Cycle(levels, power, spare)
    system = System(
        Marked(Power(operator, power, spare), labels.rows, keep, added),
        (1 / diagonal).astype(kind),
        labels.rows,
        inverse_at,
        source,
        cycle,
    )
    return Propagated(X, solve(system, X, allocate, tolerance=tolerance, most=most))


def poisson(
    operator: Operator, labels: ColumnLabels, allocate: Allocate, *,
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
        What each column knows: 1 for rows of its class, 0 for others. The mean of several labels is as many
        sources.
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
    source = allocate(len(labels.rows))
    offset = sources(operator, labels, source, component)
    inverse, spread = 1 / operator.diagonal, allocate(len(labels.rows))
    spread[:] = inverse[labels.rows, None]
    system = System(Power(operator), inverse, labels.rows, spread, source)
    X = allocate(operator.rows)
    if start is not None:
        start(labels.rows, source, X)
    solved = solve(system, X, allocate, tolerance=tolerance, most=most)
    where = np.zeros(operator.rows, np.int32) if component is None else component
    _centre(X, operator.diagonal, where, offset)
    if shares is not None:
        mean = labels.share(np.ones(len(labels.rows)))
        X *= np.divide(shares, mean, out=np.ones(WIDTH), where=mean > 0).astype(X.dtype)
    return Propagated(X, solved)


def sources(
    operator: Operator,
    labels: ColumnLabels,
    source: Array,
    component: NDArray[np.int32] | None = None,
) -> F8:
    """Set the right-hand sides of `poisson`; return the mean that each component is to have.

    Parameters
    ----------
    operator, labels, component
        See `poisson`.
    source : array, shape (l, WIDTH)
        Set to the right-hand sides, which sum to 0 on every component.

    Returns
    -------
    array, shape (components, WIDTH)

    Raises
    ------
    ValueError
        The operator is not an unnormalised Laplacian.
    """
    if not operator.singular or np.ptp(operator.null) > 0:
        raise ValueError("Poisson learning needs the unnormalised Laplacian, without a potential")
    ones = np.ones(len(labels.rows))
    overall = labels.share(ones)
    if component is None:
        labels.take_off(ones, overall, source)
        if labels.number is not None:
            source *= labels.number
        return np.zeros((1, WIDTH))
    where = component[labels.rows]
    offset = np.zeros((int(component.max()) + 1, WIDTH))
    for place in np.unique(where):
        own = np.flatnonzero(where == place)
        number = None if labels.number is None else labels.number[own]
        part = ColumnLabels(labels.rows[own], labels.values[own], number)
        mean, rest = part.share(ones[own]), np.empty((len(own), WIDTH), source.dtype)
        part.take_off(ones[own], mean, rest)
        if number is not None:
            rest *= number
        source[own] = rest
        offset[place] = np.where(part.counts() > 0, mean - overall, 0)
    return offset


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
