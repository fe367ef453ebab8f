"""Support vector machines with a Gaussian kernel: one of each pair of classes, which vote.

    f_ij(x) = sum_s c_s exp(-gamma |x - s|^2 / d) + b      d columns, scaled to variance 1

The class that wins most pairs is called (Cortes, Vapnik 1995; pairs of classes as in LIBSVM: Chang, Lin
2011). scikit-learn's `SVC` solves for c and b.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import SVC

from eigenscape.base.vectors import Vectors
from eigenscape.learn.decide.kernels.decisions import keep_class
from eigenscape.neighbors.kernels.tiles import products, square_norms

F4 = NDArray[np.float32]

FOLDS = 3
COSTS = (1.0, 10.0, 100.0, 1000.0)
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0)
"""What a search tries; at the scale of the columns they hold what is best on most scenes."""

_MIDDLE = (100.0, 1.0)
"""Cost and gamma where nothing can be left out to choose them by."""

_CACHE_MIB = 32
_TILE_ENTRIES = 2**21
"""Of kernel values that are held at a time."""


@dataclass(frozen=True)
class Scaling:
    """Columns to variance 1 about 0, constant ones to 0; sparse rows by one factor, so that they stay sparse.

    Attributes
    ----------
    shift, factor : array of float32, shape (columns,)
        What is subtracted first, and what comes after.
    """

    shift: F4
    factor: F4

    @classmethod
    def of(cls, rows: Vectors) -> "Scaling":
        """Return that of some rows, by their own variances."""
        columns = rows.shape[1]
        if isinstance(rows, np.ndarray):
            deviation = rows.std(axis=0, dtype=np.float64)
            mean = rows.mean(axis=0, dtype=np.float64)
        else:
            deviation = np.full(columns, np.sqrt(square_norms(rows).mean() / columns))
            mean = np.zeros(columns)
        # Nothing was learned of a constant column: what it is elsewhere has no part in distances. Sparse rows
        # have one factor, which is for columns that are not constant as well.
        without = np.full(columns, float(not isinstance(rows, np.ndarray)))
        factor = np.divide(1, deviation, out=without, where=deviation > 0)
        return cls(mean.astype(np.float32), factor.astype(np.float32))

    def __call__(self, rows: Vectors) -> Vectors:
        """Return rows, scaled."""
        if isinstance(rows, np.ndarray):
            return np.asarray((rows - self.shift) * self.factor, np.float32)
        return scipy.sparse.csr_array(rows * self.factor[0])


@dataclass(frozen=True)
class Machine:
    """A machine for each pair of classes.

    Attributes
    ----------
    support : array of int, shape (m,)
        Which of the training rows are support vectors, those of one class after those of the other.
    coefficients : array of float32, shape (m, k)
        Of each in the pairs of its own class with each of the k classes; 0 beside its own.
    offsets : array of float32, shape (k (k - 1) / 2,)
        b of the pairs of classes: the first one with all others, the second one with those after it ...
        The one that comes first wins where f is positive.
    names, counts : array of int, shape (k,)
        The classes, ascending, and how many support vectors each has.
    width
        gamma / d.
    """

    support: NDArray[np.intp]
    coefficients: F4
    offsets: F4
    names: NDArray[np.intp]
    counts: NDArray[np.intp]
    width: float


def square_distances(left: Vectors, right: Vectors) -> F4:
    """Return the squared distances of two sets of rows, shape (left, right)."""
    found = products(left, right)
    found *= np.float32(-2)
    found += square_norms(left)[:, None]
    found += square_norms(right)[None, :]
    return np.maximum(found, 0, out=found)


def fit(rows: Vectors, classes: NDArray[np.intp], cost: float, gamma: float) -> Machine:
    """Return the machine of some scaled rows.

    Parameters
    ----------
    rows : array or csr_array, shape (n, d)
        Scaled.
    classes : array of int, shape (n,)
        At least two classes.
    cost
        C: what a row on the wrong side of the margin costs.
    gamma
        See the module.
    """
    width = gamma / rows.shape[1]
    found = SVC(
        C=cost, gamma=width, decision_function_shape="ovo", cache_size=_CACHE_MIB, random_state=0
    ).fit(rows, classes)
    return _machine(found, width)


def _machine(found: SVC, width: float) -> Machine:
    """Return what scikit-learn has found as coefficients of pairs."""
    names, counts = found.classes_, np.asarray(found.n_support_, np.intp)
    dual, offsets = found.dual_coef_, found.intercept_
    dual = dual.toarray() if scipy.sparse.issparse(dual) else dual
    if len(names) == 2:
        dual, offsets = -dual, -offsets  # of two classes it counts for the second
    own = np.repeat(np.arange(len(names)), counts)
    # Coefficients stand in the order of the other classes, with no place for the own one.
    others = np.arange(len(names) - 1) + (np.arange(len(names) - 1) >= own[:, None])
    coefficients = np.zeros((len(own), len(names)), np.float32)
    np.put_along_axis(coefficients, others, dual.T.astype(np.float32), axis=1)
    return Machine(
        np.asarray(found.support_, np.intp), coefficients, offsets.astype(np.float32), names, counts,
        width,
    )  # fmt: skip


def score(machine: Machine, support: Vectors, rows: Vectors, count: int) -> F4:
    """Return approximate shares of the classes, shape (rows, count).

    The class that wins most pairs has the largest one; of classes with as many wins, that with the larger
    sum of f. Shares are the products of what logistic curves make of the pairs of a class; 0 for a class
    that nothing was learned of.

    Parameters
    ----------
    machine
        A machine.
    support : array or csr_array, shape (m, d)
        Its support vectors, scaled.
    rows : array or csr_array, shape (rows, d)
        Scaled.
    count
        Number of classes.
    """
    scores = np.zeros((rows.shape[0], count), np.float32)
    step = max(1, _TILE_ENTRIES // max(1, len(machine.support), len(machine.offsets)))
    for start in range(0, rows.shape[0], step):
        here = slice(start, start + step)
        kernel = square_distances(support, rows[here])
        kernel *= np.float32(-machine.width)
        decisions = _decisions(machine, np.exp(kernel, out=kernel))
        scores[here, machine.names] = pairs_to_shares(decisions, len(machine.names))
    return scores


def _decisions(machine: Machine, kernel: F4) -> F4:
    """Return f of every pair, shape (pairs, rows), from kernel values, shape (m, rows)."""
    classes = len(machine.names)
    decisions = np.repeat(machine.offsets[:, None], kernel.shape[1], axis=1)
    pair = _pairs(classes)
    start = 0
    for one, held in enumerate(machine.counts.tolist()):
        own = slice(start, start + held)
        others = np.flatnonzero(np.arange(classes) != one)
        # A support vector has a part in the pairs of its own class alone.
        decisions[pair[one, others]] += (machine.coefficients[own].T @ kernel[own])[others]
        start += held
    return decisions


@cache
def _pairs(classes: int) -> NDArray[np.intp]:
    """Return the place of each pair among the pairs of some classes, shape (classes, classes)."""
    place: NDArray[np.intp] = np.zeros((classes, classes), np.intp)
    first, second = np.triu_indices(classes, 1)
    place[first, second] = place[second, first] = np.arange(len(first))
    return place


def pairs_to_shares(decisions: F4, classes: int) -> F4:
    """Return shares of the classes from the decisions of pairs, shape (rows, classes); see `score`.

    Parameters
    ----------
    decisions : array, shape (pairs, rows)
        Of the first class with all others, of the second one with those after it, and so on.
    classes
        Number of classes.
    """
    wins, sums, logs = np.zeros((3, classes, decisions.shape[1]), np.float32)
    won = decisions > 0
    # Of the logistic curve of 2 f; that of - 2 f is less by 2 f.
    curve = np.minimum(2 * decisions, 0) - np.log1p(np.exp(-2 * np.abs(decisions)))
    pair = _pairs(classes)
    for one in range(classes):
        first, second = pair[one, one + 1 :], pair[:one, one]
        won_second, sum_second = won[second].sum(axis=0), decisions[second].sum(axis=0)
        wins[one] = won[first].sum(axis=0) + (len(second) - won_second)
        sums[one] = decisions[first].sum(axis=0) - sum_second
        logs[one] = curve[first].sum(axis=0) + curve[second].sum(axis=0) - 2 * sum_second
    # Less than a third of a win, whatever the sums are.
    wins += sums / (3 * (np.abs(sums) + 1))
    shares = np.exp(logs - logs.max(axis=0))
    shares /= shares.sum(axis=0)
    return keep_class(np.ascontiguousarray(shares.T), wins.argmax(axis=0))


def search(
    rows: Vectors, classes: NDArray[np.intp], fold: NDArray[np.intp], cost: float | None, gamma: float | None
) -> tuple[float, float]:  # fmt: skip
    """Return the cost and gamma that do best on folds that are left out, those that are given as they are.

    gamma first, at a cost in the middle, then the cost: a grid of both took twice as long, and on four
    scenes its accuracy differed by at most 2.2 points, both ways. Of equals the first, which is the
    smoother one; the middle where no fold leaves two classes to learn from.

    Parameters
    ----------
    rows : array or csr_array, shape (n, d)
        Scaled.
    classes, fold : array of int, shape (n,)
        Class and fold of each.
    cost, gamma
        None to search for it.
    """
    sides = [
        (np.flatnonzero(fold != number), np.flatnonzero(fold == number))
        for number in np.unique(fold)
    ]
    sides = [(train, test) for train, test in sides if len(np.unique(classes[train])) > 1]
    if not sides:
        return cost or _MIDDLE[0], gamma or _MIDDLE[1]
    squares = np.asarray(square_distances(rows, rows), np.float64) / rows.shape[1]

    @lru_cache(maxsize=1)
    def kernels(gamma: float) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        kernel = np.exp(-gamma * squares)
        return [
            (kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]) for train, test in sides
        ]

    @cache
    def right(cost: float, gamma: float) -> int:
        total = 0
        for (train, test), (inside, across) in zip(sides, kernels(gamma), strict=True):
            found = SVC(C=cost, kernel="precomputed", break_ties=False)
            # Its checks take longer than it does, and these are numbers.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                called = found.fit(inside, classes[train]).predict(across)
            total += int((called == classes[test]).sum())
        return total

    if gamma is None:
        gamma = max(WIDTHS, key=lambda one: right(cost or _MIDDLE[0], one))
    if cost is None:
        cost = max(COSTS, key=lambda one: right(one, gamma))
    return cost, gamma
