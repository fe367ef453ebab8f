"""Rows whose diagonal is far above the others': large potentials, hubs of an unnormalised graph.

A few of them make the spectrum long, and the degree of a filter grows with the square root of its
length, though the low eigenvectors all but vanish there. Their entries follow from the others,
``x_i = sum_j S_ij x_j / (d_i - lambda)``, so a filter can leave them out of its recurrence and set
them after every step: what it then filters is a Schur complement of A, as short as the rest of A.
With lambda the Ritz value of the column the eigenvector belongs to both; for a neighbour in the
spectrum the difference is of the order of its distance over d_i squared.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum import kernels
from eigenscape.spectrum.operator import Array, Operator

_STIFF = 10.0
"""Times the lowest tenth of the diagonal at which a row is stiff ..."""

_WORTHWHILE = 40.0
"""... if the largest is more than this many times: below, a longer filter costs less."""

_COUPLING = 0.2
_SWEEPS = 2


def stiff_rows(operator: Operator) -> NDArray[np.int64]:
    """Return the rows that follow the others, none if that gains nothing or would not work.

    Rows that hang on each other (strong edges between them) cannot be set one after the other, so
    they stay with the rest.
    """
    none = np.zeros(0, np.int64)
    diagonal = np.asarray(operator.diagonal, np.float64)
    usual = float(np.quantile(diagonal, 0.1))
    if diagonal.max() <= _WORTHWHILE * usual:
        return none
    stiff = diagonal > _STIFF * usual
    # S times ones on the stiff rows: how much each hears from others of its kind.
    heard = diagonal * stiff - operator.times(stiff.astype(np.float64))
    return np.flatnonzero(stiff & (heard <= _COUPLING * diagonal))


@dataclass(frozen=True)
class Balanced:
    """An operator whose stiff rows follow the others, for `chebyshev_filter`.

    Attributes
    ----------
    operator
        A.
    rows : array of int, shape (m,), ascending
        The stiff rows.
    shift : array, shape (WIDTH,)
        Ritz value of each column.
    """

    operator: Operator
    rows: NDArray[np.int64]
    shift: Array

    def balance(self, X: Array) -> None:
        """Set the stiff rows of X."""
        X[self.rows] = 0
        for _ in range(_SWEEPS):
            for block in self.operator.blocks:
                ends = np.searchsorted(
                    self.rows, [block.first, block.first + len(block.indptr) - 1]
                )
                kernels.balance_rows(
                    block.indptr, block.indices, block.data, self.operator.diagonal, block.first,
                    self.rows[slice(*ends)], self.shift, X,
                )  # fmt: skip

    def step(self, X: Array, Z: Array, a: float, b: float, c: float) -> None:
        """Take the step of `Operator.step`, then set the stiff rows of Z."""
        self.operator.step(X, Z, a, b, c)
        self.balance(Z)
