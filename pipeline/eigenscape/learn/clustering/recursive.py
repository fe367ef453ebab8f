"""Recursive normalised cuts: the cheapest split first, until there are enough parts (Shi, Malik 2000)."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.learn.clustering.kernels.cuts import Split, separates, sweep_cuts
from eigenscape.learn.clustering.kernels.parts import degrees_within
from eigenscape.spectrum.kernels.operator import RowBlock

F8 = NDArray[np.float64]
Mask = NDArray[np.bool_]

SMALLEST_SHARE = 0.1
"""Size of the smallest part, as a share of the mean size of the parts.

Graphs of k nearest neighbours shed specks of a few rows at next to no price; without a bound they use
up the number of parts. On Indian Pines (8, 16 and 30 parts) a tenth gives the same parts as a
thousandth of all rows does, and a fifth gives worse ones."""


@dataclass(frozen=True)
class Splits:
    """The splits that were made, in their order.

    Attributes
    ----------
    parts
        Part that each one split. Part 0 is everything; the split of number s leaves its outside in
        part 2 s + 1 and its inside in part 2 s + 2.
    prices
        Ncut of each.
    """

    parts: tuple[int, ...]
    prices: tuple[float, ...]

    def parent(self, part: int) -> tuple[int, bool] | None:
        """Return the part that a part was split from and whether it is the inside; None of all."""
        return None if part == 0 else (self.parts[(part - 1) // 2], part % 2 == 0)


def smallest_part(rows: int, count: int) -> int:
    """Return the rows that a part has at least, where `count` parts are wanted.

    Examples
    --------
    >>> smallest_part(21_025, 16)
    131
    """
    return max(1, int(SMALLEST_SHARE * rows / count))


def split_cheapest(
    propose: Callable[[Splits, list[int]], list[float | None]],
    count: int,
    limit: float = np.inf,
) -> Splits:
    """Split the part that is cheapest to split until there are `count` or none is cheap enough.

    Parameters
    ----------
    propose
        Takes the splits so far and new parts; returns the price of splitting each, None for a part
        that stays whole. It is not asked about parts that are not going to be split.
    count
        Parts to stop at.
    limit
        Price above which nothing is split.
    """
    made = Splits((), ())
    waiting: list[tuple[float, int]] = []
    fresh = [0]
    while len(made.parts) + 1 < count:
        for part, price in zip(fresh, propose(made, fresh), strict=True):
            if price is not None and price <= limit:
                heapq.heappush(waiting, (price, part))
        if not waiting:
            break
        price, part = heapq.heappop(waiting)
        fresh = [2 * len(made.parts) + 1, 2 * len(made.parts) + 2]
        made = Splits((*made.parts, part), (*made.prices, price))
    return made


def split_part(
    blocks: Sequence[RowBlock],
    members: Mask,
    vector: Callable[[F8], F8],
    least: int,
) -> Split | None:
    """Return the cheapest split of a part by thresholds of a vector; None if it has to stay whole.

    The price is that of the part as a graph of its own (Shi, Malik 2000, 3.1): cut and volumes count
    its edges within.

    Parameters
    ----------
    blocks
        Row blocks of W.
    members : array of bool, shape (n,)
        The part, of m rows.
    vector
        Takes the degrees within the part, and returns a vector over its rows.
    least
        Rows on either side, at least.
    """
    if np.count_nonzero(members) < 2 * least:
        return None
    degree = degrees_within(blocks, members)
    found = vector(degree)
    if np.isfinite(found).all() and not separates(found, least):
        return None
    return sweep_cuts(blocks, degree, found, least=least, members=members).ncut
