"""Least squares on the first eigenvectors at the labelled samples (Belkin 2003, 3.5; Cunha, 4)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.memory import ROW_TILE

F4 = NDArray[np.float32]

LABELS_PER_EIGENVECTOR = 5
"""The rule of the thesis: as many eigenvectors as a fifth of the labels."""

_LEAST_SHARE = 1e-10
"""Of the largest eigenvalue of the normal equations: what is below carries no information."""


def choose_count(asked: int | Literal["auto"], labels: int, modes: int) -> int:
    """Return how many eigenvectors to use.

    Parameters
    ----------
    asked
        A number, or "auto" for a fifth of the labels, as in Belkin 2003, 3.5.
    labels
        Training samples.
    modes
        How many there are.
    """
    wanted = max(2, labels // LABELS_PER_EIGENVECTOR) if asked == "auto" else asked
    return min(wanted, modes)


def normal_equations(
    vectors: F4, classes: NDArray[np.intp], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E^T E and E^T C, which add up over blocks of training samples.

    Parameters
    ----------
    vectors : array, shape (m, p)
        E, the first p eigenvectors at m training samples.
    classes : array of int, shape (m,)
        0 ... count-1; column c of C is 1 in class c and -1 elsewhere.
    count
        Number of classes.

    Returns
    -------
    G : array, shape (p, p)
    B : array, shape (p, count)
    """
    X = vectors.astype(np.float64)
    B = np.repeat(-X.sum(axis=0)[:, None], count, axis=1)
    for number in range(count):
        B[:, number] += 2 * X[classes == number].sum(axis=0)
    return X.T @ X, B


def solve(G: NDArray[np.float64], B: NDArray[np.float64]) -> F4:
    """Return the least-squares coefficients of every class, the shortest where many fit.

    Parameters
    ----------
    G, B
        See `normal_equations`.

    Returns
    -------
    array, shape (p, count)
    """
    values, U = np.linalg.eigh(G)
    keep = values > _LEAST_SHARE * max(values[-1], np.finfo(np.float64).tiny)
    weights: NDArray[np.float64] = U[:, keep] @ ((U[:, keep].T @ B) / values[keep, None])
    return weights.astype(np.float32)


def classify(vectors: F4, weights: F4) -> tuple[NDArray[np.intp], F4]:
    """Return the class with the largest value of each sample, and by how much it leads.

    Parameters
    ----------
    vectors : array, shape (m, p)
        Samples without coordinates (NaN) get class -1.
    weights : array, shape (p, count)
        See `solve`.

    Returns
    -------
    classes : array of int, shape (m,)
    confidence : array, shape (m,), float32
        Half the lead over the next class, at most 1: what perfect values of 1 and -1 would give.
    """
    classes = np.empty(len(vectors), np.intp)
    lead = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        # Products of whole tiles: the same bits for any block.
        classes[here], lead[here] = leading(vectors[here] @ weights)
    return classes, np.clip(lead / 2, 0, 1)


def leading(scores: F4) -> tuple[NDArray[np.intp], F4]:
    """Return the class of the largest score and its lead over the next one.

    Parameters
    ----------
    scores : array, shape (m, count)
        A sample with a NaN gets class -1 and lead 0; so does the lead of a class alone.
    """
    known = np.isfinite(scores).all(axis=1)
    classes: NDArray[np.intp] = np.where(known, scores.argmax(axis=1), -1)
    lead = np.zeros(len(scores), np.float32)
    if scores.shape[1] > 1:
        top = np.partition(scores[known], -2, axis=1)
        lead[known] = top[:, -1] - top[:, -2]
    return classes, lead
