"""The direction along which a set of samples is split."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors

DIRECTION_ROWS = 1024
"""Most rows from which a direction is estimated."""

_LANCZOS_STEPS = 12


def principal_direction(vectors: Vectors, turn: int = 0) -> NDArray[np.float32]:
    """Return the unit vector along which centred rows vary most, by a few Lanczos steps.

    Parameters
    ----------
    vectors : array or csr_array, shape (rows, d)
        At most 1024 of them, evenly spaced, are looked at.
    turn
        With a positive number, a random direction drawn with their covariance instead.

    Returns
    -------
    array, shape (d,), float32
        Its largest entry is positive. Rows that are all equal give the first axis.
    """
    step = -(-vectors.shape[0] // DIRECTION_ROWS) if vectors.shape[0] else 1
    some = vectors[::step]
    rows, width = some.shape
    # Starting from the longest row needs no random numbers and is never orthogonal to the data.
    if isinstance(some, np.ndarray):
        centred = some - some.mean(axis=0, dtype=np.float64).astype(np.float32)
        start = centred[np.einsum("ij,ij->i", centred, centred).argmax()].astype(np.float64)
        drawn = _gaussian(turn, rows) @ centred if turn else start
        if rows > width:
            # One product is cheaper than twelve passes over the rows.
            scatter = (centred.T @ centred).astype(np.float64)
            apply = scatter.__matmul__
        else:
            wide = centred.astype(np.float64)
            apply = lambda vector: wide.T @ (wide @ vector)  # noqa: E731
    else:
        mean = np.asarray(some.mean(axis=0)).ravel()
        longest = int(np.asarray(some.power(2).sum(axis=1)).ravel().argmax())
        start = some[[longest]].toarray()[0].astype(np.float64) - mean
        drawn = start
        if turn:
            weights = _gaussian(turn, rows)
            drawn = some.T @ weights - mean * weights.sum()

        def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
            image = np.asarray(some @ vector)
            image -= mean @ vector
            return np.asarray(some.T @ image - mean * image.sum())

    if not np.linalg.norm(start) > 0:
        return np.asarray(np.eye(1, width)[0], np.float32)
    direction = drawn if turn else leading_vector(apply, start, min(_LANCZOS_STEPS, width))
    direction = direction * np.sign(direction[np.abs(direction).argmax()])
    return np.asarray(direction / np.linalg.norm(direction), np.float32)


def _gaussian(turn: int, rows: int) -> NDArray[np.float64]:
    return np.asarray(np.random.default_rng(turn).standard_normal(rows))


def leading_vector(
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    steps: int,
) -> NDArray[np.float64]:
    """Return an estimate of the leading eigenvector of a symmetric operator, by Lanczos steps.

    Parameters
    ----------
    apply
        The operator, positive semi-definite.
    start : array, shape (d,)
        Not 0.
    steps
        Dimension of the Krylov space.
    """
    basis = np.zeros((steps, len(start)))
    diagonal, off = np.zeros(steps), np.zeros(steps)
    vector = start / np.linalg.norm(start)
    for j in range(steps):
        basis[j] = vector
        image = apply(vector)
        diagonal[j] = image @ vector
        # Against all earlier vectors, twice: Lanczos loses orthogonality at once otherwise.
        for _ in range(2):
            image = image - basis[: j + 1].T @ (basis[: j + 1] @ image)
        off[j] = np.linalg.norm(image)
        if off[j] <= 1e-7 * abs(diagonal[0]):
            steps = j + 1
            break
        vector = image / off[j]
    tridiagonal = np.diag(diagonal[:steps]) + np.diag(off[: steps - 1], 1)
    tridiagonal += np.diag(off[: steps - 1], -1)
    return np.asarray(basis[:steps].T @ np.linalg.eigh(tridiagonal)[1][:, -1])
