"""Least squares on the first eigenvectors at the labelled samples (Belkin 2003, 3.5; Cunha, 4).

With a weight of roughness they are Tikhonov regularisation (Belkin 2003, 3.7.1) within the span of these
eigenvectors, where it takes a system of a few hundred equations, whatever the number of samples.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE

F4 = NDArray[np.float32]

LABELS_PER_EIGENVECTOR = 5
"""The rule of the thesis: as many eigenvectors as a fifth of the labels."""

_REFERENCE = 30
"""Number of the eigenvector whose eigenvalue counts as 1: graphs of unlike features have eigenvalues of
unlike size, and one weight suits them all. Measured on eight scenes: best at weights of 0.03 to 1."""

_MOST_PENALTY = 1e4
"""Of a coefficient, in units of its part in the error: more leaves as little of it, and would hide the
others in `_LEAST_SHARE`."""

_LEAST_SHARE = 1e-10
"""Of the largest eigenvalue of the normal equations: what is below carries no information."""


def choose_count(
    asked: int | Literal["auto"], labels: int, classes: int, modes: int, extended: int, *,
    smooth: bool = False,
) -> int:  # fmt: skip
    """Return how many eigenvectors to use beside the constant one.

    The tables of the thesis do not count it: with it among the first five or ten, errors on MNIST
    are 5 to 10 points above those of table 3.1, without it they agree.

    Parameters
    ----------
    asked
        A number, or "auto" for a fifth of the labels, as in Belkin 2003, 3.5, but enough to tell as
        many classes apart, and of those that extend to new samples.
    labels, classes
        Training samples, and their classes.
    modes
        How many there are.
    extended
        How many of them extend to new samples.
    smooth
        Whether rough functions are penalised: then "auto" is all that extend.
    """
    if asked != "auto":
        return min(asked, modes)
    wanted = modes if smooth else max(1, classes - 1, labels // LABELS_PER_EIGENVECTOR)
    return min(wanted, modes, max(1, extended))


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


def roughness(
    G: NDArray[np.float64], values: NDArray[np.float64], nulls: int, gamma: float, power: int
) -> NDArray[np.float64]:
    """Return what a weight of roughness adds to the diagonal of the normal equations.

    It is gamma sum_i (lambda_i / lambda_30)^power c_i^2, for each training sample and for functions whose
    mean square there is sum_i c_i^2; null vectors are free. Of fewer than 30 eigenvectors the last one counts
    as 1. Where 30 eigenvalues are next to 0, as of clumps that hang together by single edges, functions are
    constant on these.

    Parameters
    ----------
    G : array, shape (p, p)
        See `normal_equations`.
    values : array, shape (p,)
        Eigenvalues, ascending.
    nulls
        Number of null vectors.
    gamma, power
        Weight, and exponent. Without weight all is 0.

    Returns
    -------
    array, shape (p,)
    """
    found = np.zeros(len(values))
    others = np.maximum(values[nulls:], 0)
    if others.any():
        # Eigenvalues are known to single precision.
        least = np.finfo(np.float32).eps * others[-1]
        unit = max(others[min(_REFERENCE, len(others)) - 1], least)
        scale = np.diagonal(G)[nulls:].mean()
        found[nulls:] = scale * np.minimum(gamma * (others / unit) ** power, _MOST_PENALTY)
    return found


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


def estimates(vectors: F4, weights: F4) -> F4:
    """Return (1 + f) / 2 of the function f of every class: an estimate of its probability.

    The expectation of targets of 1 and -1 is 2 p - 1, and least squares estimate it.

    Parameters
    ----------
    vectors : array, shape (m, p)
        Samples without coordinates (NaN) have NaN.
    weights : array, shape (p, count)
        See `solve`.

    Returns
    -------
    array, shape (m, count), float32
        Outside of 0 ... 1 where a function overshoots.
    """
    scores = np.empty((len(vectors), weights.shape[1]), np.float32)
    for start in range(0, len(vectors), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        # Products of whole tiles: the same bits for any block.
        scores[here] = (1 + vectors[here] @ weights) / 2
    scores[~np.isfinite(vectors).all(axis=1)] = np.nan
    return scores
