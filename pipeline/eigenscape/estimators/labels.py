"""Labels of some samples, -1 for the others, as in `sklearn.semi_supervised`."""

from typing import Any

import dask.array
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from eigenscape.errors import EstimatorError

UNLABELLED = -1


def check_length(y: Any, samples: int) -> NDArray[Any]:
    """Return labels as an array of one for each sample; of a dask array they are computed.

    Raises
    ------
    ValueError
        They are missing, or not one for each sample.
    """
    if y is None:
        raise EstimatorError(
            "requires y to be passed, but the target y is None. Give one label for each sample, "
            f"{UNLABELLED} for those without one."
        )
    labels: NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    if len(labels) != samples:
        raise EstimatorError(f"y: {len(labels)} labels for {samples} samples.")
    return labels


def is_labelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which samples have a label: every one, where labels are of a type of texts."""
    if labels.dtype.kind in "US":
        return np.ones(len(labels), np.bool_)
    return np.asarray(labels != UNLABELLED, np.bool_)


def encode_labels(y: Any, samples: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, sorted, and the number of the class of each sample, -1 for none.

    Parameters
    ----------
    y : array-like, shape (n,)
        Numbers or texts. Texts with samples that have no label are an array of objects.
    samples
        n.

    Raises
    ------
    ValueError
        They are missing, no classes, or nothing is labelled.
    """
    labels = check_length(y, samples)
    labelled = is_labelled(labels)
    if not labelled.any():
        raise EstimatorError(
            f"y: none of {samples} samples is labelled (all are {UNLABELLED}). Label at least one."
        )
    try:
        check_classification_targets(labels[labelled])
        classes, codes = np.unique(labels[labelled], return_inverse=True)
    except TypeError:
        raise EstimatorError(
            "y: labels of several types, which cannot be sorted. Make all of them texts or numbers."
        ) from None
    encoded = np.full(samples, -1, np.intp)
    encoded[labelled] = codes
    return classes, encoded


def take_class(scores: Any, classes: NDArray[Any]) -> Any:
    """Return the class of the largest score of each sample, lazily of a dask array of scores."""
    if not isinstance(scores, dask.array.Array):
        return classes[scores.argmax(axis=1)]
    return scores.map_blocks(take_class, classes, dtype=classes.dtype, drop_axis=1)
