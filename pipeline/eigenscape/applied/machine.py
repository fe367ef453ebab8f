"""A support vector machine on the labels of a run: a class for samples that its graph does not hold.

A graph classifies its own samples only. For others, only the nearest samples are evidence, and most of
these have their class from the graph, not from a label; classes by them change from cell to cell, where a
smooth border through the same labels continues outside of the run's samples. So where there are enough
labels, new samples are classified by a machine with radial basis functions (Boser, Guyon, Vapnik 1992;
LIBSVM through scikit-learn), fitted once to the labels that the run learned from.

Its options are those that are best on squares of the run's own scene that are left out in turn, among
costs, widths, and two sets of vectors: the features of the run, and its bands, standardised. Features that
were estimated on the first scene need not be those of the next one: noise fractions of one half of Urban
lose 20 points on the other, whatever the classifier.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.applied.kernels.votes import count_wins
from eigenscape.base.files.whole import written_whole
from eigenscape.labels.priors import weigh_scores
from eigenscape.labels.splits import draw_at_most
from eigenscape.learn.decide.kernels.calibrationfit import Calls, fit_calibration
from eigenscape.learn.decide.kernels.decisions import Calibration, choose, probabilities

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]

LEAST_LABELS = 50
"""Labelled samples of a class, on average, below which the graph may be more accurate than a machine. On
halves of Urban and of EnMAP, left to right and right to left, mean of 4 draws: with 10 of each class a
machine was 6 and 1 points better on Urban, 17 and 4 worse on EnMAP; with 30, 4 and 4 better, 0 and 8
worse."""

MOST_LABELS = 4096
"""Labelled samples that it is fitted to; of more, a share of every class."""

FIT_BYTES = 160 * 2**20
"""What a fit takes: the labelled samples, their distances and LIBSVM's cache."""

_SEARCHED = 1500
_FOLDS = 4
_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.1, 0.3, 1.0)
"""In units of 1 / features, for features of variance 1."""
_MIDDLE = (10.0, 1.0)
"""Cost and width where nothing can be left out to choose them by."""

_CACHE = 32


@dataclass(frozen=True)
class Machine:
    """A fitted machine: one classifier for each pair of classes, whose votes are counted.

    Attributes
    ----------
    vectors : array, shape (support, features), float32
        Support vectors, class by class.
    starts : array of int, shape (known + 1,)
        Where those of each class begin.
    weights : array, shape (support, known - 1)
        Of each against the other classes, ascending.
    offsets : array, shape (pairs,)
        Of the pairs (0, 1), (0, 2), ... (1, 2), ...
    known : array of int, shape (known,)
        Places of the classes that it was fitted to.
    shift, scale : array, shape (features,), float32
        What is subtracted from samples, and what they are then multiplied by.
    width
        The kernel is exp(-width d^2).
    """

    vectors: F4
    starts: NDArray[np.int64]
    weights: F8
    offsets: F8
    known: NDArray[np.int64]
    shift: F4
    scale: F4
    width: float

    _ARRAYS: ClassVar[tuple[str, ...]] = (
        "vectors", "starts", "weights", "offsets", "known", "shift", "scale", "width",
    )  # fmt: skip

    @classmethod
    def fit(cls, X: F4, y: NDArray[np.intp], cost: float, width: float) -> "Machine":
        """Fit to samples.

        Parameters
        ----------
        X : array, shape (m, features)
        y : array of int, shape (m,)
            Places of their classes: two or more.
        cost
            C.
        width
            In units of 1 / features.
        """
        from sklearn.svm import SVC

        shift, scale = standard(X)
        gamma = width / X.shape[1]
        fitted = SVC(C=cost, gamma=gamma, cache_size=_CACHE).fit((X - shift) * scale, y)
        # scikit-learn turns the sign where there are two classes.
        sign = -1.0 if len(fitted.classes_) == 2 else 1.0
        return cls(
            fitted.support_vectors_.astype(np.float32),
            np.concatenate([[0], np.cumsum(fitted.n_support_)]).astype(np.int64),
            np.ascontiguousarray(sign * fitted.dual_coef_.T), sign * fitted.intercept_,
            fitted.classes_.astype(np.int64), shift, scale, gamma,
        )  # fmt: skip

    def scores(self, X: F4, count: int) -> F4:
        """Return the share of the pairs that each class wins, shape (m, count).

        Equal shares are decided by how clearly the pairs are won. A sample is computed by itself, so
        that it comes out the same in any block.
        """
        standardised = ((X - self.shift) * self.scale).astype(np.float32)
        won = count_wins(
            standardised, self.vectors, self.starts, self.weights, self.offsets, self.width
        )
        scores = np.zeros((len(X), count), np.float32)
        scores[:, self.known] = won / (len(self.known) - 1)
        return scores

    def save(self, path: Path) -> None:
        """Write it."""
        with written_whole(path) as temporary, temporary.open("wb") as stream:
            parts: dict[str, Any] = {name: getattr(self, name) for name in self._ARRAYS}
            np.savez(stream, **parts)

    @classmethod
    def load(cls, path: Path) -> "Machine":
        """Read what `save` wrote."""
        with np.load(path) as stored:
            parts = {name: stored[name] for name in cls._ARRAYS}
        return cls(**{**parts, "width": float(parts["width"])})


@dataclass(frozen=True)
class Chosen:
    """A machine, and what chose it.

    Attributes
    ----------
    machine
        The machine.
    vectors
        Name of the vectors that it takes.
    calibration
        From its scores to probabilities, by squares that were left out.
    accuracy
        On them, 0 ... 1, under the prior; None where there was nothing to leave out.
    """

    machine: Machine
    vectors: str
    calibration: Calibration
    accuracy: float | None


def choose_machine(
    given: Mapping[str, F4],
    y: NDArray[np.intp],
    square: NDArray[np.int64],
    count: int,
    factors: F8 | None = None,
) -> Chosen:
    """Fit a machine with the options that are best on squares left out.

    Parameters
    ----------
    given
        Vectors of the labelled samples by name, each of shape (m, features).
    y : array of int, shape (m,)
        Places of their classes.
    square : array of int, shape (m,)
        Which square each lies in.
    count
        Number of classes.
    factors
        See `distributions`.
    """
    from threadpoolctl import threadpool_limits

    # One thread: sums in another order could choose something else.
    with threadpool_limits(1):
        rng = np.random.default_rng([0, 13])
        some = np.sort(rng.choice(len(y), min(len(y), _SEARCHED), replace=False))
        folds = list(_folds(y[some], square[some]))
        # Without folds the first vectors, and options in the middle.
        (name, cost, width), right = (next(iter(given)), *_MIDDLE), -1
        if folds:
            for tried, X in given.items():
                for option, found in _search(X[some], y[some], folds):
                    if found > right:
                        (name, cost, width), right = (tried, *option), found
        X = given[name]
        calibration, accuracy = Calibration.none(count), None
        if folds:
            parts = [(some[train], some[test]) for train, test in folds]
            scores = np.concatenate(
                [
                    Machine.fit(X[own], y[own], cost, width).scores(X[other], count)
                    for own, other in parts
                ]
            )
            classes = y[np.concatenate([other for _, other in parts])]
            calibration = _calibrate(scores, classes)
            called = choose(distributions(scores, calibration, factors))
            accuracy = float((called == classes).mean())
        machine = Machine.fit(X, y, cost, width)
    return Chosen(machine, name, calibration, accuracy)


def distributions(scores: F4, calibration: Calibration, factors: F8 | None) -> F4:
    """Return a distribution over the classes for each sample, the largest one its class.

    Parameters
    ----------
    scores : array, shape (m, count)
        Of the machine.
    calibration
        From them to probabilities, as the labels have the classes.
    factors : array, shape (count,)
        Of a prior (`eigenscape.labels.priors.prior_factors`), None without one. They are those of
        probabilities, not of the scores: of two classes the other one wins no pair, whatever its factor.
    """
    p = probabilities(scores, calibration)
    return p if factors is None else weigh_scores(p, factors)


def draw_labels(classes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the places of the labelled samples to fit to, ascending: all, or a share of every class."""
    return draw_at_most(classes, MOST_LABELS, np.random.default_rng([0, 17]))


def standard(X: F4) -> tuple[F4, F4]:
    """Return what makes features have mean 0 and variance 1; constant ones become 0."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return mean.astype(np.float32), scale.astype(np.float32)


def _folds(
    y: NDArray[np.intp], square: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield training and test samples, squares apart; not those that leave one class to learn."""
    from sklearn.model_selection import GroupKFold

    squares = len(np.unique(square))
    if squares < 2:
        return
    for train, test in GroupKFold(min(_FOLDS, squares)).split(y, groups=square):
        if len(np.unique(y[train])) > 1:
            yield train, test


def _search(
    X: F4, y: NDArray[np.intp], folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
) -> Iterator[tuple[tuple[float, float], int]]:
    """Yield cost and width, and how many samples are right with them where they were left out."""
    from sklearn.svm import SVC

    shift, scale = standard(X)
    Z = ((X - shift) * scale).astype(np.float64)
    norms = np.einsum("ij,ij->i", Z, Z)
    squares = np.maximum(norms[:, None] + norms - 2 * (Z @ Z.T), 0)
    for width in _WIDTHS:
        kernel = np.exp(-width / X.shape[1] * squares)
        for cost in _COSTS:
            right = 0
            for train, test in folds:
                machine = SVC(C=cost, kernel="precomputed", cache_size=_CACHE)
                machine.fit(kernel[np.ix_(train, train)], y[train])
                right += int((machine.predict(kernel[np.ix_(test, train)]) == y[test]).sum())
            yield (cost, width), right


def _calibrate(scores: F4, classes: NDArray[np.intp]) -> Calibration:
    """Return the calibration of scores, shape (m, count), by the true classes: (m,)."""
    # Of all squares at once: each one has classes in shares of its own.
    calls = Calls.of(scores)
    fit = fit_calibration(calls.sample(scores, classes, np.zeros(len(scores), np.intp)), 1)
    return fit.of(calls)
