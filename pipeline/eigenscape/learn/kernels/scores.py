"""Accuracy from confusion matrices."""

from collections.abc import Mapping, Sequence
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


def accuracy(confusion: Confusion) -> dict[str, Any]:
    """Return overall and average accuracy, kappa and the accuracy of each class.

    Parameters
    ----------
    confusion : array, shape (classes, classes + 1)
        See `confusion_matrix`.

    Returns
    -------
    dict
        ``overall_accuracy``: share of the samples called rightly; ``average_accuracy``: mean of
        the classes' own shares (producer's accuracy) over classes that have samples; ``kappa``:
        Cohen's; ``per_class``: share of each class, None without samples; ``samples``.
    """
    total = int(confusion.sum())
    if total == 0:
        empty = dict.fromkeys(("overall_accuracy", "average_accuracy", "kappa"))
        return {**empty, "per_class": [None] * len(confusion), "samples": 0}
    right = np.diag(confusion).astype(np.float64)
    sizes = confusion.sum(axis=1)
    overall = float(right.sum() / total)
    shares = np.divide(right, sizes, out=np.full(len(right), np.nan), where=sizes > 0)
    chance = float((sizes / total) @ (confusion[:, :-1].sum(axis=0) / total))
    return {
        "overall_accuracy": overall,
        "average_accuracy": float(np.nanmean(shares)),
        "kappa": (overall - chance) / (1 - chance) if chance < 1 else 1.0,
        "per_class": [None if np.isnan(share) else float(share) for share in shares],
        "samples": total,
    }


def lead(held_out: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the protocol whose figures come first: by squares of the scene where it measured anything.

    Neighbouring pixels are alike, so that other draws flatter. None where nothing was measured.

    Parameters
    ----------
    held_out
        What `summarize` returned, by protocol.
    """
    names = sorted(held_out, key=lambda name: name != "blocked")
    return next((name for name in names if held_out[name]["overall_accuracy"] is not None), None)


def summarize(confusions: Sequence[Confusion]) -> dict[str, Any]:
    """Return the mean of `accuracy` over several trials, with its standard deviation.

    The confusion matrix that comes with it is the sum over the trials.
    """
    every = [accuracy(confusion) for confusion in confusions]
    trials = [trial for trial in every if trial["samples"]]
    total = np.sum(confusions, axis=0)
    result: dict[str, Any] = {"trials": len(trials)}
    for name in ("overall_accuracy", "average_accuracy", "kappa"):
        values = [trial[name] for trial in trials]
        result[name] = float(np.mean(values)) if values else None
        result[f"{name}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    columns = zip(*(trial["per_class"] for trial in every), strict=True)
    per_class = [[share for share in column if share is not None] for column in columns]
    result["per_class"] = [float(np.mean(shares)) if shares else None for shares in per_class]
    result["confusion"] = total.tolist()
    return result
