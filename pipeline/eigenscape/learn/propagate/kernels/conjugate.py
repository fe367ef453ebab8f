"""Conjugate gradients for a group of columns, each with its own step lengths and its own end.

What is solved is ``A X = B`` for symmetric positive (semi-)definite A, every column for itself:
only the products with A are shared. B and the deviations of A from a smoothness matrix of the graph
live on few rows, the labelled ones, so neither costs an array.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array

F8 = NDArray[np.float64]

Allocate = Callable[[int], Array]
"""Called with a number of rows, returns zeros of shape (rows, WIDTH): in memory or mapped."""

_AIM = 0.9
"""Part of the tolerance at which a column stops moving."""

_PROGRESS = 0.5
"""Part of the worst residual that a restart may leave, to be worth another one."""


class Product(Protocol):
    """A symmetric operator on groups of columns."""

    def apply(self, X: Array, Z: Array) -> None:
        """Z <- A X; Z is finite before."""


@dataclass(frozen=True)
class System:
    """A system of linear equations for every column of a group.

    Attributes
    ----------
    product
        A.
    inverse : array, shape (n,)
        Of the preconditioner, a diagonal: about 1 / A_ii. Of the type of the columns.
    rows : array of int, shape (l,)
        Ascending: where the right-hand sides are not 0, or the preconditioner depends on the column.
    inverse_at, source : array, shape (l, WIDTH)
        Preconditioner and right-hand sides on those rows.
    cycle
        A better preconditioner, symmetric and positive definite; the diagonal without.
    """

    product: Product
    inverse: Array
    rows: NDArray[np.int64]
    inverse_at: Array
    source: Array
    cycle: Product | None = None


@dataclass(frozen=True)
class Solved:
    """How conjugate gradients ended.

    Attributes
    ----------
    iterations
        Products with A that moved the columns.
    residuals : array, shape (WIDTH,)
        |B - A X| of every column, computed anew from X, relative to where it started, or to |B| if
        that is less; 0 for a column that was solved at the start.
    """

    iterations: int
    residuals: F8


def solve(
    system: System, X: Array, allocate: Allocate, *, tolerance: float = 1e-4, most: int = 2000
) -> Solved:
    """Solve a system by preconditioned conjugate gradients (Saad 2003, algorithm 9.1), in place.

    Holds X and three arrays of its shape. In single precision the residuals of the recurrence part
    from the true ones, so these are computed at the end, and the iteration starts again from them
    for as long as that helps: about 1e-5 is then within reach of a graph of 640,000 rows.

    Where A is singular, as a Laplacian is on every connected component, B has to be in its range;
    what X has of the null vectors at the start, it keeps.

    Parameters
    ----------
    system
        A, B and the preconditioner.
    X : array, shape (n, WIDTH)
        Start; becomes the solution.
    allocate
        Gives the work arrays.
    tolerance
        A column stops moving when its residual has fallen to this part of what it was at the start,
        or of |B| if that is less.
    most
        Iterations after which the rest is left as it is.
    """
    R, D, Q = (allocate(len(X)) for _ in range(3))
    squares, energy = _restart(system, X, R, D, Q)
    if (lost := ~np.isfinite(squares)).any():
        # What is no number stays none: begin at 0.
        X[:, lost] = 0
        squares, energy = _restart(system, X, R, D, Q)
    start = np.sqrt(squares)
    # A start that is worse than 0 must not make the goal easier.
    given = np.linalg.norm(system.source.astype(np.float64), axis=0)
    start = np.where(given > 0, np.minimum(start, given), start)
    # Residuals of the recurrence part from the true ones by rounding: aim a little lower.
    target = (_AIM * tolerance * start) ** 2
    iterations, before = 0, np.inf
    while True:
        while iterations < most and (moving := squares > target).any():
            system.product.apply(D, Q)
            curvature = _inner(D, Q)
            # Rounding can make a direction of a singular system flat: that column has converged.
            moving &= curvature > 0
            if not moving.any():
                break
            steps = np.divide(energy, curvature, out=np.zeros(WIDTH), where=moving)
            following = _move(
                X, R, D, Q, steps, system.inverse, system.rows, system.inverse_at, squares
            )
            if system.cycle is not None:
                system.cycle.apply(R, Q)
                following = _inner(R, Q)
            turns = np.divide(following, energy, out=np.zeros(WIDTH), where=moving)
            energy = following
            if system.cycle is None:
                _turn(D, R, turns, system.inverse, system.rows, system.inverse_at)
            else:
                _combine(D, Q, turns)
            iterations += 1
        squares, energy = _restart(system, X, R, D, Q)
        residuals = np.divide(np.sqrt(squares), start, out=np.zeros(WIDTH), where=start > 0)
        residuals[~np.isfinite(squares)] = np.inf
        worst = float(residuals.max())
        if worst <= tolerance or iterations >= most or not worst < _PROGRESS * before:
            return Solved(iterations, residuals)
        before = worst


def _restart(system: System, X: Array, R: Array, D: Array, Q: Array) -> tuple[F8, F8]:
    """R <- B - A X, D <- M^-1 R; return the squared lengths of R and its products with D."""
    system.product.apply(X, Q)
    squares, energy = _start(R, D, Q, system.inverse, system.rows, system.inverse_at, system.source)
    if system.cycle is not None:
        system.cycle.apply(R, D)
        energy = _inner(R, D)
    return squares, energy


@njit(cache=True, nogil=True)
def _start(R, D, Q, inverse, rows, inverse_at, source):  # type: ignore[no-untyped-def]
    """R <- B - Q, D <- M^-1 R; return the squares of R and its products with D."""
    squares, energy = np.zeros(WIDTH), np.zeros(WIDTH)
    R[:] = 0
    for number in range(len(rows)):
        for column in range(WIDTH):
            R[rows[number], column] = source[number, column]
    scale, special = np.empty(WIDTH, R.dtype), 0
    for row in range(len(R)):
        special = _scale(row, inverse, rows, inverse_at, special, scale)
        for column in range(WIDTH):
            R[row, column] -= Q[row, column]
            D[row, column] = scale[column] * R[row, column]
            squares[column] += np.float64(R[row, column]) * R[row, column]
            energy[column] += np.float64(R[row, column]) * D[row, column]
    return squares, energy


@njit(cache=True, nogil=True)
def _scale(row, inverse, rows, inverse_at, special, scale):  # type: ignore[no-untyped-def]
    """Set scale to a row of the preconditioner; return which of the special rows comes next."""
    if special < len(rows) and rows[special] == row:
        for column in range(WIDTH):
            scale[column] = inverse_at[special, column]
        return special + 1
    for column in range(WIDTH):
        scale[column] = inverse[row]
    return special


@njit(cache=True, nogil=True)
def _inner(X, Y):  # type: ignore[no-untyped-def]
    sums = np.zeros(WIDTH)
    for row in range(len(X)):
        for column in range(WIDTH):
            sums[column] += np.float64(X[row, column]) * Y[row, column]
    return sums


@njit(cache=True, nogil=True)
def _move(X, R, D, Q, steps, inverse, rows, inverse_at, squares):  # type: ignore[no-untyped-def]
    """X += steps D, R -= steps Q; set the squares of R, return its products with M^-1 R."""
    energy = np.zeros(WIDTH)
    squares[:] = 0
    # Of the type of X: mixed arithmetic would be done in double, at half the speed.
    lengths = steps.astype(X.dtype)
    scale, special = np.empty(WIDTH, R.dtype), 0
    for row in range(len(X)):
        special = _scale(row, inverse, rows, inverse_at, special, scale)
        for column in range(WIDTH):
            X[row, column] += lengths[column] * D[row, column]
            R[row, column] -= lengths[column] * Q[row, column]
            square = np.float64(R[row, column]) * R[row, column]
            squares[column] += square
            energy[column] += scale[column] * square
    return energy


@njit(cache=True, nogil=True)
def _combine(D, Z, turns):  # type: ignore[no-untyped-def]
    """D <- Z + turns D."""
    shares = turns.astype(D.dtype)
    for row in range(len(D)):
        for column in range(WIDTH):
            D[row, column] = Z[row, column] + shares[column] * D[row, column]


@njit(cache=True, nogil=True)
def _turn(D, R, turns, inverse, rows, inverse_at):  # type: ignore[no-untyped-def]
    """D <- M^-1 R + turns D."""
    shares = turns.astype(D.dtype)
    scale, special = np.empty(WIDTH, R.dtype), 0
    for row in range(len(D)):
        special = _scale(row, inverse, rows, inverse_at, special, scale)
        for column in range(WIDTH):
            D[row, column] = scale[column] * R[row, column] + shares[column] * D[row, column]
