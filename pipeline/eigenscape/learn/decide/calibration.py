"""Calibrated probabilities: how sure the called class is, learned from labels that were held out.

`eigenscape.learn.decide.kernels.calibrationfit` fits them. What they are worth is measured on halves of the
labelled samples that share no pixels and, where a protocol has several fits, no fits; every summary has it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.labels.training import TEST
from eigenscape.labels.zones import Zones
from eigenscape.learn.decide.fitscores import FitScores
from eigenscape.learn.decide.kernels.calibrationfit import (
    LEAST,
    Calls,
    Fit,
    Sample,
    fit_calibration,
)
from eigenscape.learn.decide.kernels.decisions import Calibration, choose, probabilities
from eigenscape.learn.decide.sampling import Sampling

F8 = NDArray[np.float64]

BINS = 15
"""Bins of equal width of the expected calibration error (Guo and others 2017)."""

STEPS = (0.5, 1.0)
"""How far the odds may be taken: see `eigenscape.learn.decide.kernels.calibrationfit.Fit.taken`."""


def measure(sample: Sample, fit: Fit) -> dict[str, float]:
    """Return how good probabilities are, by classes that did not make them.

    Returns
    -------
    dict
        ``expected_calibration_error`` of the called class, and ``log_loss_of_calls``, in nats, of whether it
        is right; ``log_loss`` in nats and ``brier`` (sum of squares over the classes) of the whole
        distribution.
    """
    return quality(fit.probabilities(sample), sample.scores, sample.classes)


def quality(p: F8, scores: NDArray[np.float32], classes: NDArray[np.intp]) -> dict[str, float]:
    """Return `measure` of probabilities, of the scores that they come from and of the true classes."""
    rows, called = np.arange(len(p)), choose(scores)
    truth, confidence, right = p[rows, classes], p[rows, called], called == classes
    of_calls = np.maximum(np.where(right, confidence, 1 - confidence), LEAST)
    squares = (p**2).sum(axis=1) - 2 * truth + 1
    return {
        "expected_calibration_error": calibration_error(confidence, right),
        "log_loss_of_calls": float(-np.log(of_calls).mean()),
        "log_loss": float(-np.log(np.maximum(truth, LEAST)).mean()),
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
) -> tuple[Fit, dict[str, Any]]:
    """Return the calibration of all samples, and its effect on samples that it was not fitted to.

    Each half is measured with the calibration of the other, which decides how far the odds are taken.

    Parameters
    ----------
    halves
        Samples to fit to, in two parts that share no pixels; nor fits, unless a protocol has a single one.
    tests
        For every protocol, the measures with the calibration of the first and of the second half.
    zones
        Number of zones.
    """
    fitted = [fit_calibration(half, zones) for half in halves]
    found = {
        step: {
            name: _pooled(pair, [fit.taken(step) for fit in fitted]) for name, pair in tests.items()
        }
        for step in STEPS
    }
    # Of calls alone: it is their odds that are taken. The loss of the whole distribution, most of which
    # is of classes that are not called, halved them where the whole was right about the calls.
    step = min(
        STEPS, key=lambda step: sum(test["log_loss_of_calls"] for test in found[step].values())
    )
    count = halves[0].scores.shape[1]
    none = [Fit(Calibration.none(count, zones), ((0.0, 0.0),) * zones, (1 / count,) * count)] * 2
    report: dict[str, Any] = {
        "pixels": sum(len(half.classes) for half in halves),
        "step": step,
        "before": {name: _pooled(pair, none) for name, pair in tests.items()},
        "after": found[step],
    }
    return fit_calibration(Sample.join(halves), zones).taken(step), report


def _pooled(pair: tuple[Sample, Sample], fitted: list[Fit]) -> dict[str, float]:
    """Return the means of `measure` over both halves."""
    found = [
        measure(sample, fit)
        for sample, fit in zip(pair, fitted, strict=True)
        if len(sample.classes)
    ]
    return {name: float(np.mean([part[name] for part in found])) for name in found[0]}


def calibrate_fits(
    source: FitScores, sampling: Sampling, zones: Zones
) -> tuple[Calibration, dict[str, Any]]:
    """Calibrate on the held-out labelled samples of all protocols, and measure on those of each.

    Parameters
    ----------
    source
        Scores of every fit at labelled samples.
    sampling
        Which of them, and the fits of each protocol.
    zones
        Where they lie, seen from each fit.

    Returns
    -------
    Calibration, dict
        That of the first fit, which makes the map. Not calibrated, with the reason under
        ``skipped``, where nothing is held out.
    """
    labelled, second = sampling.labelled, sampling.parted()

    def half(protocol: str, *, last: bool) -> Sample:
        parts = []
        for number in sampling.fits(protocol, last=last):
            held = sampling.held(number, second, last=last)
            where = zones.at_labels(number)[held]
            calls = _calls_of(source, sampling, number)
            scores = source.at_labels(number, held)
            parts.append(calls.sample(scores, labelled.classes[held], where))
        return Sample.join(parts)

    halves = {name: (half(name, last=False), half(name, last=True)) for name in sampling.protocols}
    usable = {name: pair for name, pair in halves.items() if all(len(s.classes) for s in pair)}
    if not usable:
        reason = "no labelled pixel is held out: confidence is the share in favour of the class"
        none = Calibration.none(labelled.count, zones.count)
        return none, {"skipped": reason, **_on_test(source, sampling, zones, {"after": none})}
    tests = {name: (pair[1], pair[0]) for name, pair in usable.items()}
    parts = tuple(Sample.join([pair[last] for pair in usable.values()]) for last in (0, 1))
    fit, report = calibrate((parts[0], parts[1]), tests, zones.count)
    found = fit.of(_calls_of(source, sampling, 0))
    none = Calibration.none(labelled.count, zones.count)
    on_test = _on_test(source, sampling, zones, {"before": none, "after": found})
    for when, measured in on_test.items():
        report[when] |= measured
    return found, report


def _on_test(
    source: FitScores, sampling: Sampling, zones: Zones, calibrations: dict[str, Calibration]
) -> dict[str, dict[str, Any]]:
    """Return `measure` of the map on the samples of a test file, which make no calibration."""
    tested = sampling.tested()
    scores = source.at_labels(0, tested)
    known = ~np.isnan(scores).any(axis=1)
    tested, scores = tested[known], scores[known]
    if not len(tested):
        return {}
    where, classes = zones.at_labels(0)[tested], sampling.labelled.classes[tested]
    return {
        when: {TEST: quality(probabilities(scores, own, where).astype(float), scores, classes)}
        for when, own in calibrations.items()
    }


def _calls_of(source: FitScores, sampling: Sampling, number: int) -> Calls:
    return Calls.of(source.at_labels(number, sampling.called(number)))
