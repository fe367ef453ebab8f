"""Confidence intervals of accuracies: a bootstrap over groups of samples, not over samples.

Neighbouring pixels are alike, so that as many pixels as there are tell less than as many independent
ones would. Squares of the scene are drawn with replacement, each with all of its tested pixels (Efron,
Tibshirani 1993, 8.5: the block bootstrap), and measured like the scene; intervals are percentiles.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from eigenscape.learn.kernels.scores import OF_ALL, OF_CLASSES, measures, plain

LEVEL = 0.95
"""Of the intervals."""

_REPLICATES = 1000


def bootstrap(
    groups: NDArray[np.intp],
    trials: NDArray[np.intp],
    truth: NDArray[np.intp],
    called: NDArray[np.intp],
    count: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the interval of each measure of `summarize`: means over trials, for drawn groups.

    Parameters
    ----------
    groups, trials : array of int, shape (m,)
        Group and trial of each tested sample, from 0; a sample may be in several trials.
    truth, called : array of int, shape (m,)
        Classes, -1 where it was called nothing.
    count
        Number of classes.
    rng
        Source of the draws.

    Returns
    -------
    dict
        Of `OF_ALL` [low, high]; of `OF_CLASSES` a list of them. None where fewer than two groups
        hold what is measured; ``replicates`` and the number of ``groups``.
    """
    names, group = np.unique(groups, return_inverse=True)
    shape = (int(trials.max(initial=0)) + 1, count)
    good = called == truth
    # How many samples of each group are right, of a class, called it: in each trial.
    tables = [
        _table(trials[own] * count + classes[own], group[own], (shape[0] * count, len(names)))
        for own, classes in ((good, truth), (truth >= 0, truth), (called >= 0, called))
    ]
    found: dict[str, list[Any]] = {name: [] for name in (*OF_ALL, *OF_CLASSES)}
    for _ in range(_REPLICATES):
        drawn = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        measured = measures(*((table @ drawn).reshape(shape) for table in tables))
        for name, values in found.items():
            values.append(_mean(measured[name]))
    report: dict[str, Any] = {"replicates": _REPLICATES, "groups": len(names)}
    if len(names) < 2:
        return {**report, **dict.fromkeys(OF_ALL), **{name: [None] * count for name in OF_CLASSES}}
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    held = [len(np.unique(group[truth == number])) > 1 for number in range(count)]
    for name, values in found.items():
        with np.errstate(invalid="ignore"):
            low_high = _percentiles(np.array(values), ends)
        report[name] = plain(low_high.T.tolist())
    for name in OF_CLASSES:
        pairs = zip(report[name], held, strict=True)
        report[name] = [pair if known and None not in pair else None for pair, known in pairs]
    return report


def _table(
    rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, int]
) -> sp.csr_array:
    """Return how often each row meets each column."""
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over the first axis, of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    sums, sizes = np.where(known, values, 0).sum(axis=0), known.sum(axis=0)
    means = np.full(np.shape(sums), np.nan)
    np.divide(sums, sizes, out=means, where=sizes > 0)
    return means


def _percentiles(values: NDArray[np.float64], ends: tuple[float, float]) -> NDArray[np.float64]:
    """Return percentiles over the first axis, shape (2, ...), NaN where a column has no value."""
    columns = values.reshape(len(values), -1).T
    found = [
        np.quantile(own, ends) if len(own := column[~np.isnan(column)]) else (np.nan, np.nan)
        for column in columns
    ]
    return np.array(found).T.reshape(2, *values.shape[1:])
