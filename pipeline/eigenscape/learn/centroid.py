"""Classification by the smallest angle to the mean of a class (Halevy 2011, 2.3)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def smallest_angle(coordinates: F4, means: NDArray[np.float64]) -> tuple[NDArray[np.intp], F4]:
    """Return the class whose mean has the smallest angle to each sample, and how clear that is.

    Parameters
    ----------
    coordinates : array, shape (m, d)
        Samples without coordinates (NaN) get class -1.
    means : array, shape (classes, d)
        Of any length; a class whose mean is 0 (it has no training sample) is never chosen.

    Returns
    -------
    classes : array of int, shape (m,)
    confidence : array, shape (m,), float32
        (b - a) / (b + a) for the smallest angle a and the second smallest b: 0 on the border
        between two classes, 1 on the mean itself.
    """
    lengths = np.linalg.norm(means, axis=1)
    directions = np.divide(
        means, lengths[:, None], out=np.zeros_like(means), where=lengths[:, None] > 0
    )
    norms = np.linalg.norm(coordinates.astype(np.float64), axis=1)
    cosine: NDArray[Any] = coordinates @ directions.T
    np.divide(cosine, norms[:, None], out=cosine, where=norms[:, None] > 0)
    angle = np.arccos(np.clip(cosine, -1, 1))
    angle[:, lengths == 0] = np.inf
    unknown = ~np.isfinite(norms)
    angle[unknown] = np.inf
    best = angle.argmin(axis=1)
    nearest = np.take_along_axis(angle, best[:, None], axis=1)[:, 0]
    np.put_along_axis(angle, best[:, None], np.inf, axis=1)
    second = angle.min(axis=1)
    with np.errstate(invalid="ignore"):
        confidence = np.where(np.isinf(second), 1.0, (second - nearest) / (second + nearest))
    confidence[~np.isfinite(confidence)] = 0  # both angles are 0
    confidence[unknown] = 0
    best[unknown] = -1
    return best, confidence.astype(np.float32)
