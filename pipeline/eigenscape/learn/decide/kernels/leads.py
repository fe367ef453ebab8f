"""Leads of the best classes over the others."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE


def usual_lead(scores: NDArray[np.float32]) -> float:
    """Return the median of how far the best class of a row is ahead of the second, 1 if that is 0.

    Parameters
    ----------
    scores : array, shape (rows, classes)
        Rows that are not finite do not count.
    """
    if scores.shape[1] < 2:
        return 1.0
    found = [np.zeros(0, scores.dtype)]
    for first in range(0, len(scores), ROW_TILE):
        part = scores[first : first + ROW_TILE]
        top = np.partition(part[np.isfinite(part).all(axis=1)], -2, axis=1)
        found.append(top[:, -1] - top[:, -2])
    leads = np.concatenate(found)
    return (float(np.median(leads)) if len(leads) else 0.0) or 1.0
