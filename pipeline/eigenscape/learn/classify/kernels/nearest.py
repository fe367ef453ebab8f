"""Nearest neighbours among some candidates, tile by tile, and votes on any lists."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors
from eigenscape.neighbors.kernels.tiles import push_tiles

_TIE = 0.01
"""Of a vote."""


def nearest_rows(
    queries: Vectors, read: Callable[[int, int], Vectors], count: int, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k candidates nearest to each query, exactly.

    Parameters
    ----------
    queries : array or csr_array, shape (m, d), float32
        A block of features.
    read
        Called with a range of candidates, returns their features: a tile is in memory at a time.
    count
        Number of candidates.
    k
        How many.

    Returns
    -------
    index : array of int, shape (m, k)
        Nearest first, equally near ones in their order; -1 where there are fewer candidates than k.
    distance : array, shape (m, k), float32
        Euclidean; inf there.
    """
    rows = queries.shape[0]
    index = np.full((rows, k), -1, np.int32)
    distance = np.full((rows, k), np.inf, np.float32)
    # None of the candidates is one of the queries.
    nobody = np.full(rows, -1, np.int64)
    push_tiles(queries, nobody, read, (0, count), index, distance)
    return index, np.sqrt(distance, out=distance)


def vote(
    index: NDArray[np.signedinteger], classes: NDArray[np.signedinteger], k: int, count: int
) -> NDArray[np.float32]:
    """Return the share of the votes of the first k neighbours that each class has.

    Parameters
    ----------
    index : array of int, shape (m, width)
        Neighbours, nearest first; -1 where there is none. They may be more than k: neighbours
        without a class do not vote, and those behind them do in their place.
    classes : array of int, shape (c,)
        Class of everything that `index` may name, 0 ... count-1; -1 for none.
    k
        How many vote.
    count
        Number of classes.

    Returns
    -------
    array, shape (m, count), float32
        A class has a hundredth of a vote at most in addition to its votes, the more the fewer voters are
        nearer than its first one: that decides ties. NaN where nobody votes.
    """
    shares = np.full((len(index), count), np.nan, np.float32)
    # Its last entry is the class of neighbour -1.
    classes = np.append(classes, -1)
    for start in range(0, len(index), ROW_TILE):
        votes = classes[index[start : start + ROW_TILE]]
        # A voter has a class, and fewer than k voters before it.
        nearer = np.cumsum(votes >= 0, axis=1) - (votes >= 0)
        voters = (votes >= 0) & (nearer < k)
        sums = np.zeros((len(votes), count))
        # From behind, so that what the first voter of a class adds is what stays.
        bonus = np.zeros_like(sums)
        for place in range(votes.shape[1] - 1, -1, -1):
            rows = np.flatnonzero(voters[:, place])
            sums[rows, votes[rows, place]] += 1
            bonus[rows, votes[rows, place]] = _TIE * (k - nearer[rows, place]) / k
        cast = voters.sum(axis=1)
        here = start + np.flatnonzero(cast)
        shares[here] = ((sums + bonus) / np.maximum(cast, 1)[:, None])[cast > 0]
    return shares
