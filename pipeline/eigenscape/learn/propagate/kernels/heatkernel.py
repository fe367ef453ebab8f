"""Regularisation with the heat kernel: a system of linear equations on the labelled rows alone."""

from dataclasses import dataclass

import numpy as np

from eigenscape.base.memory import ROW_TILE
from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.conjugate import F8, Allocate, Solved, System, solve
from eigenscape.learn.propagate.kernels.smoothness import Heat
from eigenscape.spectrum.kernels.operator import Array, Operator


@dataclass(frozen=True)
class _Sampled:
    """P K P^T + diag(penalty / labels of the row), columns by columns, on the labelled rows alone."""

    kernel: Heat
    labels: ColumnLabels
    known: Array
    penalty: Array
    X: Array
    image: Array

    def apply(self, X: Array, Z: Array) -> None:
        self.spread(X)
        self.kernel.apply(self.X, self.image)
        rows, number = self.labels.rows, self.labels.number
        for first in range(0, len(rows), ROW_TILE):
            piece = slice(first, first + ROW_TILE)
            own = self.penalty * X[piece]
            if number is not None:
                own /= np.where(self.known[piece] > 0, number[piece], 1)
            Z[piece] = self.known[piece] * self.image[rows[piece]] + own

    def spread(self, X: Array) -> None:
        """Set the rows of the graph to those of X where they are known, the others to 0."""
        self.X[:] = 0
        rows = self.labels.rows
        for first in range(0, len(rows), ROW_TILE):
            piece = slice(first, first + ROW_TILE)
            self.X[rows[piece]] = self.known[piece] * X[piece]


def solve_kernel(
    operator: Operator, labels: ColumnLabels, rest: Array, penalty: F8, time: float,
    X: Array, allocate: Allocate, tolerance: float, most: int,
) -> Solved:  # fmt: skip
    """Solve for the heat kernel's coefficients on the labelled rows; X becomes its image.

    Parameters
    ----------
    operator, labels, time, allocate, tolerance, most
        See `eigenscape.learn.propagate.kernels.propagation.regularize`.
    rest : array, shape (l, WIDTH)
        Targets, centred; 0 where a column does not know the row.
    penalty : array, shape (WIDTH,)
        k gamma.
    X : array, shape (n, WIDTH)
        Set to the solution.
    """
    kind, rows = operator.diagonal.dtype, labels.rows
    known, ones = allocate(len(rows)), allocate(len(rows))
    ones[:] = 1
    for piece, given in labels.pieces():
        known[piece] = given
    whole, spare = allocate(operator.rows), allocate(operator.rows)
    kernel = Heat(operator, time, spare)
    product = _Sampled(kernel, labels, known, penalty.astype(kind), whole, X)
    a, places = allocate(len(rows)), np.arange(len(rows))
    system = System(product, np.ones(len(rows), kind), places, ones, rest)
    solved = solve(system, a, allocate, tolerance=tolerance, most=most)
    product.spread(a)
    kernel.apply(whole, X)
    return solved
