"""From squared distances to the distances in the lists."""

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Metric: TypeAlias = Literal["euclidean", "angle"]


def lengths(squared: NDArray[np.float32], metric: Metric) -> NDArray[np.float32]:
    """Return distances in the units of the features, or angles in radians.

    Parameters
    ----------
    squared : array
        Squared distances; for angles those of vectors of length 1, whose chord c belongs to the
        angle 2 arcsin(c / 2), which near 0 keeps the digits that a cosine would lose.
    metric
        What the distances are.
    """
    chord = np.sqrt(squared)
    if metric == "angle":
        return np.asarray(2 * np.arcsin(np.minimum(chord / 2, 1)), np.float32)
    return np.asarray(chord)


def chord_of(radius: float, metric: Metric) -> float:
    """Return the straight distance that belongs to a radius."""
    if metric == "euclidean":
        return radius
    # Opposite vectors come out a rounding error farther apart than 2.
    return math.inf if radius >= math.pi else 2 * math.sin(radius / 2)
