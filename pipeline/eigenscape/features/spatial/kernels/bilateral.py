"""The joint bilateral filter: means over the pixels around that are like a pixel itself."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray


def space_weights(radius: int, sigma: float) -> NDArray[np.float32]:
    """Return the weights of the pixels around one by their distance, exp(-d^2 / (2 sigma^2)).

    Parameters
    ----------
    radius
        Of the square window, in pixels.
    sigma
        Standard deviation, in pixels.

    Returns
    -------
    array, shape (2 radius + 1, 2 radius + 1)
    """
    steps = np.arange(-radius, radius + 1, dtype=np.float64)
    line = np.exp(-(steps**2) / (2 * sigma**2))
    return np.outer(line, line).astype(np.float32)


@njit(cache=True, nogil=True)
def bilateral(window, valid, weights, factor, filtered):  # type: ignore[no-untyped-def]
    """Filter the inner pixels of a window (Tomasi, Manduchi 1998; all features weigh jointly).

    The mean of the valid pixels around, with weights g exp(-factor d^2), where g is the weight of the
    place and d the distance of the feature vectors. Differences to the pixel itself are summed, so that
    equal pixels stay as they are to the last bit. Each pixel's sums run over the window in one order,
    whatever the window is a part of.

    Parameters
    ----------
    window : array, shape (features, rows + 2 radius, columns + 2 radius), float32
    valid : array of bool, shape (rows + 2 radius, columns + 2 radius)
    weights : array, shape (2 radius + 1, 2 radius + 1), float32
        See `space_weights`.
    factor : float32
        1 / (2 sigma^2) of the range.
    filtered : array, shape (features, rows, columns), float32
        Written; what is not valid is meaningless.
    """
    features, rows, columns = filtered.shape
    side = weights.shape[0]
    radius = side // 2
    squared = np.empty(columns, np.float32)
    total = np.empty(columns, np.float32)
    moved = np.empty((features, columns), np.float32)
    for row in range(rows):
        total[:] = 0
        moved[:] = 0
        for down in range(side):
            for right in range(side):
                near = weights[down, right]
                squared[:] = 0
                for feature in range(features):
                    own = window[feature, row + radius, radius : radius + columns]
                    other = window[feature, row + down, right : right + columns]
                    for column in range(columns):
                        difference = other[column] - own[column]
                        squared[column] += difference * difference
                there = valid[row + down, right : right + columns]
                for column in range(columns):
                    weight = near * math.exp(-factor * squared[column])
                    squared[column] = weight if there[column] else np.float32(0)
                    total[column] += squared[column]
                for feature in range(features):
                    own = window[feature, row + radius, radius : radius + columns]
                    other = window[feature, row + down, right : right + columns]
                    for column in range(columns):
                        moved[feature, column] += squared[column] * (other[column] - own[column])
        for feature in range(features):
            for column in range(columns):
                own_value = window[feature, row + radius, radius + column]
                # A pixel that is not valid may have no weight at all.
                share = moved[feature, column] / max(total[column], np.float32(1))
                filtered[feature, row, column] = own_value + share
