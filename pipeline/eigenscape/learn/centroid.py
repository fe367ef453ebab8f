"""Classification by the smallest angle to the mean of a class (Halevy 2011, 2.3)."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.memory import ROW_TILE

F4 = NDArray[np.float32]


def class_sums(
    coordinates: F4, classes: NDArray[np.intp], train: NDArray[np.bool_], count: int
) -> NDArray[np.float64]:
    """Return the sum of the coordinates of every class, for several training sets at once.

    Parameters
    ----------
    coordinates : array, shape (m, d)
    classes : array of int, shape (m,)
        0 ... count-1.
    train : array of bool, shape (fits, m)
        Which samples each fit learns from.
    count
        Number of classes.

    Returns
    -------
    array, shape (fits, count, d)
        Enough for the directions of the means, which is all that an angle needs.
    """
    sums = np.zeros((len(train), count, coordinates.shape[1]))
    for number in range(count):
        of_class = classes == number
        if of_class.any():
            sums[:, number] = train[:, of_class].astype(np.float64) @ coordinates[of_class]
    return sums


def unit_means(sums: NDArray[np.float64]) -> F4:
    """Return class sums scaled to length 1; 0 for a class without training samples.

    Parameters
    ----------
    sums : array, shape (..., classes, d)
    """
    lengths = np.linalg.norm(sums, axis=-1, keepdims=True)
    units = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    return np.asarray(units, np.float32)


def cosines(coordinates: F4, means: F4) -> F4:
    """Return |x| cos(angle) of each sample x to each mean, -inf for a mean that is 0.

    Parameters
    ----------
    coordinates : array, shape (m, d)
    means : array, shape (classes, d)
        Of length 1, or 0.
    """
    products: F4 = coordinates @ means.T
    products[:, ~means.any(axis=1)] = -np.inf
    return products


def nearest_class(coordinates: F4, means: F4) -> NDArray[np.intp]:
    """Return the class whose mean has the smallest angle to each sample, for several fits at once.

    Parameters
    ----------
    coordinates : array, shape (m, d)
        Samples without coordinates (NaN) get class -1.
    means : array, shape (fits, classes, d)
        See `unit_means`.

    Returns
    -------
    array of int, shape (fits, m)
    """
    fits, classes, width = means.shape
    best = np.empty((fits, len(coordinates)), np.intp)
    for start in range(0, len(coordinates), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        products = cosines(coordinates[here], means.reshape(-1, width))
        best[:, here] = products.reshape(-1, fits, classes).argmax(axis=2).T
    best[:, ~np.isfinite(coordinates).all(axis=1)] = -1
    return best


def smallest_angle(coordinates: F4, means: F4) -> tuple[NDArray[np.intp], F4]:
    """Return the class whose mean has the smallest angle to each sample, and how clear that is.

    Parameters
    ----------
    coordinates : array, shape (m, d)
        Samples without coordinates (NaN) get class -1.
    means : array, shape (classes, d)
        See `unit_means`; a class whose mean is 0 is never chosen.

    Returns
    -------
    classes : array of int, shape (m,)
    confidence : array, shape (m,), float32
        (b - a) / (b + a) for the smallest angle a and the second smallest b: 0 on the border
        between two classes, 1 on the mean itself.
    """
    classes = nearest_class(coordinates, means[None])[0]
    confidence = np.zeros(len(coordinates), np.float32)
    for start in range(0, len(coordinates), ROW_TILE):
        tile = coordinates[start : start + ROW_TILE]
        lengths = np.linalg.norm(tile, axis=1)[:, None]
        cosine = cosines(tile, means)
        np.divide(cosine, lengths, out=cosine, where=lengths > 0)
        angle = np.arccos(np.clip(cosine, -1, 1))
        angle[:, ~means.any(axis=1)] = np.inf
        angle.partition(min(1, len(means) - 1), axis=1)
        nearest, second = angle[:, 0], angle[:, min(1, len(means) - 1)]
        with np.errstate(invalid="ignore", divide="ignore"):
            clear = np.where(np.isinf(second), 1.0, (second - nearest) / (second + nearest))
        # Both angles are 0, or there are no coordinates: nothing is clear.
        confidence[start : start + ROW_TILE] = np.where(np.isfinite(clear), clear, 0)
    confidence[classes < 0] = 0
    return classes, confidence
