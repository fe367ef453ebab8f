"""Classes of known sizes with short borders: heat steps and thresholds in turn."""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.learn.conjugate import F8, Allocate
from eigenscape.learn.propagation import Start, poisson, sources
from eigenscape.learn.targets import Labels
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.operator import Array, Operator

_MOST_TRIALS = 200
_SIZE_TOLERANCE = 1e-3
_FIRST_STEP, _LEAST_STEP, _MOST_STEP = 0.05, 1e-8, 1.0
"""Of the offsets, in units of the largest value."""


@dataclass(frozen=True)
class Thresholded:
    """One class for every row.

    Attributes
    ----------
    classes : array of int, shape (n,)
    sizes : array of int, shape (classes,)
        Rows of each class: as wanted, to a thousandth, wherever that can be had.
    offsets : array, shape (classes,)
        What was added to the columns; -inf for a class that is to have no rows.
    residual
        Largest relative residual of the potentials that were the start.
    """

    classes: NDArray[np.intp]
    sizes: NDArray[np.int64]
    offsets: F8
    residual: float = 0.0


def poisson_mbo(
    operator: Operator, labels: Labels, sizes: NDArray[np.int64], allocate: Allocate, *,
    component: NDArray[np.int32] | None = None, start: Start | None = None,
    rounds: int = 20, steps: int = 40, tolerance: float = 1e-4,
) -> Thresholded:  # fmt: skip
    """Return classes of given sizes, for one fit: Poisson learning, then PoissonMBO.

    Each round takes a few explicit steps of the heat equation with the sources of Poisson learning,
    u <- u - dt (L u - source) with dt = 1 / max d, and replaces u by the indicators of the classes
    that `threshold` finds (Calder, Cook, Thorpe, Slepcev 2020, algorithm 2, with offsets in place of
    multipliers).

    Parameters
    ----------
    operator
        L, unnormalised.
    labels
        Column c is 1 on the known rows of class c and 0 on all others; columns beyond the classes
        are NaN.
    sizes : array of int, shape (classes,)
        Rows of each class; they sum to n.
    allocate
        Gives five arrays, three of which are no longer used once the rounds start.
    component, start
        See `poisson`.
    rounds, steps
        Thresholds, and heat steps before each.
    tolerance
        Of Poisson learning, where the rounds start.

    Raises
    ------
    ValueError
        There are more classes than columns in a group, columns do not fit the classes, or the sizes
        do not sum to n.
    """
    classes = len(sizes)
    if classes > WIDTH:
        raise ValueError(f"{classes} classes do not fit into one group of {WIDTH} columns")
    if (labels.known.any(axis=0) != (np.arange(WIDTH) < classes)).any():
        raise ValueError(f"the first {classes} columns, and no others, need labels: one per class")
    _check_sizes(sizes, operator.rows)
    kind = operator.diagonal.dtype
    potentials = poisson(
        operator, labels, allocate, component=component, start=start, tolerance=tolerance
    )
    X = potentials.X
    Y = allocate(operator.rows)
    step = 1 / float(operator.diagonal.max())
    source = (step * sources(operator, labels, component)[0]).astype(kind)
    found = threshold(X, sizes)
    for number in range(rounds):
        # The first steps are taken from the potentials themselves, which say more than classes.
        if number:
            _indicate(found.classes, X)
        for _ in range(steps):
            operator.step(X, Y, -step, 1.0, 0.0)
            Y[labels.rows] += source
            X, Y = Y, X
        found = threshold(X, sizes)
    return replace(found, residual=float(potentials.solved.residuals.max()))


def threshold(X: Array, sizes: NDArray[np.int64]) -> Thresholded:
    """Return the column of each row that is largest, after offsets by which the classes fit the sizes.

    argmax_c (x_ic + s_c): for the right offsets these are the indicators of classes of those sizes
    that are closest to X (Jacobs, Merkurjev, Esedoglu 2018). Multipliers would do nothing for two
    classes whose columns differ in sign, as those of Poisson learning do. A larger offset is more
    rows of its class and fewer of the others, so each is raised while its class is too small and
    lowered while it is too large, by steps that grow until they overshoot (Rprop; Riedmiller, Braun
    1993).

    Parameters
    ----------
    X : array, shape (n, WIDTH)
        The first columns belong to the classes.
    sizes : array of int, shape (classes,)
        Wanted rows of each class, summing to n. Ties can keep them from being met: the best is
        returned then.

    Raises
    ------
    ValueError
        The sizes do not sum to n.
    """
    _check_sizes(sizes, len(X))
    allowed = np.maximum(1, np.floor(_SIZE_TOLERANCE * sizes))
    unit = float(np.abs(X[:, : len(sizes)]).max(initial=0)) or 1.0
    # No finite offset is sure to keep a class empty.
    offsets = np.where(sizes == 0, -np.inf, 0.0)
    moves, before = np.full(len(sizes), _FIRST_STEP), np.zeros(len(sizes))
    best, least = offsets, np.inf
    for _ in range(_MOST_TRIALS):
        missing = sizes - _count(X, offsets)
        excess = float((np.abs(missing) / allowed).max())
        if excess < least:
            best, least = offsets, excess
        if least <= 1:
            break
        sign = np.where(np.abs(missing) <= allowed, 0, np.sign(missing))
        turned, same = sign * before < 0, sign * before > 0
        moves = np.clip(
            moves * np.where(turned, 0.5, np.where(same, 1.2, 1)), _LEAST_STEP, _MOST_STEP
        )
        offsets = offsets + sign * moves * unit
        before = np.where(sign == 0, before, sign)
    found = np.empty(len(X), np.intp)
    _assign(X, best, found)
    return Thresholded(found, np.bincount(found, minlength=len(sizes)), best)


def _check_sizes(sizes: NDArray[np.int64], rows: int) -> None:
    if sizes.sum() != rows or (sizes < 0).any():
        raise ValueError(f"sizes of classes have to sum to {rows} rows, not to {sizes.sum()}")


@njit(cache=True, nogil=True)
def _largest(x, offsets):  # type: ignore[no-untyped-def]
    best, value = 0, -np.inf
    for column in range(len(offsets)):
        # In double, so that offsets smaller than the spacing of single precision count.
        if x[column] + offsets[column] > value:
            best, value = column, x[column] + offsets[column]
    return best


@njit(cache=True, nogil=True)
def _count(X, offsets):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(offsets), np.int64)
    for row in range(len(X)):
        counts[_largest(X[row], offsets)] += 1
    return counts


@njit(cache=True, nogil=True)
def _assign(X, offsets, classes):  # type: ignore[no-untyped-def]
    for row in range(len(X)):
        classes[row] = _largest(X[row], offsets)


@njit(cache=True, nogil=True)
def _indicate(classes, X):  # type: ignore[no-untyped-def]
    X[:] = 0
    for row in range(len(X)):
        X[row, classes[row]] = 1
