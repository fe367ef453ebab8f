"""Labels of some samples, and which samples have none.

A sample has no label where `y` is -1 (a number, or the text "-1", which NumPy makes of it among
texts), an empty text, None, NaN, masked or a missing value of pandas.
"""

from typing import Any

import dask.array
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from eigenscape.errors import EstimatorError

UNLABELLED = -1
_UNLABELLED_TEXTS = ("", str(UNLABELLED))

_MADE_OF_MISSING = ("nan", "<NA>")
"""Texts that NumPy and pandas make of missing values among texts."""


class PartialClassifierMixin(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose `score` counts the samples that have a label."""

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the labelled samples whose class is predicted.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)
        y : array-like, shape (m,)
            Labels; samples without one (-1, None, NaN) do not count.
        sample_weight : array-like, shape (m,), optional
            Weight of each sample.

        Returns
        -------
        float
            From 0 to 1.
        """
        return labelled_accuracy(self, X, y, sample_weight=sample_weight)


def labelled_accuracy(
    estimator: Any, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the accuracy of a classifier on the samples that have a label: a scorer of scikit-learn.

    For ``scoring=`` of `sklearn.model_selection.GridSearchCV` and its like on partial labels, where
    the scorer "accuracy" would take -1 for a class that is never predicted.

    Parameters
    ----------
    estimator
        A fitted classifier, or a pipeline that ends in one.
    X : array-like, sparse array or dask array, shape (m, d)
    y : array-like, shape (m,)
        Labels; samples without one (-1, None, NaN) do not count.
    sample_weight : array-like, shape (m,), optional
        Weight of each sample.

    Returns
    -------
    float
        The share of the labelled samples whose class is predicted, from 0 to 1.

    Raises
    ------
    EstimatorError
        No sample has a label.

    Examples
    --------
    >>> import numpy as np
    >>> import eigenscape
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.where(np.arange(200) < 4, np.arange(200) % 2, -1)
    >>> classifier = eigenscape.PoissonClassifier(random_state=0).fit(X, y)
    >>> eigenscape.labelled_accuracy(classifier, X, y)
    1.0
    """
    labels = check_length(y, X.shape[0] if hasattr(X, "shape") else len(X))
    known = is_labelled(labels)
    if not known.any():
        raise EstimatorError(
            f"y: none of {len(labels)} samples to score has a label. Take fewer folds, or "
            "StratifiedKFold, which gives each fold its share of the labels."
        )
    predicted = np.asarray(estimator.predict(X))[known]
    weight = None if sample_weight is None else _weights(sample_weight, known)
    return float(accuracy_score(_plain(labels[known]), predicted, sample_weight=weight))


def _weights(given: ArrayLike, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights of the labelled samples."""
    weight = np.asarray(_exact(given))
    if weight.shape != known.shape:
        raise EstimatorError(
            f"sample_weight: shape {weight.shape} for {len(known)} samples. Give one weight for each."
        )
    missing = pd.isna(weight[known])
    if missing.any():
        raise EstimatorError(
            f"sample_weight: {int(missing.sum())} of {len(missing)} labelled samples have none. Give a "
            "number for each, 0 to leave a sample out."
        )
    return weight[known].astype(np.float64)


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
    if np.ma.is_masked(y):
        hidden = np.ma.getmaskarray(y)
        y = np.ma.getdata(y).astype(object)
        y[hidden] = None
    labels: NDArray[Any] = np.asarray(_exact(y))
    if labels.dtype.kind in "US" and isinstance(y, list | tuple):
        # NumPy has made texts of what is None, NaN or a number among texts.
        labels = np.array(y, object)
    if labels.dtype.kind == "S":
        raise EstimatorError("y: labels are bytes. Give texts: y.astype(str).")
    labels = column_or_1d(labels, warn=True)
    if len(labels) != samples:
        raise EstimatorError(f"y: {len(labels)} labels for {samples} samples.")
    return labels


def _exact(y: Any) -> Any:
    """Return labels of the types that pandas adds to those of NumPy as objects.

    NumPy would make floats of integers and of categories among which some are missing: large ones would be
    no longer distinct.
    """
    if isinstance(y, pd.DataFrame):
        return y.astype(object) if any(map(pd.api.types.is_extension_array_dtype, y.dtypes)) else y
    extended = pd.api.types.is_extension_array_dtype(getattr(y, "dtype", None))
    return y.astype(object) if extended else y


def is_labelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which samples have a label: see the head of this module."""
    kind = labels.dtype.kind
    if kind == "U":
        return ~np.isin(labels, _UNLABELLED_TEXTS)
    if kind != "O":
        return np.asarray((labels != UNLABELLED) & ~pd.isna(labels), np.bool_)
    known = ~pd.isna(labels)
    known[known] = [_is_label(label) for label in labels[known]]
    return np.asarray(known, np.bool_)


def _is_label(label: Any) -> bool:
    return label not in _UNLABELLED_TEXTS if isinstance(label, str) else bool(label != UNLABELLED)


def encode_labels(y: Any, samples: int, *, least: int = 1) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, sorted, and the number of the class of each sample, -1 for none.

    Parameters
    ----------
    y : array-like, shape (n,)
        Numbers or texts.
    samples
        n.
    least
        Classes that are needed where some samples have no label.

    Raises
    ------
    ValueError
        They are missing, no classes, too few classes, or nothing is labelled.
    """
    labels = check_length(y, samples)
    labelled = is_labelled(labels)
    if not labelled.any():
        raise EstimatorError(
            f"y: none of {samples} samples is labelled (all are {UNLABELLED}, None or NaN). Label at "
            "least one."
        )
    known = _plain(labels[labelled])
    check_classification_targets(known)
    classes, codes = np.unique(known, return_inverse=True)
    if len(classes) < least and not labelled.all():
        raise EstimatorError(
            f"y: the only class is {classes[0]!s}, on {len(known)} samples; the other "
            f"{samples - len(known)} have no label, for {UNLABELLED}, None and NaN stand for none. If "
            f"{UNLABELLED} is a class, encode the classes as 0, 1, ...: "
            "sklearn.preprocessing.LabelEncoder().fit_transform(y). Otherwise label samples of another."
        )
    encoded = np.full(samples, -1, np.intp)
    encoded[labelled] = codes
    return classes, encoded


def _plain(known: NDArray[Any]) -> NDArray[Any]:
    """Return labels that are there as scikit-learn wants them: numbers that were objects as numbers.

    Raises
    ------
    EstimatorError
        They are of several types, of types that are no classes, or texts that stand for a missing value.
    """
    if known.dtype.kind in "OU" and (made := np.isin(known, _MADE_OF_MISSING)).any():
        raise EstimatorError(
            f"y: the label of {int(made.sum())} samples is the text {str(known[made][0])!r}, which NumPy and "
            f"pandas make of a missing value. Give None or {UNLABELLED} for no label, or another name to "
            "the class."
        )
    if known.dtype.kind != "O":
        return known
    texts = [isinstance(label, str) for label in known]
    if any(texts):
        if not all(texts):
            raise EstimatorError(
                "y: labels of several types, which cannot be sorted. Make all of them texts or numbers."
            )
        return known
    plain = np.asarray(known.tolist())
    if plain.dtype.kind == "O":
        raise EstimatorError(
            f"y: labels of type {type(known[0]).__name__}. Give texts or whole numbers: y.astype(str)."
        )
    return plain if plain.ndim == 1 else known


def take_class(scores: Any, classes: NDArray[Any]) -> Any:
    """Return the class of the largest score of each sample, lazily of a dask array of scores."""
    if not isinstance(scores, dask.array.Array):
        return classes[scores.argmax(axis=1)]
    return scores.map_blocks(take_class, classes, dtype=classes.dtype, drop_axis=1)
