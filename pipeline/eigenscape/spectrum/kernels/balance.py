"""Rows whose diagonal is far above the others': large potentials, hubs of an unnormalised graph.

A few of them make the spectrum long, and the degree of a filter grows with the square root of its
length, though the low eigenvectors all but vanish there. Their entries follow from the others,
``x_i = sum_j S_ij x_j / (d_i - lambda)``, so a filter can leave them out of its recurrence and set
them after every step: what it then filters is a Schur complement of A, as short as the rest of A.
With lambda the Ritz value of the column the eigenvector belongs to both; for a neighbour in the
spectrum the difference is of the order of its distance over d_i squared.

Members of a cluster that is tied strongly move together in the same way: what a vector has there
beside the null vector of V follows from the rest, so a filter can leave V out of its recurrence and
set that part after every step.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.operator import Array, Operator
from eigenscape.spectrum.kernels.ties import Ties

_STIFF = 10.0
"""Times the lowest tenth of the diagonal at which a row is stiff ..."""

_WORTHWHILE = 40.0
"""... if the largest is more than this many times: below, a longer filter costs less."""

_COUPLING = 0.2
_SWEEPS = 2

_TIED = 5.0
"""Times the bound of the rest that ties have to be, for the sweeps over their members to converge."""

_LEFT = 1e-8
"""Share of the dependent part that the sweeps over tied members leave."""


def stiff_rows(operator: Operator) -> NDArray[np.int64]:
    """Return the rows that follow the others, none if that gains nothing or would not work.

    Rows that hang on each other (strong edges between them) cannot be set one after the other, so
    they stay with the rest.
    """
    none = np.zeros(0, np.int64)
    diagonal = np.asarray(operator.diagonal, np.float64)
    # Samples without edges, 0 in an unnormalised Laplacian, say nothing of the others.
    usual = float(np.quantile(diagonal[diagonal > 0], 0.1)) if diagonal.any() else 0.0
    if diagonal.max() <= _WORTHWHILE * usual:
        return none
    stiff = diagonal > _STIFF * usual
    if operator.ties is not None:
        stiff[operator.ties.member] = False
    # S times ones on the stiff rows: the weight between each and others of its kind.
    within = diagonal * stiff - operator.times(stiff.astype(np.float64))
    return np.flatnonzero(stiff & (within <= _COUPLING * diagonal))


def tie_sweeps(ties: Ties, bound: float, rows: int) -> int:
    """Return how many sweeps make tied members follow the rest, 0 where a longer filter costs less.

    Parameters
    ----------
    ties
        Of an operator A.
    bound
        Upper bound of the spectrum of A without them: a sweep leaves as much of what it has to set
        as this is of the least pull.
    rows
        Order of A: a sweep takes the products of the members' rows.
    """
    if ties.least <= _TIED * bound:
        return 0
    sweeps = max(_SWEEPS, math.ceil(math.log(_LEFT) / math.log(bound / ties.least)))
    # The degree of a filter grows with the square root of the spectrum's length.
    longer = math.sqrt(1 + ties.most / bound)
    return sweeps if 1 + sweeps * len(ties.member) / rows < longer else 0


@dataclass(frozen=True)
class Balanced:
    """An operator whose stiff rows and tied members follow the others, for `chebyshev_filter`.

    Attributes
    ----------
    operator
        A.
    rows : array of int, shape (m,), ascending
        The stiff rows.
    shift : array, shape (WIDTH,)
        Ritz value of each column.
    sweeps
        Of `tie_sweeps`.
    """

    operator: Operator
    rows: NDArray[np.int64]
    shift: Array
    sweeps: int = 0

    def balance(self, X: Array) -> None:
        """Set the stiff rows of X, then the part of tied members beside the null vector."""
        self._balance_rows(X)
        if self.sweeps and self.operator.ties is not None:
            self._balance_ties(X, self.operator.ties)

    def _balance_ties(self, X: Array, ties: Ties) -> None:
        level = np.empty((len(ties.starts) - 1, X.shape[1]))
        kernels.level_of(ties.member, ties.starts, ties.pull, X, level)
        rest = np.zeros((len(ties.member), X.shape[1]))
        kernels.tie_rows(ties.member, ties.starts, ties.pull, level, rest, X)
        rows, order = self._tied_rows
        for _ in range(self.sweeps):
            for block in self.operator.blocks:
                last = block.first + len(block.indptr) - 1
                ends = slice(*np.searchsorted(rows, [block.first, last]))
                kernels.rest_of_rows(
                    block.indptr, block.indices, block.data, self.operator.diagonal, block.first,
                    rows[ends], order[ends], self.shift, X, rest,
                )  # fmt: skip
            kernels.tie_rows(ties.member, ties.starts, ties.pull, level, rest, X)

    @cached_property
    def _tied_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tied rows, ascending, and the place of each among the members."""
        assert self.operator.ties is not None, "asked for where there are ties"
        member = np.asarray(self.operator.ties.member)
        order = np.argsort(member)
        return member[order], order

    def _balance_rows(self, X: Array) -> None:
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
        """Take the step of `Operator.step`, without strong ties, then balance Z."""
        operator = replace(self.operator, ties=None) if self.sweeps else self.operator
        operator.step(X, Z, a, b, c)
        self.balance(Z)
