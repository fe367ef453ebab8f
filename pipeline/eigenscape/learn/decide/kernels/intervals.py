"""Confidence intervals of accuracies: a bootstrap over groups of samples, not over samples.

Neighbouring pixels are alike, so that as many pixels as there are tell less than as many independent
ones would. Squares of the scene are drawn with replacement, each with all of its tested pixels (Efron,
Tibshirani 1993, 8.5: the block bootstrap), and measured like the scene; intervals are percentiles.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.learn.decide.kernels.scores import MEANS, OF_ALL, OF_CLASSES, measures, plain

LEVEL = 0.95
"""Of the intervals."""

_REPLICATES = 1000

_LEAST_COMPLETE = 0.1
"""Share of the replicates that hold all classes, of which percentiles of means over the classes are taken."""

_LEAST_WIDTH = 1e-9
"""Of an interval: less is rounding."""

_TILE = 2**14
"""Numbers of an array: so many draws are measured at once."""


def bootstrap(
    trials: Iterable[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]],
    groups: int,
    count: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the interval of each measure of `summarize`, for drawn groups.

    Parameters
    ----------
    trials : iterable of three arrays of int, shape (m,)
        Of the tested samples of each trial: group, class, and the class that each was called, -1 for
        none.
    groups, count
        Number of groups, some of which may hold no tested sample, and of classes.
    rng
        Source of the draws.

    Returns
    -------
    dict
        Of `OF_ALL` [low, high]; of `OF_CLASSES` a list of them. None where fewer than two groups
        hold what is measured, or nothing is measured, or all draws are equal: groups without a mistake
        show no spread, but others may have some. Means over the classes (`MEANS`) are measured in
        replicates that hold all of them, since a mean without the worst class is not the same measure; None
        where one group alone holds a class, or replicates that hold all are few. ``replicates``, the
        number of ``groups``, and ``class_groups``, of those that hold each class.
    """
    parts: list[list[sp.csr_array]] = []
    for group, truth, called in trials:
        # Samples of each class and group that are right, that have it, that are called it.
        right, known = called == truth, called >= 0
        pairs = ((truth[right], group[right]), (truth, group), (called[known], group[known]))
        parts.append([_table(rows, columns, (count, groups)) for rows, columns in pairs])
    tables = [sp.vstack(column, format="csr") for column in zip(*parts, strict=True)]
    shape = (len(parts), count)
    used = np.flatnonzero(tables[1].sum(axis=0))
    held = [
        len(set(chain(*(part[1][[number]].indices for part in parts)))) for number in range(count)
    ]
    report: dict[str, Any] = {
        "replicates": _REPLICATES,
        "groups": len(used),
        "class_groups": held,
    }
    if len(used) < 2:
        return {**report, **dict.fromkeys(OF_ALL), **{name: [None] * count for name in OF_CLASSES}}
    tested = tables[1].sum(axis=1).reshape(shape) > 0
    found: dict[str, list[Any]] = {name: [] for name in (*OF_ALL, *OF_CLASSES)}
    for first, end in blocks(_REPLICATES, max(1, _TILE // max(groups, *tables[0].shape))):
        drawn = used[rng.integers(len(used), size=(end - first, len(used)))]
        drawn += groups * np.arange(end - first)[:, None]
        times = np.bincount(drawn.ravel(), minlength=(end - first) * groups).reshape(-1, groups).T
        counts = [(table @ times).T.reshape(-1, *shape) for table in tables]
        measured, pooled = measures(*counts), measures(*(part.sum(axis=1) for part in counts))
        complete = ((counts[1] > 0) == tested).all(axis=-1)
        for name in OF_ALL:
            counted = complete if name in MEANS else True
            found[name].extend(_mean(np.where(counted, measured[name], np.nan)))
        for name in OF_CLASSES:
            found[name].extend(pooled[name])
    ends = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    for name, values in found.items():
        with np.errstate(invalid="ignore"):
            report[name] = plain(_percentiles(np.array(values), ends).T.tolist())
    for name in OF_ALL:
        report[name] = report[name] if _has_width(report[name]) else None
    if 1 in held or np.count_nonzero(~np.isnan(found[MEANS[0]])) < _LEAST_COMPLETE * _REPLICATES:
        report |= dict.fromkeys(MEANS)
    for name in OF_CLASSES:
        report[name] = [
            low_high if known > 1 and _has_width(low_high) else None
            for low_high, known in zip(report[name], held, strict=True)
        ]
    return report


def _has_width(low_high: list[float | None]) -> bool:
    low, high = low_high
    return low is not None and high is not None and high - low > _LEAST_WIDTH


def _table(
    rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, int]
) -> sp.csr_array:
    """Return how often each row meets each column."""
    cells, counts = np.unique(rows * shape[1] + columns, return_counts=True)
    return sp.csr_array((counts.astype(np.float64), divmod(cells, shape[1])), shape=shape)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over the second axis, of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    sums, sizes = np.where(known, values, 0).sum(axis=1), known.sum(axis=1)
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
