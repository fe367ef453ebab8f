"""Calibrated probabilities: how sure the called class is, learned from labels that were held out.

Temperature scaling divides the logarithms of the shares by one number; vector scaling has a factor
and a shift of its own for every class (Guo, Pleiss, Sun, Weinberger 2017). Either is fitted by
maximum likelihood, a convex problem. The class stays the one of the largest share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from eigenscape.learn.decisions import Calibration, choose, evidence, probabilities
from eigenscape.learn.labelled import Labelled
from eigenscape.learn.sources import Source

F8 = NDArray[np.float64]

BINS = 15
"""Bins of equal width of the expected calibration error (Guo and others 2017)."""

_MOST_VALUES = 2**18
"""Scores that a calibration is fitted to and measured on, at most: seconds of work."""

_MOST_STEPS = 100
_LEAST = float(np.finfo(np.float32).eps)
"""A probability of 0 is rounding: its logarithm is that of this."""
_RIDGE = 1e-3
"""Holds what no sample tells: the vector is drawn to the shares themselves by about this much."""


@dataclass(frozen=True)
class Sample:
    """Scores of samples whose classes were held out.

    Attributes
    ----------
    scores : array, shape (m, count), float32
    classes : array of int, shape (m,)
    """

    scores: NDArray[np.float32]
    classes: NDArray[np.intp]

    @classmethod
    def join(cls, parts: Sequence["Sample"]) -> "Sample":
        """Return all of them in one; those without scores are left out."""
        scores = np.concatenate([part.scores for part in parts])
        known = ~np.isnan(scores).any(axis=1)
        return cls(scores[known], np.concatenate([part.classes for part in parts])[known])


def fit_calibration(sample: Sample, *, vector: bool) -> Calibration:
    """Return the calibration under which the classes of a sample are most likely.

    Parameters
    ----------
    sample
        At least one.
    vector
        A factor and a shift for every class; otherwise one factor for all, an inverse temperature.
    """
    logs, count = evidence(sample.scores).astype(np.float64), sample.scores.shape[1]
    rows, truth = np.arange(len(logs)), sample.classes

    def unpack(x: F8) -> tuple[F8, F8]:
        # Factors are positive: more votes never speak against a class.
        return (
            (np.exp(x[:count]), x[count:])
            if vector
            else (np.full(count, np.exp(x[0])), np.zeros(count))
        )

    def loss(x: F8) -> tuple[float, F8]:
        factors, shifts = unpack(x)
        logits = logs * factors + shifts
        logits -= logits.max(axis=1, keepdims=True)
        slope = np.exp(logits)
        total = slope.sum(axis=1)
        value = float((np.log(total) - logits[rows, truth]).mean())
        slope /= total[:, None]
        slope[rows, truth] -= 1
        by_factor = np.einsum("ij,ij->j", slope, logs) / len(logs) * factors
        gradient = (
            np.concatenate([by_factor, slope.mean(axis=0)])
            if vector
            else by_factor.sum(keepdims=True)
        )
        return value + _RIDGE / 2 * float(x @ x), gradient + _RIDGE * x

    start = np.zeros(2 * count if vector else 1)
    found = scipy.optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(-5, 5)] * len(start),
        options={"maxiter": _MOST_STEPS},
    )  # fmt: skip
    factors, shifts = unpack(found.x)
    return Calibration(tuple(factors.tolist()), tuple(shifts.tolist()))


def measure(sample: Sample, calibration: Calibration) -> dict[str, float]:
    """Return how good probabilities are, by classes that did not make them.

    Returns
    -------
    dict
        ``expected_calibration_error`` of the called class; ``log_loss`` in nats and ``brier`` (sum of
        squares over the classes) of the whole distribution.
    """
    p = probabilities(sample.scores, calibration).astype(np.float64)
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
    halves: tuple[Sample, Sample], tests: dict[str, tuple[Sample, Sample]]
) -> tuple[Calibration, dict[str, Any]]:
    """Return the calibration of all samples, and what it does to samples it was not fitted to.

    Each half is measured with the calibration of the other. A temperature or a vector is taken,
    whichever has the lower log loss there.

    Parameters
    ----------
    halves
        What to fit to, in two parts that share neither pixels nor fits.
    tests
        For every protocol, what is measured with the calibration of the first and of the second half.
    """
    reports: dict[str, dict[str, Any]] = {}
    for kind in ("temperature", "vector"):
        fitted = [fit_calibration(half, vector=kind == "vector") for half in halves]
        reports[kind] = {name: _pooled(pair, fitted) for name, pair in tests.items()}
    own = next(iter(tests))
    kind = min(reports, key=lambda name: reports[name][own]["log_loss"])
    none = Calibration.none(halves[0].scores.shape[1])
    raw = {name: _pooled(pair, [none, none]) for name, pair in tests.items()}
    report: dict[str, Any] = {
        "kind": kind,
        "pixels": sum(len(half.classes) for half in halves),
        "before": raw,
        "after": reports[kind],
    }
    return fit_calibration(Sample.join(halves), vector=kind == "vector"), report


def _pooled(pair: tuple[Sample, Sample], fitted: list[Calibration]) -> dict[str, float]:
    """Return the means of `measure` over both halves."""
    found = [
        measure(sample, calibration)
        for sample, calibration in zip(pair, fitted, strict=True)
        if len(sample.classes)
    ]
    return {name: float(np.mean([part[name] for part in found])) for name in found[0]}


def calibrate_fits(
    source: Source, labelled: Labelled, protocols: dict[str, list[int]], seed: int
) -> tuple[Calibration, dict[str, Any]]:
    """Calibrate on the held-out labelled samples of the first protocol, measure on all of them.

    Parameters
    ----------
    source
        Scores of every fit at the labelled samples.
    labelled
        They, and the training set of each fit.
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
            parts.append(Sample(scores, labelled.classes[held]))
        return Sample.join(parts)

    halves = {
        name: (half(numbers, last=False), half(numbers, last=True))
        for name, numbers in protocols.items()
    }
    usable = {name: pair for name, pair in halves.items() if all(len(s.classes) for s in pair)}
    if not usable or next(iter(usable)) != next(iter(halves)):
        reason = "no labelled pixel is held out: confidence is the share that speaks for the class"
        return Calibration.none(labelled.count), {"skipped": reason}
    tests = {name: (pair[1], pair[0]) for name, pair in usable.items()}
    return calibrate(halves[next(iter(halves))], tests)
