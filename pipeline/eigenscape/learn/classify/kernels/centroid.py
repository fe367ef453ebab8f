"""Classification by the smallest angle to the mean of a class (Halevy 2011, 2.3)."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE

F4 = NDArray[np.float32]


def class_sums(coordinates: F4, classes: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return the sum of the coordinates of every class.

    Parameters
    ----------
    coordinates : array, shape (m, d)
    classes : array of int, shape (m,)
        0 ... count-1.
    count
        Number of classes.

    Returns
    -------
    array, shape (count, d)
        Enough for the directions of the means, which is all that an angle needs.
    """
    sums = np.zeros((count, coordinates.shape[1]))
    _add_to_classes(coordinates, classes, sums)
    return sums


@njit(cache=True, nogil=True)
def _add_to_classes(coordinates, classes, sums):  # type: ignore[no-untyped-def]
    for row in range(len(coordinates)):
        for column in range(coordinates.shape[1]):
            sums[classes[row], column] += coordinates[row, column]


def unit_means(sums: NDArray[np.float64]) -> F4:
    """Return class sums scaled to length 1; 0 for a class without training samples.

    Parameters
    ----------
    sums : array, shape (..., classes, d)
    """
    lengths = np.linalg.norm(sums, axis=-1, keepdims=True)
    units = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    return np.asarray(units, np.float32)


def angle_scores(coordinates: F4, means: F4) -> F4:
    """Return (1 + cos) / 2 of the angle of each sample to the mean of each class.

    Parameters
    ----------
    coordinates : array, shape (m, d)
        Samples without coordinates (NaN) have NaN; one that is 0 is at a right angle to everything.
    means : array, shape (classes, d)
        See `unit_means`; a class whose mean is 0 has -inf, so that it is never called.

    Returns
    -------
    array, shape (m, classes), float32
    """
    scores = np.empty((len(coordinates), len(means)), np.float32)
    without = ~means.any(axis=1)
    for start in range(0, len(coordinates), ROW_TILE):
        tile = coordinates[start : start + ROW_TILE]
        # Products of whole tiles: the same bits for any block.
        cosine = tile @ means.T
        lengths = np.sqrt(np.einsum("ij,ij->i", tile, tile))[:, None]
        # Not where the length is NaN either: NaN stays NaN.
        np.divide(cosine, lengths, out=cosine, where=lengths > 0)
        cosine += 1
        cosine /= 2
        cosine[:, without] = -np.inf
        cosine[~np.isfinite(lengths[:, 0])] = np.nan
        scores[start : start + ROW_TILE] = cosine
    return scores
