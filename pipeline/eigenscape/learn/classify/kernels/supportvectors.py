"""Support vector machines with a Gaussian kernel: one of each pair of classes, which vote.

    f_ij(x) = sum_s c_s exp(-gamma |x - s|^2 / d) + b      d columns, scaled to variance 1

The class that wins most pairs is called (Cortes, Vapnik 1995; pairs of classes as in LIBSVM: Chang, Lin
2011). scikit-learn's `SVC` solves for c and b.
"""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors
from eigenscape.learn.classify.kernels.votes import count_wins
from eigenscape.learn.decide.kernels.decisions import keep_class
from eigenscape.neighbors.kernels.tiles import products, square_norms

if TYPE_CHECKING:
    from sklearn.svm import SVC

F4 = NDArray[np.float32]
Side = NDArray[np.intp]

COSTS = (1.0, 10.0, 100.0, 1000.0)
"""What a search tries."""

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
    coefficients : array, shape (m, k)
        Of each in the pairs of its own class with each of the k classes; 0 beside its own.
    offsets : array, shape (k (k - 1) / 2,)
        b of the pairs of classes: the first one with all others, the second one with those after it ...
        The one that comes first wins where f is positive.
    names, counts : array of int, shape (k,)
        The classes, ascending, and how many support vectors each has.
    width
        gamma / d.
    """

    support: NDArray[np.intp]
    coefficients: NDArray[np.floating]
    offsets: NDArray[np.floating]
    names: NDArray[np.intp]
    counts: NDArray[np.intp]
    width: float

    def single(self) -> "Machine":
        """Return the machine with numbers of single precision, in which `score` computes."""
        coefficients, offsets = (
            self.coefficients.astype(np.float32),
            self.offsets.astype(np.float32),
        )
        return replace(self, coefficients=coefficients, offsets=offsets)


@dataclass(frozen=True)
class SearchOptions:
    """What a search for cost and gamma tries.

    Attributes
    ----------
    costs, gammas
        The values.
    middle
        Cost and gamma where nothing can be left out to choose them by.
    all_pairs
        Whether every cost is tried with every gamma; otherwise gamma first, at the cost in the middle, and
        then the cost.
    """

    costs: tuple[float, ...]
    gammas: tuple[float, ...]
    middle: tuple[float, float]
    all_pairs: bool


@dataclass(frozen=True)
class Parameters:
    """What a search has found.

    Attributes
    ----------
    cost, gamma
        See `fit`.
    right
        How many rows of all folds are right with them where they are left out; 0 without a search.
    """

    cost: float
    gamma: float
    right: int


def square_distances(left: Vectors, right: Vectors) -> F4:
    """Return the squared distances of two sets of rows, shape (left, right), in their precision."""
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
    # Here, so that those who read a machine load no scikit-learn.
    from sklearn.svm import SVC

    width = gamma / rows.shape[1]
    found = SVC(
        C=cost, gamma=width, decision_function_shape="ovo", cache_size=_CACHE_MIB, random_state=0
    ).fit(rows, classes)
    return _machine(found, width)


def _machine(found: "SVC", width: float) -> Machine:
    """Return what scikit-learn has found as coefficients of pairs."""
    names, counts = found.classes_, np.asarray(found.n_support_, np.intp)
    dual, offsets = found.dual_coef_, found.intercept_
    dual = dual.toarray() if scipy.sparse.issparse(dual) else dual
    if len(names) == 2:
        dual, offsets = -dual, -offsets  # of two classes it counts for the second
    own = np.repeat(np.arange(len(names)), counts)
    # Coefficients stand in the order of the other classes, with no place for the own one.
    others = np.arange(len(names) - 1) + (np.arange(len(names) - 1) >= own[:, None])
    coefficients = np.zeros((len(own), len(names)))
    np.put_along_axis(coefficients, others, dual.T, axis=1)
    return Machine(np.asarray(found.support_, np.intp), coefficients, offsets, names, counts, width)


def score(machine: Machine, support: Vectors, rows: Vectors, count: int) -> F4:
    """Return approximate shares of the classes, shape (rows, count).

    The class that wins most pairs has the largest one; of classes with as many wins, that with the larger
    sum of f. Shares are the products of what logistic curves make of the pairs of a class; 0 for a class
    that nothing was learned of.

    Parameters
    ----------
    machine
        A machine, in single precision.
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


def count_votes(machine: Machine, support: F4, rows: F4, count: int) -> F4:
    """Return the share of the pairs that each class wins, shape (rows, count).

    Equal shares are decided by how clearly the pairs are won. In double precision and each row by itself, so
    that it comes out the same in any block: several times slower than `score`.

    Parameters
    ----------
    machine, support, rows, count
        See `score`; rows and support vectors are dense.
    """
    starts = np.concatenate([[0], np.cumsum(machine.counts)])
    won = count_wins(rows, support, starts, machine.coefficients, machine.offsets, machine.width)
    scores = np.zeros((len(rows), count), np.float32)
    scores[:, machine.names] = won / (len(machine.names) - 1)
    return scores


def sides_of(classes: NDArray[np.intp], fold: NDArray[np.intp]) -> list[tuple[Side, Side]]:
    """Return the rows to learn from and those to test on, for each fold; not those that leave one class.

    Parameters
    ----------
    classes, fold : array of int, shape (n,)
        Class and fold of each row.
    """
    sides = [
        (np.flatnonzero(fold != number), np.flatnonzero(fold == number))
        for number in np.unique(fold)
    ]
    return [(train, test) for train, test in sides if len(np.unique(classes[train])) > 1]


def search(
    rows: Vectors,
    classes: NDArray[np.intp],
    fold: NDArray[np.intp],
    options: SearchOptions,
    cost: float | None = None,
    gamma: float | None = None,
) -> Parameters:
    """Return the cost and gamma that do best on folds that are left out, those that are given as they are.

    Of equals the first, which is the smoother one; the middle where no fold leaves two classes to learn from.

    Parameters
    ----------
    rows : array or csr_array, shape (n, d)
        Scaled.
    classes, fold : array of int, shape (n,)
        Class and fold of each.
    options
        What to try.
    cost, gamma
        None to search for it.
    """
    from sklearn import config_context
    from sklearn.svm import SVC

    middle = options.middle[0] if cost is None else cost
    sides = sides_of(classes, fold)
    if not sides or (cost is not None and gamma is not None):
        return Parameters(middle, options.middle[1] if gamma is None else gamma, 0)
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
            found = SVC(C=cost, kernel="precomputed", cache_size=_CACHE_MIB)
            # Its checks take longer than it does, and these are numbers.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                called = found.fit(inside, classes[train]).predict(across)
            total += int((called == classes[test]).sum())
        return total

    if options.all_pairs and cost is None and gamma is None:
        pairs = product(options.gammas, options.costs)
        gamma, cost = max(pairs, key=lambda pair: right(pair[1], pair[0]))
    if gamma is None:
        gamma = max(options.gammas, key=lambda one: right(middle, one))
    if cost is None:
        cost = max(options.costs, key=lambda one: right(one, gamma))
    return Parameters(cost, gamma, right(cost, gamma))
