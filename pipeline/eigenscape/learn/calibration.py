"""Calibrated probabilities: how sure the called class is, learned from labels that were held out.

Temperature scaling divides the logarithms of the shares by one number (Guo, Pleiss, Sun, Weinberger
2017); equal shares are mixed in, for samples that are unlike all that was learned from (Zhang,
Kailkhura, Han 2020). Both numbers are fitted by maximum likelihood, for all samples or for those of
each called class. Either way the called class keeps the largest probability.

Each zone (`eigenscape.learn.zones`) has its own: near what is labelled a class is more often right
than far from it. Random draws leave pixels near those that were learned from; squares leave far ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from eigenscape.learn.decisions import Calibration, choose, evidence, probabilities, softmax
from eigenscape.learn.labelled import Labelled
from eigenscape.learn.sources import Source
from eigenscape.learn.zones import Zones

F8 = NDArray[np.float64]

BINS = 15
"""Bins of equal width of the expected calibration error (Guo and others 2017)."""

_MOST_VALUES = 2**18
"""Scores that a calibration is fitted to and measured on, at most: seconds of work."""

_BY_CLASS = "for each class"
_KINDS = ("for all", _BY_CLASS)
_MOST_STEPS = 100
_LEAST = float(np.finfo(np.float32).eps)
"""A probability of 0 is rounding: its logarithm is that of this."""
_RIDGE, _CLASS_RIDGE = 1.0, 10.0
"""Holds what no sample tells, in samples: of all to the shares themselves, of a class to all."""
_MIX_RIDGE = 10.0
"""Of the mixed part, in units of that of the logarithm of the factor."""
_MOST_EVEN = 0.95
_LEAST_SAMPLES = 50
"""A zone with fewer is calibrated as all samples are."""


@dataclass(frozen=True)
class Sample:
    """Scores of samples whose classes were held out.

    Attributes
    ----------
    scores : array, shape (m, count), float32
    classes : array of int, shape (m,)
    zones : array of int, shape (m,)
    """

    scores: NDArray[np.float32]
    classes: NDArray[np.intp]
    zones: NDArray[np.intp]

    @classmethod
    def join(cls, parts: Sequence["Sample"]) -> "Sample":
        """Return all of them in one; those without scores are left out."""
        scores, classes, zones = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("scores", "classes", "zones")
        )
        known = ~np.isnan(scores).any(axis=1)
        return cls(scores[known], classes[known], zones[known])


def fit_calibration(sample: Sample, zones: int, *, by_class: bool) -> Calibration:
    """Return the calibration under which the classes of a sample are most likely.

    Parameters
    ----------
    sample
        At least one.
    zones
        Number of zones.
    by_class
        Two numbers for the samples of each called class; otherwise two for all.
    """
    logs, called = evidence(sample.scores).astype(np.float64), choose(sample.scores)
    count = logs.shape[1]
    factors, even = np.empty((zones, count)), np.empty((zones, count))
    for zone in range(zones):
        inside = sample.zones == zone
        if inside.sum() < _LEAST_SAMPLES:
            inside[:] = True
        found = _fit(logs[inside], sample.classes[inside], (0.0, 0.0), _RIDGE)
        for number in range(count):
            own = inside & (called == number)
            x = found
            if by_class and own.any():
                x = _fit(logs[own], sample.classes[own], found, _CLASS_RIDGE)
            factors[zone, number], even[zone, number] = np.exp(x[0]), x[1]
    return Calibration(*(tuple(map(tuple, values.tolist())) for values in (factors, even)))


def _fit(
    logs: F8, truth: NDArray[np.intp], about: tuple[float, float], ridge: float
) -> tuple[float, float]:
    """Return log a and e of `eigenscape.learn.decisions`, drawn to given ones by some samples' worth."""
    rows, count = np.arange(len(logs)), logs.shape[1]
    weight = ridge * np.array([1, _MIX_RIDGE])

    def loss(x: F8) -> tuple[float, F8]:
        factor, even = np.exp(x[0]), x[1]
        q = softmax(factor * logs)
        own = q[rows, truth]
        p = np.maximum((1 - even) * own + even / count, _LEAST)
        lead = logs[rows, truth] - (q * logs).sum(axis=1)
        slope = np.array(
            [-((1 - even) * own * factor * lead / p).sum(), -((1 / count - own) / p).sum()]
        )
        away = x - about
        return float((weight * away**2).sum() / 2 - np.log(p).sum()), slope + weight * away

    found = scipy.optimize.minimize(
        loss, about, jac=True, method="L-BFGS-B", bounds=[(-5, 5), (0, _MOST_EVEN)],
        options={"maxiter": _MOST_STEPS},
    )  # fmt: skip
    return float(found.x[0]), float(found.x[1])


def measure(sample: Sample, calibration: Calibration) -> dict[str, float]:
    """Return how good probabilities are, by classes that did not make them.

    Returns
    -------
    dict
        ``expected_calibration_error`` of the called class; ``log_loss`` in nats and ``brier`` (sum of
        squares over the classes) of the whole distribution.
    """
    p = probabilities(sample.scores, calibration, sample.zones).astype(np.float64)
    rows, called = np.arange(len(p)), choose(sample.scores)
    truth = p[rows, sample.classes]
    squares = (p**2).sum(axis=1) - 2 * truth + 1
    return {
        "expected_calibration_error": calibration_error(p[rows, called], called == sample.classes),
        "log_loss": float(-np.log(np.maximum(truth, _LEAST)).mean()),
        "brier": float(squares.mean()),
    }


def calibration_error(confidence: F8, right: NDArray[np.bool_]) -> float:
    """Return the mean distance of confidence to accuracy over `BINS` bins, weighed by their samples.

    Parameters
    ----------
    confidence, right : array, shape (m,)
    """
    place = np.minimum((confidence * BINS).astype(np.intp), BINS - 1)
    away = np.bincount(place, confidence, BINS) - np.bincount(place, right, BINS)
    return float(np.abs(away).sum() / len(confidence))


def calibrate(
    halves: tuple[Sample, Sample], tests: dict[str, tuple[Sample, Sample]], zones: int = 1
) -> tuple[Calibration, dict[str, Any]]:
    """Return the calibration of all samples, and what it does to samples it was not fitted to.

    Each half is measured with the calibration of the other. The numbers are those of all samples or
    of each class, whichever has the lower log loss there.

    Parameters
    ----------
    halves
        What to fit to, in two parts that share neither pixels nor fits.
    tests
        For every protocol, what is measured with the calibration of the first and of the second half.
    zones
        Number of zones.
    """
    reports: dict[str, dict[str, Any]] = {}
    for kind in _KINDS:
        fitted = [fit_calibration(half, zones, by_class=kind == _BY_CLASS) for half in halves]
        reports[kind] = {name: _pooled(pair, fitted) for name, pair in tests.items()}
    kind = min(_KINDS, key=lambda name: sum(test["log_loss"] for test in reports[name].values()))
    none = [_uncalibrated(halves[0].scores.shape[1], zones)] * 2
    report: dict[str, Any] = {
        "kind": kind,
        "pixels": sum(len(half.classes) for half in halves),
        "before": {name: _pooled(pair, none) for name, pair in tests.items()},
        "after": reports[kind],
    }
    return fit_calibration(Sample.join(halves), zones, by_class=kind == _BY_CLASS), report


def _uncalibrated(count: int, zones: int) -> Calibration:
    one = Calibration.none(count)
    return Calibration(one.factors * zones, one.even * zones)


def _pooled(pair: tuple[Sample, Sample], fitted: list[Calibration]) -> dict[str, float]:
    """Return the means of `measure` over both halves."""
    found = [
        measure(sample, calibration)
        for sample, calibration in zip(pair, fitted, strict=True)
        if len(sample.classes)
    ]
    return {name: float(np.mean([part[name] for part in found])) for name in found[0]}


def calibrate_fits(
    source: Source, labelled: Labelled, zones: Zones, protocols: dict[str, list[int]], seed: int
) -> tuple[Calibration, dict[str, Any]]:
    """Calibrate on the held-out labelled samples of all protocols, and measure on those of each.

    Parameters
    ----------
    source
        Scores of every fit at the labelled samples.
    labelled
        They, and the training set of each fit.
    zones
        Where they lie, seen from each fit.
    protocols
        Fits of each protocol.
    seed
        Of the draw that parts the labelled samples. Fits are parted by turns, so that neither a
        sample nor a fit is in both halves.

    Returns
    -------
    Calibration, dict
        Not calibrated, with the reason under ``skipped``, where nothing is held out.
    """
    rng = np.random.default_rng([seed, 4])
    second = rng.random(len(labelled.sample)) < 0.5
    trials = max(map(len, protocols.values()), default=1)
    most = max(1, _MOST_VALUES // (labelled.count * trials))

    def half(numbers: list[int], *, last: bool) -> Sample:
        taken = numbers[last::2] if len(numbers) > 1 else numbers
        parts = []
        for number in taken:
            held = np.flatnonzero(~labelled.train[number] & (second == last))
            held = held[:: max(1, -(-len(held) // most))]
            scores = np.asarray(source.at_labels(number)[held])
            parts.append(Sample(scores, labelled.classes[held], zones.at_labels(number)[held]))
        return Sample.join(parts)

    halves = {
        name: (half(numbers, last=False), half(numbers, last=True))
        for name, numbers in protocols.items()
    }
    usable = {name: pair for name, pair in halves.items() if all(len(s.classes) for s in pair)}
    if not usable:
        reason = "no labelled pixel is held out: confidence is the share that speaks for the class"
        return _uncalibrated(labelled.count, zones.count), {"skipped": reason}
    tests = {name: (pair[1], pair[0]) for name, pair in usable.items()}
    parts = tuple(Sample.join([pair[last] for pair in usable.values()]) for last in (0, 1))
    return calibrate((parts[0], parts[1]), tests, zones.count)
