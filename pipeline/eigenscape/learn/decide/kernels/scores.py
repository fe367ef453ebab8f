"""Accuracy from confusion matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Confusion = NDArray[np.int64]


def confusion_matrix(truth: NDArray[np.intp], predicted: NDArray[np.intp], count: int) -> Confusion:
    """Return how often class i was called j; the last column counts samples called nothing (-1).

    Returns
    -------
    array, shape (count, count + 1)
    """
    called = np.where(predicted < 0, count, predicted)
    cells = np.bincount(truth * (count + 1) + called, minlength=count * (count + 1))
    return cells.reshape(count, count + 1)


OF_ALL = ("overall_accuracy", "average_accuracy", "kappa", "mean_f1", "mean_iou")
"""Measures of all classes together."""

MEANS = ("average_accuracy", "mean_f1", "mean_iou")
"""Those of them that are means over the classes."""

OF_CLASSES = ("per_class", "users_accuracy", "f1", "iou")
"""Measures of each class, the first one being the producer's accuracy."""


def rates(confusion: NDArray[np.number]) -> dict[str, NDArray[np.float64]]:
    """Return the measures of confusion matrices; see `measures`.

    Parameters
    ----------
    confusion : array, shape (..., classes, classes + 1)
        See `confusion_matrix`.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    return measures(right, confusion.sum(axis=-1), confusion[..., :-1].sum(axis=-2))


def measures(
    right: NDArray[np.number], sizes: NDArray[np.number], calls: NDArray[np.number]
) -> dict[str, NDArray[np.float64]]:
    """Return all measures of what was called how often.

    With n samples of a class, m calls of it and t of both: producer's accuracy t / n (recall), user's
    accuracy t / m (precision), F1 2 t / (n + m), intersection over union t / (n + m - t). Means are
    over the classes that have samples. Kappa is Cohen's. A share of nothing (0 / 0) is not measured, never
    0: the user's accuracy of a class without calls, the producer's accuracy of a class without samples,
    kappa where all samples and calls are of one class.

    Parameters
    ----------
    right, sizes, calls : array, shape (..., classes)
        Of each class the samples called rightly, those that have it, and the calls of it.

    Returns
    -------
    dict
        `OF_ALL`, shape (...), and `OF_CLASSES`, shape (..., classes); NaN where nothing was measured.
    """
    right, sizes, calls = (values.astype(np.float64) for values in (right, sizes, calls))
    total = sizes.sum(axis=-1)

    def share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.full(part.shape, np.nan)
        np.divide(part, whole, out=shares, where=whole > 0)
        return shares

    found = {
        "per_class": share(right, sizes),
        "users_accuracy": share(right, calls),
        # Not measured without samples, as the means over classes leave such a class out.
        "f1": np.where(sizes > 0, share(2 * right, sizes + calls), np.nan),
        "iou": np.where(sizes > 0, share(right, sizes + calls - right), np.nan),
    }
    overall = share(right.sum(axis=-1), total)
    chance = share((sizes * calls).sum(axis=-1), total**2)
    present = np.maximum((sizes > 0).sum(axis=-1), 1)

    def mean(name: str) -> NDArray[np.float64]:
        values = np.where(sizes > 0, found[name], 0).sum(axis=-1) / present
        return np.where(total > 0, values, np.nan)

    return {
        "overall_accuracy": overall,
        "average_accuracy": mean("per_class"),
        "kappa": share(overall - chance, 1 - chance),
        "mean_f1": mean("f1"),
        "mean_iou": mean("iou"),
        **found,
    }


def accuracy(confusion: Confusion) -> dict[str, Any]:
    """Return the measures of a confusion matrix as numbers and lists, None where nothing was measured.

    Parameters
    ----------
    confusion : array, shape (classes, classes + 1)
        See `confusion_matrix`.

    Returns
    -------
    dict
        What `rates` says, and ``samples``.
    """
    found = rates(confusion)
    return {
        **{name: plain(found[name].tolist()) for name in (*OF_ALL, *OF_CLASSES)},
        "samples": int(confusion.sum()),
    }


def plain(value: Any) -> Any:
    """Return numbers of nested lists, None for NaN."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    return None if np.isnan(value) else value


def summarize(confusions: Sequence[Confusion]) -> dict[str, Any]:
    """Return the measures of several trials.

    Those of all classes together (`OF_ALL`) are means, with standard deviations, over the trials that measure
    them: kappa is None where every trial has a single class, and a standard deviation where fewer than two
    trials do; ``kappa_trials`` counts those that measure it. Those of each class (`OF_CLASSES`) are of the
    counts of all trials together, as is the confusion matrix: a small class may get no call in most trials,
    and a mean of its user's accuracy would leave these out.
    """
    trials = [accuracy(confusion) for confusion in confusions if confusion.any()]
    total = np.sum(confusions, axis=0)
    pooled = accuracy(total)
    result: dict[str, Any] = {"trials": len(trials)}
    for name in OF_ALL:
        values = [trial[name] for trial in trials if trial[name] is not None]
        result[name] = float(np.mean(values)) if values else None
        result[f"{name}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    result["kappa_trials"] = sum(trial["kappa"] is not None for trial in trials)
    result |= {name: pooled[name] for name in OF_CLASSES}
    result["confusion"] = total.tolist()
    return result
