"""Fits of a calibration to samples whose classes were held out.

Two steps, for each zone (`eigenscape.labels.zones`) by itself: near what is labelled a class is more often
right than far from it. Random draws leave pixels near those that were learned from; squares leave
far ones.

1. Temperature scaling divides the logarithms of the shares by one number (Guo, Pleiss, Sun, Weinberger
   2017); equal shares are mixed in, for samples that are unlike all that was learned from (Zhang,
   Kailkhura, Han 2020).
2. A logistic regression estimates how often such a call is right (Platt 1999): a slope for the log odds of
   the called class, an offset for each class, and two weights for what a fit calls more often than
   samples have it. Of a class that is called in half of a scene and found in a tenth of it, at most a
   fifth of the calls are right, however clear their lead; and those of the largest lead are. So one
   weight is for the samples of a class over its calls, and one for those over the calls of no less
   lead. Poisson learning calls one class nearly everywhere where a draw has most labels of it, and with
   classes of given sizes it has those of the draw. How many samples a class has is what the held-out
   ones say that a calibration is fitted to; a fit is known by its calls alone.

Offsets of classes are drawn to the common one by some samples' worth: a class that few squares hold was
right or wrong there by chance. For the same reason the odds are taken whole or half of the way from
those of the shares, whichever has the lower log loss of calls, right or wrong, on other draws. All numbers
are fitted by maximum likelihood, and keep the called class the most probable one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from eigenscape.learn.decide.kernels.decisions import (
    Calibration,
    choose,
    evidence,
    lead_of,
    log_odds,
    rank,
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
"""Bounds: of the logarithm of the slope, of offsets, of the weights of what is called too often."""
_LEAST_SAMPLES = 50
"""A zone with fewer is calibrated as all samples are."""


_STEPS = 32
"""Of the leads of a class that are noted."""


@dataclass(frozen=True)
class Calls:
    """What a fit calls samples that it did not learn from: no class of theirs is in it.

    Attributes
    ----------
    shares : array, shape (count,)
        Of the classes among the calls; none is 0.
    leads : array, shape (count, 33)
        See `eigenscape.learn.decide.kernels.decisions.rank`.
    """

    shares: F8
    leads: F8

    @classmethod
    def of(cls, scores: NDArray[np.float32]) -> "Calls":
        """Return those of scores, shape (m, count)."""
        called, count = choose(scores), scores.shape[1]
        leads = lead_of(scores, called).astype(np.float64)
        table = np.zeros((count, _STEPS + 1))
        for number in np.unique(called[called >= 0]):
            own = -np.sort(-leads[called == number])
            last = np.ceil(np.linspace(0, 1, _STEPS + 1) * len(own)).astype(np.intp) - 1
            table[number] = own[np.maximum(last, 0)]
        return cls(_shares(called[called >= 0], count), table)

    def sample(
        self, scores: NDArray[np.float32], classes: NDArray[np.intp], zones: NDArray[np.intp]
    ) -> "Sample":
        """Return some samples with what their fit says of them; those without scores are left out."""
        known = ~np.isnan(scores).any(axis=1)
        scores = scores[known]
        called = choose(scores)
        places = rank(called, lead_of(scores, called), self.leads.tolist())
        calls = self.shares[called]
        return Sample(scores, classes[known], zones[known], calls, places * calls)


@dataclass(frozen=True)
class Sample:
    """Scores of samples whose classes were held out.

    Attributes
    ----------
    scores : array, shape (m, count), float32
    classes : array of int, shape (m,)
    zones : array of int, shape (m,)
    calls : array, shape (m,)
        Share of the called class among all calls of the fit.
    before : array, shape (m,)
        Share of its calls with at least the lead of this one, among all calls of the fit.
    """

    scores: NDArray[np.float32]
    classes: NDArray[np.intp]
    zones: NDArray[np.intp]
    calls: F8
    before: F8

    @classmethod
    def join(cls, parts: Sequence["Sample"]) -> "Sample":
        """Return all of them in one."""
        return cls(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(cls)
            )
        )

    def overcalled(self, shares: F8) -> F8:
        """Return what is known of a call from how many samples have its class, shape (2, m).

        The logarithm of samples over calls of the class, 0 if there are more samples; and -log(1 + r) of
        `eigenscape.learn.decide.kernels.decisions`. Both are 0 at most.

        Parameters
        ----------
        shares : array, shape (count,)
            Of the samples that have each class.
        """
        own = shares[choose(self.scores)]
        return np.array([np.minimum(np.log(own / self.calls), 0), -np.log1p(self.before / own)])


def _shares(classes: NDArray[np.intp], count: int) -> F8:
    """Return the share of each class; one sample more of each, so that none is 0."""
    sizes = np.bincount(classes, minlength=count) + 1.0
    return np.asarray(sizes / sizes.sum())


@dataclass(frozen=True)
class Fit:
    """Results of a fit to held-out samples.

    Attributes
    ----------
    calibration
        Of classes that are called no more often than samples have them.
    weights : tuple of (float, float), one for each zone
        Of both rows of `Sample.overcalled`, at least 0.
    shares : tuple of float, one for each class
        Of the samples that have it.
    """

    calibration: Calibration
    weights: tuple[tuple[float, float], ...]
    shares: tuple[float, ...]

    def of(self, calls: Calls) -> Calibration:
        """Return the calibration of the samples of one fit, by its calls."""
        over = calls.shares / np.array(self.shares)
        rarity, excess = zip(*self.weights, strict=True)
        offsets = np.array(self.calibration.offsets) - np.outer(rarity, np.maximum(np.log(over), 0))
        return replace(
            self.calibration,
            offsets=tuple(map(tuple, offsets.tolist())),
            excess=excess,
            overcalls=tuple(over.tolist()),
            leads=tuple(map(tuple, calls.leads.tolist())),
        )

    def taken(self, step: float) -> "Fit":
        """Return the fit that goes a part of the way from shares as tempered to these odds, 0 ... 1."""
        own = self.calibration
        return replace(
            self,
            calibration=replace(
                own,
                slopes=tuple(1 + step * (slope - 1) for slope in own.slopes),
                offsets=tuple(tuple(step * value for value in zone) for zone in own.offsets),
            ),
            weights=tuple((step * one, step * other) for one, other in self.weights),
        )

    def probabilities(self, sample: Sample) -> F8:
        """Return a distribution over the classes for each sample."""
        called, own = choose(sample.scores), self.calibration
        q = tempered(evidence(sample.scores).astype(np.float64), own, sample.zones)
        odds = np.array(own.slopes)[sample.zones] * log_odds(q, called)
        odds += np.array(own.offsets)[sample.zones, called]
        weights = np.array(self.weights)[sample.zones]
        odds += (weights.T * sample.overcalled(np.array(self.shares))).sum(axis=0)
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
    shares = _shares(sample.classes, count)
    overcalled = sample.overcalled(shares)
    factors: list[float] = []
    even: list[float] = []
    found: list[tuple[float, tuple[float, ...], tuple[float, float]]] = []
    for zone in range(zones):
        inside = sample.zones == zone
        if inside.sum() < _LEAST_SAMPLES:
            inside[:] = True
        factor, mixed = _fit_shares(logs[inside], sample.classes[inside])
        own = Calibration((factor,), (mixed,), (1.0,), ((0.0,) * count,))
        q = tempered(logs[inside], own, np.zeros(int(inside.sum()), np.intp))
        right = called[inside] == sample.classes[inside]
        odds = np.asarray(log_odds(q, called[inside]), np.float64)
        found.append(_fit_odds(odds, called[inside], overcalled[:, inside], right, count))
        factors.append(factor)
        even.append(mixed)
    slopes, offsets, weights = zip(*found, strict=True)
    own = Calibration(tuple(factors), tuple(even), slopes, offsets)
    return Fit(own, weights, tuple(shares.tolist()))


def _fit_shares(logs: F8, truth: NDArray[np.intp]) -> tuple[float, float]:
    """Return a and e of `eigenscape.learn.decide.kernels.decisions`."""
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

    x = _minimize(loss, [(-5, 5), (0, _MOST_EVEN)])
    return float(np.exp(x[0])), float(x[1])


def _fit_odds(
    odds: F8, called: NDArray[np.intp], overcalled: F8, right: NDArray[np.bool_], count: int
) -> tuple[float, tuple[float, ...], tuple[float, float]]:
    """Return slope, offset of each class and both weights, by which the calls are right."""
    ridge = np.array([_RIDGE, _OFFSET_RIDGE, _RIDGE, _RIDGE, *[_OFFSET_RIDGE] * count])

    def loss(x: F8) -> tuple[float, F8]:
        slope = np.exp(x[0])
        z = slope * odds + x[1] + x[2:4] @ overcalled + x[4:][called]
        away = 1 / (1 + np.exp(-z)) - right
        gradient = [(away @ odds) * slope, away.sum(), *(overcalled @ away)]
        value = (np.logaddexp(0, z) - right * z).sum() + (ridge * x**2).sum() / 2
        return float(value), ridge * x + np.concatenate(
            [gradient, np.bincount(called, away, minlength=count)]
        )

    bounds = [_SLOPES, _OFFSETS, _WEIGHTS, _WEIGHTS, *[_OFFSETS] * count]
    x = _minimize(loss, bounds)
    offsets = tuple((x[1] + x[4:]).tolist())
    return float(np.exp(x[0])), offsets, (float(x[2]), float(x[3]))


def _minimize(loss: Callable[[F8], tuple[float, F8]], bounds: Sequence[tuple[float, float]]) -> F8:
    """Return where a function, whose value and gradient are given, is least within bounds, from 0 on."""
    # Here: it takes a third of a second, which commands that fit nothing would wait for.
    import scipy.optimize

    found: F8 = scipy.optimize.minimize(
        loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": _MOST_STEPS},
    ).x  # fmt: skip
    return found
