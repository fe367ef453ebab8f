"""The Rayleigh-Ritz step: dense algebra of the order of the number of columns."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_LEAST_PIVOT = 1e-5
"""Cholesky pivot, columns of length 1, below which the directions are sorted out by `eigh`."""

_LEAST_SHARE = 1e-11


@dataclass(frozen=True)
class Rotation:
    """A Rayleigh-Ritz step on a block of vectors: X <- Y C.

    Attributes
    ----------
    values : array, shape (m,)
        Ritz values of the m columns of Y, ascending; inf where a column carries no new direction.
    C : array, shape (m, m)
        0 in such columns.
    """

    values: Matrix
    C: Matrix


def rank(values: Matrix) -> int:
    """Return the number of columns that carry a direction, from their Ritz values."""
    return int(np.isfinite(values).sum())


def rayleigh_ritz(G: Matrix, H: Matrix) -> Rotation:
    """Return the Ritz values of A in the span of Y, and the rotation to its Ritz vectors.

    Parameters
    ----------
    G, H : array, shape (m, m)
        Y^T Y and Y^T A Y; overwritten.
    """
    length = np.sqrt(np.maximum(np.diag(G), 0))
    scale = np.divide(1, length, out=np.zeros_like(length), where=length > 0)
    G *= scale[:, None] * scale
    H += H.T.copy()
    H *= 0.5 * scale[:, None] * scale
    values, T = _whiten_by_cholesky(G, H) or _whiten_by_eigh(G, H)
    T *= scale[:, None]
    m = len(G)
    if len(values) < m:
        values = np.concatenate([values, np.full(m - len(values), np.inf)])
        T = np.hstack([T, np.zeros((m, m - T.shape[1]))])
    return Rotation(values, T)


def _whiten_by_cholesky(G: Matrix, H: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return eigenpairs of the pencil (H, G), or None when G is nearly singular."""
    try:
        L = scipy.linalg.cholesky(G, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    if np.diag(L).min() < _LEAST_PIVOT:
        return None
    half = scipy.linalg.solve_triangular(L, H, lower=True, check_finite=False)
    inner = scipy.linalg.solve_triangular(
        L, half.T, lower=True, overwrite_b=True, check_finite=False
    )
    values, Q = scipy.linalg.eigh(inner, overwrite_a=True, check_finite=False, driver="evd")
    T = scipy.linalg.solve_triangular(
        L, Q, lower=True, trans="T", overwrite_b=True, check_finite=False
    )
    return values, T


def _whiten_by_eigh(G: Matrix, H: Matrix) -> tuple[Matrix, Matrix]:
    """Return the eigenpairs of the pencil (H, G) in the directions that G holds."""
    share, U = np.linalg.eigh(G)
    keep = share > _LEAST_SHARE * share[-1]
    T = U[:, keep] / np.sqrt(share[keep])
    values, Q = np.linalg.eigh(T.T @ H @ T)
    return values, T @ Q
