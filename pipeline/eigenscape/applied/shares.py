"""Share of evidence for each class at new samples, by their neighbours in a run."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.trained import FlatNeighbors

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]

FAR = 2.0
"""A new sample whose neighbours are up to this many times as far away as theirs are is one of the
run's kind. On halves of two real scenes (every other strip of columns) 99.7 % of the samples are."""


def neighbor_shares(
    near: FlatNeighbors,
    weights: F4,
    twins: NDArray[np.int64],
    classes: NDArray[np.int32],
    confidence: F4,
    count: int,
) -> F8:
    """Return the mean of the neighbours' distributions over the classes, by the weights of the graph.

    That is the harmonic extension of the run's probabilities: f(x) = sum_j W(x, j) f_j / d(x). What
    a sample of the run does not give to its class is shared by the others alike.

    Parameters
    ----------
    near
        Lists of m new samples.
    weights : array
        Of each entry of the lists.
    twins : array, shape (m,)
        The sample of the run whose distribution a new one takes over, -1 for the mean.
    classes : array, shape (n,)
        Of the samples of the run, 0 ... count-1; -1 for none, which says nothing.
    confidence : array, shape (n,)
        Probability of that class.
    count
        Number of classes.

    Returns
    -------
    array, shape (m, count)
        NaN for samples none of whose neighbours has a class.
    """
    starts, index, _ = near
    rows = np.repeat(np.arange(len(twins)), np.diff(starts))
    parts = weights.astype(np.float64)
    parts[twins[rows] >= 0] = 0
    alike = np.flatnonzero(twins >= 0)
    rows = np.concatenate([rows, alike])
    index = np.concatenate([index, twins[alike]])
    parts = np.concatenate([parts, np.ones(len(alike))])
    known = classes[index] >= 0
    rows, index, parts = rows[known], index[known], parts[known]
    cells, size = rows * count + classes[index], len(twins) * count
    sure = confidence[index]
    # Where no cell is given, NumPy counts in integers, whatever the weights.
    own, rest = (
        np.bincount(cells, weight, size).astype(np.float64).reshape(-1, count)
        for weight in (parts * sure, parts * (1 - sure))
    )
    own += (rest.sum(axis=1, keepdims=True) - rest) / max(count - 1, 1)
    total = own.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(own, total, out=np.full_like(own, np.nan), where=total > 0))


def trust(near: FlatNeighbors, scale: F4) -> F8:
    """Return how far the neighbours of new samples can be trusted, 0 ... 1.

    r is the distance to the last neighbour over the mean of these neighbours' own such distances. Up
    to `FAR` they are trusted; beyond, by (FAR / r)^2.

    Parameters
    ----------
    near
        Lists of m new samples.
    scale : array, shape (n,)
        Distance of each sample of the run to its own last neighbour.

    Returns
    -------
    array, shape (m,)
        0 without neighbours.
    """
    starts, index, distance = near
    counts = np.diff(starts)
    rows = np.repeat(np.arange(len(counts)), counts)
    own = np.zeros(len(counts), np.float32)
    np.maximum.at(own, rows, distance)
    usual = np.bincount(rows, scale[index], len(counts)) / np.maximum(counts, 1)
    ratio = np.divide(own, usual, out=np.full(len(own), np.inf), where=usual > 0)
    return np.where(counts > 0, np.minimum(1, (FAR / np.maximum(ratio, FAR)) ** 2), 0)
