"""Fits of a calibration to samples whose classes were held out.

Two steps, for each zone (`eigenscape.labels.zones`) by itself: near what is labelled a class is more often
right than far from it. Random draws leave pixels near those that were learned from; squares leave
far ones.

1. Temperature scaling divides the logarithms of the shares by one number (Guo, Pleiss, Sun, Weinberger
   2017); equal shares are mixed in, for samples that are unlike all that was learned from (Zhang,
   Kailkhura, Han 2020).
2. A logistic regression estimates how often such a call is right (Platt 1999): a slope for the log odds of
   the called class, an offset for each class, and a weight for how much rarer the class is among
   the training samples of the fit than among its calls. A class that is called of half a scene
   and labelled in a tenth of it is wrong in most places, however clear its lead: so are the calls
   of Poisson learning where the labels of one class outnumber the others.

Offsets of classes are drawn to the common one by some samples' worth: a class that few squares hold was
right or wrong there by chance. For the same reason the odds are taken whole or half of the way from
those of the shares, whichever has the lower log loss on other draws. All numbers are fitted by maximum
likelihood, and keep the called class the most probable one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from eigenscape.labels.training import Labelled
from eigenscape.learn.kernels.decisions import (
    Calibration,
    choose,
    evidence,
    log_odds,
    resolve,
    softmax,
    tempered,
)

F8 = NDArray[np.float64]

_MOST_STEPS = 100
LEAST = float(np.finfo(np.float32).eps)
"""A probability of 0 is rounding: its logarithm is that of this."""
_RIDGE = 1.0
"""Weight of the prior, in samples: shares as they are."""
_MIX_RIDGE = 10.0
"""Of the mixed part, in units of that of the logarithm of the factor."""
_OFFSET_RIDGE = 30.0
"""Of the offset of all, and of those of classes from it. Of 10 to 1000, and of shares of the samples, 30 had
the least log loss on squares of other draws (eight methods on four scenes)."""
_MOST_EVEN = 0.95
_SLOPES, _OFFSETS, _WEIGHTS = (-4.0, 1.5), (-6.0, 6.0), (0.0, 4.0)
"""Bounds: of the logarithm of the slope, of offsets, of the weight of rarity."""
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
    rarity : array, shape (m,)
        Of the called class in the fit that made the scores: see `rarity_of`.
    """

    scores: NDArray[np.float32]
    classes: NDArray[np.intp]
    zones: NDArray[np.intp]
    rarity: F8

    @classmethod
    def join(cls, parts: Sequence["Sample"]) -> "Sample":
        """Return all of them in one; those without scores are left out."""
        joined = [
            np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)
        ]
        known = ~np.isnan(joined[0]).any(axis=1)
        return cls(*(values[known] for values in joined))


def rarity_of(labelled: Labelled, number: int, scores: NDArray[np.float32]) -> F8:
    """Return by how much each class is rarer among a fit's training samples than among its calls.

    Parameters
    ----------
    labelled
        The labelled samples, and the training set of the fit.
    number
        Of the fit.
    scores : array, shape (labelled, count)
        Of all of them.

    Returns
    -------
    array, shape (count,)
        Logarithm of its share of the training samples over its share of the calls; 0 if it is
        commoner there. No label that was held out is in it.
    """
    called, own = choose(scores), labelled.classes[labelled.train[number]]
    shares = [
        np.bincount(values, minlength=labelled.count) + 1.0 for values in (own, called[called >= 0])
    ]
    trained, told = (values / values.sum() for values in shares)
    return np.asarray(np.minimum(np.log(trained / told), 0))


@dataclass(frozen=True)
class Fit:
    """Results of a fit to held-out samples.

    Attributes
    ----------
    calibration
        Of classes that are no rarer among the training samples than among the calls.
    weights : tuple of float, one for each zone
        Weight of rarity, at least 0.
    """

    calibration: Calibration
    weights: tuple[float, ...]

    def of(self, rarity: F8) -> Calibration:
        """Return the calibration of the samples of one fit, by the rarity of its classes."""
        offsets = np.array(self.calibration.offsets) + np.outer(self.weights, rarity)
        return replace(self.calibration, offsets=tuple(map(tuple, offsets.tolist())))

    def taken(self, step: float) -> "Fit":
        """Return the fit that goes a part of the way from shares as tempered to these odds, 0 ... 1."""
        own = self.calibration
        return Fit(
            replace(
                own,
                slopes=tuple(1 + step * (slope - 1) for slope in own.slopes),
                offsets=tuple(tuple(step * value for value in zone) for zone in own.offsets),
            ),
            tuple(step * weight for weight in self.weights),
        )

    def probabilities(self, sample: Sample) -> F8:
        """Return a distribution over the classes for each sample."""
        called, own = choose(sample.scores), self.calibration
        q = tempered(evidence(sample.scores).astype(np.float64), own, sample.zones)
        odds = np.array(own.slopes)[sample.zones] * log_odds(q, called)
        odds += np.array(own.offsets)[sample.zones, called]
        odds += np.array(self.weights)[sample.zones] * sample.rarity
        return np.asarray(resolve(q, called, odds), np.float64)


def fit_calibration(sample: Sample, zones: int) -> Fit:
    """Return the calibration under which the classes of a sample are most likely.

    Parameters
    ----------
    sample
        At least one.
    zones
        Number of zones.
    """
    logs, called = evidence(sample.scores).astype(np.float64), choose(sample.scores)
    count = logs.shape[1]
    factors: list[float] = []
    even: list[float] = []
    found: list[tuple[float, tuple[float, ...], float]] = []
    for zone in range(zones):
        inside = sample.zones == zone
        if inside.sum() < _LEAST_SAMPLES:
            inside[:] = True
        factor, mixed = _fit_shares(logs[inside], sample.classes[inside])
        own = Calibration((factor,), (mixed,), (1.0,), ((0.0,) * count,))
        q = tempered(logs[inside], own, np.zeros(int(inside.sum()), np.intp))
        right = called[inside] == sample.classes[inside]
        odds = np.asarray(log_odds(q, called[inside]), np.float64)
        found.append(_fit_odds(odds, called[inside], sample.rarity[inside], right, count))
        factors.append(factor)
        even.append(mixed)
    slopes, offsets, weights = zip(*found, strict=True)
    return Fit(Calibration(tuple(factors), tuple(even), slopes, offsets), weights)


def _fit_shares(logs: F8, truth: NDArray[np.intp]) -> tuple[float, float]:
    """Return a and e of `eigenscape.learn.kernels.decisions`."""
    rows, count = np.arange(len(logs)), logs.shape[1]
    weight = _RIDGE * np.array([1, _MIX_RIDGE])

    def loss(x: F8) -> tuple[float, F8]:
        factor, even = np.exp(x[0]), x[1]
        q = softmax(factor * logs)
        own = q[rows, truth]
        p = np.maximum((1 - even) * own + even / count, LEAST)
        lead = logs[rows, truth] - (q * logs).sum(axis=1)
        slope = np.array(
            [-((1 - even) * own * factor * lead / p).sum(), -((1 / count - own) / p).sum()]
        )
        return float((weight * x**2).sum() / 2 - np.log(p).sum()), slope + weight * x

    found = scipy.optimize.minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-5, 5), (0, _MOST_EVEN)],
        options={"maxiter": _MOST_STEPS},
    )  # fmt: skip
    return float(np.exp(found.x[0])), float(found.x[1])


def _fit_odds(
    odds: F8, called: NDArray[np.intp], rarity: F8, right: NDArray[np.bool_], count: int
) -> tuple[float, tuple[float, ...], float]:
    """Return slope, offset of each class and weight of rarity, by which the calls are right."""
    ridge = np.array([_RIDGE, _OFFSET_RIDGE, _RIDGE, *[_OFFSET_RIDGE] * count])

    def loss(x: F8) -> tuple[float, F8]:
        slope = np.exp(x[0])
        z = slope * odds + x[1] + x[2] * rarity + x[3:][called]
        away = 1 / (1 + np.exp(-z)) - right
        gradient = [(away @ odds) * slope, away.sum(), away @ rarity]
        value = (np.logaddexp(0, z) - right * z).sum() + (ridge * x**2).sum() / 2
        return float(value), ridge * x + np.concatenate(
            [gradient, np.bincount(called, away, minlength=count)]
        )

    bounds = [_SLOPES, _OFFSETS, _WEIGHTS, *[_OFFSETS] * count]
    x = scipy.optimize.minimize(
        loss, np.zeros(len(ridge)), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": _MOST_STEPS},
    ).x  # fmt: skip
    return float(np.exp(x[0])), tuple((x[1] + x[3:]).tolist()), float(x[2])
