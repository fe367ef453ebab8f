"""Scores of classes to a class, probabilities and an uncertainty: the same for every method.

A score is about the share that speaks for a class: votes cast, the value of a harmonic function, a
least-squares estimate of the probability. The largest one decides. Shares below `FLOOR` are noise,
and all become probabilities by a softmax of their logarithms, which a calibration may scale::

    p_c = exp(a_c log s_c + b_c) / sum        a = 1, b = 0: the shares themselves
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F4 = NDArray[np.float32]

FLOOR = 0.01
"""Shares below it count as this much: one wrong label among a hundred is usual."""


@dataclass(frozen=True)
class Calibration:
    """How shares become probabilities.

    Attributes
    ----------
    factors, shifts : tuple of float
        a and b of every class.
    """

    factors: tuple[float, ...]
    shifts: tuple[float, ...]

    @classmethod
    def none(cls, count: int) -> "Calibration":
        """Return the one that takes shares as they are."""
        return cls((1.0,) * count, (0.0,) * count)


@dataclass(frozen=True)
class Decided:
    """What is said of some samples.

    Attributes
    ----------
    classes : array of int, shape (m,)
        Class of the largest score, -1 where a score is NaN.
    confidence : array, shape (m,), float32
        Probability of that class, 0 without one.
    runner_up : array of int, shape (m,)
        The most probable other class; -1 without one.
    entropy : array, shape (m,), float32
        Of the probabilities, as a share of that of all classes alike: 0 is sure, 1 knows nothing;
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
    return np.where(np.isnan(scores).any(axis=1), -1, scores.argmax(axis=1))


def decide(scores: F4, calibration: Calibration) -> Decided:
    """Return class, probability, runner-up and uncertainty of some samples.

    Parameters
    ----------
    scores : array, shape (m, count)
    calibration
        Changes the probabilities, never the class.
    """
    return describe(choose(scores), probabilities(scores, calibration))


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
    confidence = np.where(known, p[rows, classes], 0)
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


def probabilities(scores: F4, calibration: Calibration) -> F4:
    """Return a distribution over the classes for each sample, NaN where a score is NaN.

    Parameters
    ----------
    scores : array, shape (m, count)
    """
    factors = np.asarray(calibration.factors, np.float32)
    return softmax(evidence(scores) * factors + np.asarray(calibration.shifts, np.float32))


def evidence(scores: F4) -> F4:
    """Return the logarithms of shares, cut at `FLOOR` and at 1."""
    return np.log(np.clip(scores, np.float32(FLOOR), np.float32(1)))


def softmax(logits: F4) -> F4:
    """Return exp(x) over its sum, for each row."""
    parts: F4 = np.exp(logits - logits.max(axis=1, keepdims=True))
    parts /= parts.sum(axis=1, keepdims=True)
    return parts
