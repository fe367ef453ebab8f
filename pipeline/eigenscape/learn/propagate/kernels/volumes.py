"""Classes of known sizes with short borders: heat steps and thresholds in turn."""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.conjugate import F8, Allocate
from eigenscape.learn.propagate.kernels.propagation import Start, poisson
from eigenscape.learn.propagate.kernels.smoothness import Steps
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator

_MOST_TRIALS = 200
_SIZE_TOLERANCE = 1e-3
_FIRST_STEP, _NEXT_STEP, _LEAST_STEP, _MOST_STEP = 0.05, 0.01, 1e-8, 1.0
"""Of the offsets, in units of the largest value; the next from offsets that fitted before."""

_STILL = 1e-4
"""Share of the rows that may change their class in the last round."""


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
    operator: Operator, labels: ColumnLabels, sizes: NDArray[np.int64], allocate: Allocate, *,
    component: NDArray[np.int32] | None = None, start: Start | None = None,
    rounds: int = 20, steps: int = 40, tolerance: float = 1e-4,
) -> list[Thresholded]:  # fmt: skip
    """Return classes of given sizes, for some fits: Poisson learning, then PoissonMBO.

    Each round takes a few explicit steps of the heat equation with the sources of Poisson learning,
    u <- u - dt (L u - source) with dt = 1 / max d, and replaces u by the indicators of the classes
    that `threshold` finds (Calder, Cook, Thorpe, Slepcev 2020, algorithm 2, with offsets in place of
    multipliers). The first round starts from the potentials themselves, which these steps leave as
    they are. So they leave of any u, beside the potentials p, the polynomial (1 - dt L)^steps of
    u - p: `smoothness.Steps` has it with half the products.

    The rounds end early once no more than one row in 10,000 has changed its class.

    Parameters
    ----------
    operator
        L, unnormalised.
    labels
        Column f * classes + c is 1 on the known rows of class c in fit f and 0 on its others; columns
        beyond those are NaN.
    sizes : array of int, shape (fits, classes)
        Rows of each class in each fit; those of a fit sum to n.
    allocate
        Gives four arrays.
    component, start
        See `poisson`.
    rounds, steps
        Thresholds at most, and heat steps before each but the first.
    tolerance
        Of Poisson learning, where the rounds start.

    Raises
    ------
    ValueError
        There are more classes than columns in a group, columns do not fit the classes, or the sizes
        do not sum to n.
    """
    if sizes.size > WIDTH:
        raise ValueError(f"{sizes.size} classes do not fit into one group of {WIDTH} columns")
    if ((labels.counts() > 0) != (np.arange(WIDTH) < sizes.size)).any():
        raise ValueError(
            f"the first {sizes.size} columns, and no others, need labels: one per class"
        )
    for own in sizes:
        _check_sizes(own, operator.rows)
    arrays: list[Array] = []

    def kept(rows: int) -> Array:
        arrays.append(allocate(rows))
        return arrays[-1]

    potentials = poisson(
        operator, labels, kept, component=component, start=start, tolerance=tolerance
    )
    U, residual = potentials.X, float(potentials.solved.residuals.max())
    # What conjugate gradients needed is free again.
    *_, X, Y, spare = arrays
    firsts = range(0, sizes.size, sizes.shape[1])
    found = [threshold(U, own, first=first) for first, own in zip(firsts, sizes, strict=True)]
    heat = Steps(operator, steps, spare)
    for _ in range(1, rounds):
        for first, part in zip(firsts, found, strict=True):
            _depart(part.classes, U, first, len(part.sizes), X)
        heat.apply(X, Y)
        Y += U
        before, found = found, [
            _threshold_again(Y, own, first, part.offsets)
            for first, own, part in zip(firsts, sizes, found, strict=True)
        ]  # fmt: skip
        changed = [
            np.count_nonzero(one.classes != other.classes)
            for one, other in zip(before, found, strict=True)
        ]
        if max(changed) <= _STILL * operator.rows:
            break
    return [replace(part, residual=residual) for part in found]


def threshold(
    X: Array, sizes: NDArray[np.int64], *, first: int = 0, offsets: F8 | None = None
) -> Thresholded:
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
        The columns from `first` on belong to the classes.
    sizes : array of int, shape (classes,)
        Wanted rows of each class, summing to n. Ties can keep them from being met: the best is
        returned then.
    first
        Column of the first class.
    offsets : array, shape (classes,), optional
        Where to begin: offsets that fitted a similar X. By default 0.

    Raises
    ------
    ValueError
        The sizes do not sum to n.
    """
    _check_sizes(sizes, len(X))
    allowed = np.maximum(1, np.floor(_SIZE_TOLERANCE * sizes))
    unit = float(np.abs(X[:, first : first + len(sizes)]).max(initial=0)) or 1.0
    step = _FIRST_STEP if offsets is None else _NEXT_STEP
    # No finite offset is sure to keep a class empty.
    offsets = np.where(sizes == 0, -np.inf, 0.0 if offsets is None else offsets)
    moves, before = np.full(len(sizes), step), np.zeros(len(sizes))
    best, least = offsets, np.inf
    for _ in range(_MOST_TRIALS):
        missing = sizes - _count(X, first, offsets)
        excess = _excess(missing, sizes)
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
    _assign(X, first, best, found)
    return Thresholded(found, np.bincount(found, minlength=len(sizes)), best)


def _threshold_again(X: Array, sizes: NDArray[np.int64], first: int, offsets: F8) -> Thresholded:
    """Return what `threshold` finds from offsets that fitted before, or from 0 where these lead nowhere.

    Potentials at weakly joined parts of a graph are thousands of times as large as what follows them, and
    so are their offsets: no number of steps leads back.
    """
    found = threshold(X, sizes, first=first, offsets=offsets)
    if _excess(sizes - found.sizes, sizes) <= 1:
        return found
    anew = threshold(X, sizes, first=first)
    return min(found, anew, key=lambda one: _excess(sizes - one.sizes, sizes))


def _excess(missing: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Return the largest deviation from the wanted sizes, in units of the allowed one."""
    return float((np.abs(missing) / np.maximum(1, np.floor(_SIZE_TOLERANCE * sizes))).max())


def _check_sizes(sizes: NDArray[np.int64], rows: int) -> None:
    if sizes.sum() != rows or (sizes < 0).any():
        raise ValueError(f"sizes of classes have to sum to {rows} rows, not to {sizes.sum()}")


@njit(cache=True, nogil=True)
def _largest(x, first, offsets):  # type: ignore[no-untyped-def]
    best, value = 0, -np.inf
    for column in range(len(offsets)):
        # In double, so that offsets smaller than the spacing of single precision count.
        if x[first + column] + offsets[column] > value:
            best, value = column, x[first + column] + offsets[column]
    return best


@njit(cache=True, nogil=True)
def _count(X, first, offsets):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(offsets), np.int64)
    for row in range(len(X)):
        counts[_largest(X[row], first, offsets)] += 1
    return counts


@njit(cache=True, nogil=True)
def _assign(X, first, offsets, classes):  # type: ignore[no-untyped-def]
    for row in range(len(X)):
        classes[row] = _largest(X[row], first, offsets)


@njit(cache=True, nogil=True)
def _depart(classes, U, first, count, X):  # type: ignore[no-untyped-def]
    """Set the columns of a fit to the indicators of its classes less those of U."""
    for row in range(len(X)):
        for column in range(first, first + count):
            X[row, column] = -U[row, column]
        X[row, first + classes[row]] += 1
