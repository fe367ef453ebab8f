"""Votes of the pairs of a support vector machine."""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels.distances import squared


@njit(cache=True, nogil=True)
def count_wins(X, vectors, starts, coefficients, offsets, width):  # type: ignore[no-untyped-def]
    """Return the pairs that each class wins, and less than a half more for how clearly: shape (m, classes).

    Parameters
    ----------
    X : array, shape (m, d)
        Standardised samples.
    vectors : array, shape (support, d)
        Support vectors, class by class.
    starts : array of int, shape (classes + 1,)
        Where those of each class begin.
    coefficients : array, shape (support, classes)
        Of each against each of the classes, 0 against its own.
    offsets : array, shape (pairs,)
        Of the pairs (0, 1), (0, 2), ... (1, 2), ...
    width
        The kernel is exp(-width d^2).
    """
    count = len(starts) - 1
    won = np.zeros((len(X), count))
    sums = np.empty((count, count))
    clear = np.empty(count)
    for row in range(len(X)):
        # sums[i, j]: what the support vectors of class i say of i against j.
        sums[:] = 0
        for i in range(count):
            for support in range(starts[i], starts[i + 1]):
                near = np.exp(-width * squared(X, row, vectors, support))
                for j in range(count):
                    sums[i, j] += coefficients[support, j] * near
        clear[:] = 0
        pair = 0
        for i in range(count):
            for j in range(i + 1, count):
                value = sums[i, j] + sums[j, i] + offsets[pair]
                pair += 1
                clear[i] += value
                clear[j] -= value
                if value > 0:
                    won[row, i] += 1
                else:
                    won[row, j] += 1
        for i in range(count):
            won[row, i] += clear[i] / (3 * (abs(clear[i]) + 1))
    return won
