"""Scores of classes to a class, probabilities and an uncertainty: the same for every method.

A score is approximately the share in favour of a class: votes cast, the value of a harmonic function, a
least-squares estimate of the probability. The largest one decides. Scores become shares by a softmax
of their logarithms; a calibration scales these and mixes in equal shares, and then says how often a
class that is called with such a share is right::

    s_c = score_c, all of a sample less what its largest one is above 1
    h_c = (s_c + sqrt(s_c^2 + 4 floor^2)) / 2             about s_c, and above 0
    q_c = (1 - e) exp(a log h_c) / sum + e / classes      a = 1, e = 0: the shares themselves
    log odds p_k = b log odds q_k + o_k - w log(1 + r)    k the called class; b = 1, o = w = 0: as it is
    p_c = (1 - p_k) q_c / (1 - q_k)                       c another one; evened where it exceeds p_k

r says whether a class was called before more often than there are samples of it: the calls of class k
with at least the lead of this one, over the samples that have class k. Of a class that is called twice
as often as it is found, the half of least lead is wrong, whatever the leads are.

Each step keeps the order of the scores, so the called class is the one of the largest probability,
which is 1 / classes at least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F4 = NDArray[np.float32]
ZoneNumbers = NDArray[np.intp] | None

FLOOR = 0.01
"""What a score of 0 counts as: one wrong label among a hundred is usual."""

_TRIFLE = np.float32(1e-3)
"""Share by which a class that is a guess leads."""

_NEVER = np.float32(-1e6)
"""A class that is out of the question has a score of minus infinity, which cannot be scaled."""


@dataclass(frozen=True)
class Calibration:
    """How shares become probabilities, for each zone of samples.

    Attributes
    ----------
    factors, even : tuple of float, one for each zone
        a, above 0, and e, from 0 to below 1. The last zone is that of samples far from everything
        that is labelled (`eigenscape.labels.zones`).
    slopes : tuple of float, one for each zone
        b, above 0.
    offsets : tuple of tuple of float, one for each zone
        o of the samples for which each class is called.
    excess : tuple of float, one for each zone
        w, at least 0; none where every w is 0, as of the two that follow.
    overcalls : tuple of float, one for each class
        r of the call of least lead: calls of the class over samples that have it.
    leads : tuple of tuple of float, one for each class
        Leads of its calls, descending at equal steps of their number: see `rank`.
    """

    factors: tuple[float, ...]
    even: tuple[float, ...]
    slopes: tuple[float, ...]
    offsets: tuple[tuple[float, ...], ...]
    excess: tuple[float, ...] = ()
    overcalls: tuple[float, ...] = ()
    leads: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def none(cls, count: int, zones: int = 1) -> "Calibration":
        """Return the one that takes shares as they are."""
        ones = (1.0,) * zones
        return cls(ones, (0.0,) * zones, ones, ((0.0,) * count,) * zones)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Calibration":
        """Return what `to_json` was made of."""
        return cls(**{name: _frozen(value) for name, value in values.items()})

    def to_json(self) -> dict[str, list[Any]]:
        """Return it as lists, for a summary."""
        return {name: _plain(values) for name, values in vars(self).items()}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Decided:
    """Decisions for some samples.

    Attributes
    ----------
    classes : array of int, shape (m,)
        Class of the largest score, -1 where a score is NaN.
    confidence : array, shape (m,), float32
        Probability of that class, 0 without one.
    runner_up : array of int, shape (m,)
        The most probable other class; -1 without one.
    entropy : array, shape (m,), float32
        Of the probabilities, as a share of that of all classes alike: 0 is certain, 1 is no information;
        NaN without a class.
    """

    classes: NDArray[np.intp]
    confidence: F4
    runner_up: NDArray[np.intp]
    entropy: F4


def choose(scores: F4) -> NDArray[np.intp]:
    """Return the class of the largest score of each sample, -1 where one is NaN.

    Parameters
    ----------
    scores : array, shape (m, count)
    """
    best = scores.argmax(axis=1)
    # NaN comes before every number to NumPy, so where there is one the "largest" is it.
    return np.where(np.isnan(scores[np.arange(len(scores)), best]), -1, best)


def decide(scores: F4, calibration: Calibration, zones: ZoneNumbers = None) -> Decided:
    """Return class, probability, runner-up and uncertainty of some samples.

    Parameters
    ----------
    scores : array, shape (m, count)
    calibration
        Changes the probabilities, never the class.
    zones
        See `probabilities`.
    """
    return describe(choose(scores), probabilities(scores, calibration, zones))


def describe(classes: NDArray[np.intp], p: F4) -> Decided:
    """Return what is said of some samples, by their classes and their distributions.

    Parameters
    ----------
    classes : array of int, shape (m,)
        -1 for none.
    p : array, shape (m, count)
        Probabilities.
    """
    known, rows = classes >= 0, np.arange(len(classes))
    # As an average share is rounded, it must not fall below it.
    least = np.nextafter(np.float32(1 / p.shape[1]), np.float32(1))
    confidence = np.where(known, np.maximum(p[rows, classes], least), 0)
    # 0 log 0 = 0.
    logs = np.log(np.maximum(p, np.finfo(np.float32).tiny))
    entropy = -(p * logs).sum(axis=1) / max(np.log(p.shape[1]), np.finfo(np.float32).tiny)
    others = np.where(np.isnan(p), 0, p)
    others[rows, classes] = -1
    runner_up = np.where(known & (p.shape[1] > 1), others.argmax(axis=1), -1)
    return Decided(
        classes, confidence.astype(np.float32), runner_up,
        np.clip(entropy, 0, 1).astype(np.float32),
    )  # fmt: skip


def probabilities(scores: F4, calibration: Calibration, zones: ZoneNumbers = None) -> F4:
    """Return a distribution over the classes for each sample, NaN where a score is NaN.

    The first of the largest ones is that of the class that `choose` returns.

    Parameters
    ----------
    scores : array, shape (m, count)
    calibration
        Fitted to the scores of held-out samples.
    zones : array of int, shape (m,), optional
        Zone of each; the last one by default.
    """
    called = choose(scores)
    zone = np.broadcast_to(np.intp(-1) if zones is None else zones, called.shape)
    q = tempered(evidence(scores), calibration, zone)
    odds = np.asarray(calibration.slopes, np.float32)[zone] * log_odds(q, called)
    odds += np.asarray(calibration.offsets, np.float32)[zone, called]
    if any(calibration.excess):
        places = rank(called, lead_of(scores, called), calibration.leads)
        places *= np.asarray(calibration.overcalls)[called]
        weight = np.asarray(calibration.excess, np.float32)[zone]
        odds -= weight * np.log1p(places).astype(np.float32)
    return keep_class(resolve(q, called, odds), called)


def lead_of(scores: F4, called: NDArray[np.intp]) -> F4:
    """Return by how much the called classes lead: log odds of the shares as they are, shape (m,).

    Rounded, so that equal votes have equal leads wherever they are computed.
    """
    return np.round(log_odds(softmax(evidence(scores)), called), 3)


def rank(
    called: NDArray[np.intp], leads: F4, table: Sequence[Sequence[float]]
) -> NDArray[np.float64]:
    """Return the share of the calls of each one's class that have at least its lead, shape (m,).

    Parameters
    ----------
    called : array of int, shape (m,)
        -1 for none, of which nothing is said.
    leads : array, shape (m,)
        See `lead_of`.
    table
        For each class leads, descending: j / (length - 1) of its calls have at least the j-th.
    """
    found = np.zeros(len(called))
    for number in np.unique(called[called >= 0]):
        own, steps = called == number, -np.asarray(table[number])
        found[own] = np.interp(-leads[own].astype(np.float64), steps, np.linspace(0, 1, len(steps)))
    return found


def tempered(logs: F4, calibration: Calibration, zones: NDArray[np.intp]) -> F4:
    """Return the shares q of the head of this module.

    Parameters
    ----------
    logs : array, shape (m, count)
        See `evidence`.
    calibration
        With the factor and the even share of each zone.
    zones : array of int, shape (m,)
    """
    factors, even = (
        np.asarray(values, logs.dtype)[zones][:, None]
        for values in (calibration.factors, calibration.even)
    )
    return (1 - even) * softmax(factors * logs) + even / logs.dtype.type(logs.shape[1])


def log_odds(q: F4, called: NDArray[np.intp]) -> F4:
    """Return the logarithm of the share of the called class over that of all others, shape (m,)."""
    rows = np.arange(len(q))
    # Not 1 - q: of a share near 1 little would be left of that.
    others = q.copy()
    others[rows, called] = 0
    rest = np.maximum(others.sum(axis=1), np.finfo(np.float32).tiny)
    return np.asarray(np.log(q[rows, called] / rest), q.dtype)


def resolve(q: F4, called: NDArray[np.intp], odds: F4) -> F4:
    """Return distributions whose called class has given log odds, the others as in q.

    Parameters
    ----------
    q : array, shape (m, count)
        Shares, that of the called class the largest.
    called : array of int, shape (m,)
    odds : array, shape (m,)
        Odds that would leave it less than 1 / count count as those of 1 / count. Where another class
        would have more than the called one, the others are evened until none has.
    """
    rows, count = np.arange(len(q)), q.shape[1]
    if count == 1:
        return np.asarray(q / q)
    own = np.maximum(1 / (1 + np.exp(-np.clip(odds, -80, 80))), 1 / count)
    others = q.copy()
    others[rows, called] = 0
    total = others.sum(axis=1, keepdims=True)
    others = np.divide(others, total, out=np.full_like(others, 1 / (count - 1)), where=total > 0)
    # own <= 1 / 2 wherever others can exceed it.
    most = own / np.maximum(1 - own, np.finfo(np.float32).tiny)
    top, even = others.max(axis=1), 1 / (count - 1)
    spread = np.maximum(top - even, np.finfo(np.float32).tiny)
    mixed = (np.clip(top - most, 0, spread) / spread)[:, None]
    p = (1 - own)[:, None] * ((1 - mixed) * others + mixed * even)
    p[rows, called] = own
    return np.asarray(p, q.dtype)


def evened(scores: F4) -> F4:
    """Return scores that call the same classes with next to no lead.

    Parameters
    ----------
    scores : array, shape (m, count)
    """
    called = choose(scores)
    even = np.full_like(scores, 1 / scores.shape[1])
    even[np.arange(len(scores)), called] *= 1 + _TRIFLE
    even[called < 0] = np.nan
    return even


def keep_class(values: F4, classes: NDArray[np.intp]) -> F4:
    """Return values whose first largest is at a given class: raised where rounding changed the order.

    Parameters
    ----------
    values : array, shape (m, count)
        Changed in place.
    classes : array of int, shape (m,)
        -1 for none.
    """
    rows = np.flatnonzero((classes >= 0) & (values.argmax(axis=1) != classes))
    above = np.nextafter(values[rows].max(axis=1), np.float32(np.inf))
    values[rows, classes[rows]] = above
    return values


def evidence(scores: F4) -> F4:
    """Return the logarithms of shares that are above 0 and whose largest is at most about 1.

    They follow the order of the scores however large or small these are.

    Parameters
    ----------
    scores : array, shape (m, count)
    """
    least = np.maximum(lowered(scores), _NEVER)
    return np.asarray(
        np.arcsinh(least / np.float32(2 * FLOOR)) + np.float32(np.log(FLOOR)), np.float32
    )


def lowered(scores: F4) -> F4:
    """Return scores less what the largest one of a sample is above 1: potentials have no scale."""
    return np.asarray(scores - np.maximum(scores.max(axis=1, keepdims=True) - 1, 0), np.float32)


def softmax(logits: F4) -> F4:
    """Return exp(x) over its sum, for each row."""
    parts: F4 = np.exp(logits - logits.max(axis=1, keepdims=True))
    parts /= parts.sum(axis=1, keepdims=True)
    return parts
