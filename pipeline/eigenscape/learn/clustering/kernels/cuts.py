"""Two-way splits of a weighted graph and what they cost (Belkin 2003, 1.2 and 2.4).

The graph is given as CSR row blocks whose data are the weights W, symmetric, every edge in the row
of both of its ends; vol(A) is the sum of the degrees of A, cut(A, B) the weight between A and B::

    Ncut(A, B) = cut(A, B) (1 / vol(A) + 1 / vol(B))          (Shi, Malik 2000)
    h(A, B)    = cut(A, B) / min(vol(A), vol(B))              (Cheeger)

A split that cuts nothing costs nothing, even where a side is a sample without edges. A part of the
graph can be split like a graph of its own: then only the edges within it count.

Examples
--------
A path of four samples, cut in its middle:

>>> neighbors = np.array([1, 0, 2, 1, 3, 2])
>>> path = [RowBlock(0, np.array([0, 1, 3, 5, 6]), neighbors, np.ones(6))]
>>> split = measure_split(path, np.array([1.0, 2, 2, 1]), np.array([True, True, False, False]))
>>> split.cut, split.volume, round(split.ncut, 3), round(split.cheeger, 3)
(1.0, 3.0, 0.667, 0.333)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.base.shares import counted
from eigenscape.errors import InputError
from eigenscape.spectrum.kernels.operator import RowBlock

F8 = NDArray[np.float64]
Mask = NDArray[np.bool_]

SWEEP_BYTES = 150
"""Memory that a sweep over a vector takes for each of its entries."""
_SLACK = 1e-9
"""Share by which an eigenvalue or a sum of weights may be off by rounding."""


@dataclass(frozen=True)
class Split:
    """A set of rows, its complement and the price of the cut between them.

    Attributes
    ----------
    inside : array of bool, shape (n,)
        The set.
    cut
        Weight of the edges between the set and its complement.
    volume, volume_outside
        Sum of the degrees of the set and of its complement.
    ncut
        Normalised cut, 0 ... 2.
    cheeger
        cut / min(volume, volume_outside), 0 ... 1. The Cheeger constant h of the graph is the
        least that any split has.
    threshold
        The set is where the vector is above it; None for a split that no vector made.
    """

    inside: Mask
    cut: float
    volume: float
    volume_outside: float
    ncut: float
    cheeger: float
    threshold: float | None = None


@dataclass(frozen=True)
class Sweep:
    """The best splits that thresholds of one vector make.

    Attributes
    ----------
    cheeger, ncut
        The threshold that minimises the Cheeger ratio, and the one that minimises Ncut.
    sign
        Threshold 0; None where all entries have one sign.
    """

    cheeger: Split
    ncut: Split
    sign: Split | None


@dataclass(frozen=True)
class CheegerBounds:
    """Cheeger's inequalities lambda_1 / 2 <= h < sqrt(2 lambda_1) (Belkin 2003, 1.2).

    Attributes
    ----------
    lower, upper
        lambda_1 / 2 and sqrt(2 lambda_1).
    value
        Cheeger ratio of the split, which h does not exceed.
    holds
        Whether the value lies between them. Every split obeys the lower one; that the best threshold
        of the first eigenvector obeys the upper one is how the theorem is proved. A sweep that does
        not has been given another vector, or one that has not converged.
    """

    lower: float
    upper: float
    value: float
    holds: bool


def measure_split(
    blocks: Sequence[RowBlock],
    degree: F8,
    inside: Mask,
    *,
    threshold: float | None = None,
    members: Mask | None = None,
) -> Split:
    """Return what it costs to cut a set of rows off.

    Parameters
    ----------
    blocks
        Row blocks of W.
    degree : array, shape (m,)
        Row sums of W, within the part.
    inside : array of bool, shape (m,)
        The set.
    threshold
        Noted in the result.
    members : array of bool, shape (n,), optional
        The part that is split; all rows, and m = n, by default.
    """
    side = np.asarray(inside, np.int8)
    if members is not None:
        side = np.full(len(members), -1, np.int8)
        side[members] = inside
    cut = 0.0
    for block in blocks:
        cut += _cut_weight(block.first, block.indptr, block.indices, block.data, side)
    volume, outside = float(degree[inside].sum()), float(degree[~inside].sum())
    ncut, cheeger = _prices(np.array([cut]), np.array([volume]), np.array([outside]))
    return Split(inside, cut, volume, outside, float(ncut[0]), float(cheeger[0]), threshold)


def sweep_cuts(
    blocks: Sequence[RowBlock],
    degree: F8,
    vector: NDArray[Any],
    *,
    least: int = 1,
    members: Mask | None = None,
) -> Sweep:
    """Return the best splits {vector > threshold}, over all thresholds in one pass over the edges.

    An edge is cut by the thresholds between its ends: it adds its weight where the first of its ends
    falls below and takes it away where the second does, so that running sums are the cuts.

    Parameters
    ----------
    blocks
        Row blocks of W.
    degree : array, shape (m,)
        Row sums of W, within the part: see
        `eigenscape.learn.clustering.kernels.parts.degrees_within`.
    vector : array, shape (m,)
        For Cheeger's bounds the first eigenvector that is not constant of D^-1 (D - W): that of the
        normalised Laplacian times D^-1/2. Rows of equal entries are never separated.
    least
        Rows that the best thresholds leave on either side, at least.
    members : array of bool, shape (n,), optional
        The part that is split; all rows, and m = n, by default.

    Raises
    ------
    InputError
        No threshold does, or some entries are not finite.
    """
    if not np.isfinite(vector).all() or not separates(vector, least):
        raise InputError(
            f"the vector to sweep over has {counted(len(np.unique(vector)), 'distinct value')}, or values "
            f"that are not finite: no threshold leaves {least} of its {len(vector)} rows on either side. "
            "Give an eigenvector that is not constant."
        )
    order = np.argsort(vector, kind="stable")
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    rank = position
    if members is not None:
        rank = np.full(len(members), -1, np.int64)
        rank[members] = position
    change = np.zeros(len(order))
    for block in blocks:
        _add_changes(block.first, block.indptr, block.indices, block.data, rank, change)
    below = np.cumsum(degree[order])
    # In extended precision: the cut sought is a difference of weights a million times its size.
    cuts = np.maximum(np.cumsum(change, dtype=np.longdouble), 0).astype(np.float64)
    ncut, cheeger = _prices(cuts[:-1], below[:-1], below[-1] - below[:-1])
    ascending = vector[order]
    tied = ascending[1:] == ascending[:-1]
    best = []
    for prices in (cheeger, ncut):
        prices[tied] = np.inf
        prices[: least - 1] = prices[len(order) - least :] = np.inf
        threshold = ascending[prices.argmin()]
        best.append(
            measure_split(
                blocks, degree, vector > threshold, threshold=float(threshold), members=members
            )
        )
    positive = vector > 0
    sign = None
    if positive.any() and not positive.all():
        sign = measure_split(blocks, degree, positive, threshold=0.0, members=members)
    return Sweep(best[0], best[1], sign)


def separates(vector: NDArray[Any], least: int) -> bool:
    """Return whether a threshold of a vector leaves `least` rows on either side."""
    ascending = np.sort(vector)
    return len(vector) >= 2 * least and bool(ascending[least - 1] < ascending[-least])


def cheeger_bounds(eigenvalue: float, ratio: float) -> CheegerBounds:
    """Return Cheeger's bounds and whether a ratio keeps them.

    Parameters
    ----------
    eigenvalue
        lambda_1 of the normalised Laplacian, the first that is not a constant vector's; 0 for a
        graph that is not connected.
    ratio
        The smallest Cheeger ratio known: that of `Sweep.cheeger`.
    """
    value = max(eigenvalue, 0.0)
    lower, upper = value / 2, float(np.sqrt(2 * value))
    # A graph that is not connected has h = lambda_1 = 0, to which no strict bound applies.
    within = ratio < upper or ratio <= _SLACK
    holds = lower * (1 - _SLACK) - _SLACK <= ratio and within
    return CheegerBounds(lower, upper, ratio, holds)


def _prices(cut: F8, volume: F8, outside: F8) -> tuple[F8, F8]:
    """Return Ncut and Cheeger ratio, 0 where nothing is cut."""
    cheeger, other = np.zeros_like(cut), np.zeros_like(cut)
    smaller, larger = np.minimum(volume, outside), np.maximum(volume, outside)
    # A side without edges has volume 0, or by rounding less.
    np.divide(cut, smaller, out=cheeger, where=(cut > 0) & (smaller > 0))
    np.divide(cut, larger, out=other, where=(cut > 0) & (larger > 0))
    return cheeger + other, cheeger


@njit(cache=True, nogil=True)
def _cut_weight(first, indptr, indices, weights, side):  # type: ignore[no-untyped-def]
    """Return the weight of the entries that lead from the inside, 1, to the outside, 0."""
    total = 0.0
    for row in range(indptr.shape[0] - 1):
        if side[first + row] == 1:
            for entry in range(indptr[row], indptr[row + 1]):
                if side[indices[entry]] == 0:
                    total += weights[entry]
    return total


@njit(cache=True, nogil=True)
def _add_changes(first, indptr, indices, weights, rank, change):  # type: ignore[no-untyped-def]
    """Add to `change` by how much each row in the order of the vector changes the cut.

    Rows of rank -1 are not there.
    """
    for row in range(indptr.shape[0] - 1):
        own = rank[first + row]
        if own < 0:
            continue
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            other = rank[indices[entry]]
            if other > own:
                total += weights[entry]
            elif 0 <= other < own:
                total -= weights[entry]
        change[own] += total
