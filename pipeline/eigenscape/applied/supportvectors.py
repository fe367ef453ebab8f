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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.whole import written_whole
from eigenscape.labels.priors import weigh_scores
from eigenscape.labels.splits import draw_at_most
from eigenscape.learn.classify.kernels.supportvectors import (
    COSTS,
    Machine,
    Scaling,
    SearchOptions,
    count_votes,
    fit,
    search,
    sides_of,
)
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

SEARCH = SearchOptions(COSTS, (0.1, 0.3, 1.0), (10.0, 1.0), all_pairs=True)
"""All pairs, because they are compared among the vectors as well: a machine is fitted once to a run, not to
every draw of it."""

_SEARCHED = 1500
"""Labelled samples, drawn of all, for the search of cost and gamma."""

_FOLDS = 4


@dataclass(frozen=True)
class ScaledMachine:
    """A machine with what it takes to classify new samples.

    Attributes
    ----------
    machine
        In double precision.
    scaling
        Of samples, by those that it was fitted to.
    vectors : array, shape (support, features), float32
        Its support vectors, scaled.
    """

    machine: Machine
    scaling: Scaling
    vectors: F4

    @classmethod
    def fit(cls, X: F4, y: NDArray[np.intp], cost: float, gamma: float) -> "ScaledMachine":
        """Fit to samples, shape (m, features), of two or more classes; see `kernels.supportvectors.fit`."""
        scaling = Scaling.of(X)
        rows = scaling(X)
        machine = fit(rows, y, cost, gamma)
        return cls(machine, scaling, rows[machine.support])

    def scores(self, X: F4, count: int) -> F4:
        """Return the share of the pairs that each class wins, shape (m, count): the same in any block."""
        return count_votes(self.machine, self.vectors, self.scaling(X), count)

    def save(self, path: Path) -> None:
        """Write it."""
        parts = {**vars(self.machine), **vars(self.scaling), "vectors": self.vectors}
        with written_whole(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **parts)

    @classmethod
    def load(cls, path: Path) -> "ScaledMachine":
        """Read what `save` wrote."""
        with np.load(path) as stored:
            parts = dict(stored)
        scaling, vectors = Scaling(parts.pop("shift"), parts.pop("factor")), parts.pop("vectors")
        return cls(Machine(**{**parts, "width": float(parts["width"])}), scaling, vectors)


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

    machine: ScaledMachine
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
        fold = _folds(square[some])
        tried = {name: search(_double(X[some]), y[some], fold, SEARCH) for name, X in given.items()}
        # Of equals the first vectors.
        name = max(tried, key=lambda name: tried[name].right)
        X, cost, gamma = given[name], tried[name].cost, tried[name].gamma
        calibration, accuracy = Calibration.none(count), None
        if sides := [(some[train], some[test]) for train, test in sides_of(y[some], fold)]:
            scores = np.concatenate(
                [
                    ScaledMachine.fit(X[own], y[own], cost, gamma).scores(X[other], count)
                    for own, other in sides
                ]
            )
            classes = y[np.concatenate([other for _, other in sides])]
            calibration = _calibrate(scores, classes)
            called = choose(distributions(scores, calibration, factors))
            accuracy = float((called == classes).mean())
        machine = ScaledMachine.fit(X, y, cost, gamma)
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


def _double(X: F4) -> F8:
    """Return samples, scaled, in double precision."""
    return np.asarray(Scaling.of(X)(X), np.float64)


def _folds(square: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the fold of each sample, squares apart."""
    from sklearn.model_selection import GroupKFold

    fold = np.zeros(len(square), np.intp)
    if (squares := len(np.unique(square))) > 1:
        parts = GroupKFold(min(_FOLDS, squares)).split(square, groups=square)
        for number, (_, test) in enumerate(parts):
            fold[test] = number
    return fold


def _calibrate(scores: F4, classes: NDArray[np.intp]) -> Calibration:
    """Return the calibration of scores, shape (m, count), by the true classes: (m,)."""
    # Of all squares at once: each one has classes in shares of its own.
    calls = Calls.of(scores)
    sample = calls.sample(scores, classes, np.zeros(len(scores), np.intp))
    return fit_calibration(sample, 1).of(calls)
