"""Nearest neighbours among the labelled samples: the baselines, and votes on any lists."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eigenscape.memory import ROW_TILE
from eigenscape.neighbors.tiles import push_tiles
from eigenscape.rows import Vectors


def nearest_rows(
    queries: Vectors, candidates: Vectors, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k candidates nearest to each query, exactly.

    Parameters
    ----------
    queries : array or csr_array, shape (m, d), float32
        A block of features.
    candidates : array or csr_array, shape (c, d), float32
        Of the labelled samples, say.
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
    block = (0, candidates.shape[0])
    push_tiles(queries, nobody, lambda a, b: candidates[a:b], block, index, distance)
    return index, np.sqrt(distance, out=distance)


def vote(
    index: NDArray[np.signedinteger], classes: NDArray[np.signedinteger], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the class that most of the first k neighbours have; ties go to the nearer one.

    Parameters
    ----------
    index : array of int, shape (m, width)
        Neighbours, nearest first; -1 where there is none. They may be more than k: neighbours
        without a class do not vote, and those behind them do in their place.
    classes : array of int, shape (c,)
        Class of everything that `index` may name; -1 for none.
    k
        How many vote.

    Returns
    -------
    classes : array of int, shape (m,)
        -1 where nobody votes.
    confidence : array, shape (m,), float32
        Share of the votes cast.
    """
    best = np.full(len(index), -1, np.intp)
    share = np.zeros(len(index), np.float32)
    # Its last entry is the class of neighbour -1.
    classes = np.append(classes, -1)
    for start in range(0, len(index), ROW_TILE):
        near = index[start : start + ROW_TILE]
        votes = classes[near]
        # A voter has a class, and fewer than k voters before it.
        voters = (votes >= 0) & (np.cumsum(votes >= 0, axis=1) <= k)
        alike = (votes[:, :, None] == votes[:, None, :]) & voters[:, None, :]
        counts = alike.sum(axis=2) * voters
        # The first of the largest counts: that of the class with the nearest voter.
        winner = counts.argmax(axis=1)[:, None]
        most = np.take_along_axis(counts, winner, axis=1)[:, 0]
        here = slice(start, start + len(near))
        best[here] = np.where(most > 0, np.take_along_axis(votes, winner, axis=1)[:, 0], -1)
        share[here] = most / np.maximum(voters.sum(axis=1), 1)
    return best, share


def nearest_classes(
    features: Vectors,
    labelled: Vectors,
    classes: NDArray[np.intp],
    train: NDArray[np.bool_],
    neighbors: Sequence[int] = (1, 3, 5),
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Classify a block of samples by their nearest neighbours, for several training sets.

    The work is that of one product of the block with the training samples of every fit.

    Parameters
    ----------
    features : array or csr_array, shape (m, d), float32
        A block of samples. A labelled sample is its own nearest neighbour.
    labelled : array or csr_array, shape (l, d), float32
        Features of the labelled samples.
    classes : array of int, shape (l,)
        Their classes.
    train : array of bool, shape (fits, l)
        Which of them each fit learns from.
    neighbors
        Numbers of neighbours that vote; one search serves them all.

    Returns
    -------
    classes : array of int, shape (fits, len(neighbors), m)
        -1 where a fit has nothing to learn from.
    confidence : array, shape (fits, len(neighbors), m), float32
        Share of the votes.
    """
    shape = (len(train), len(neighbors), features.shape[0])
    best, share = np.empty(shape, np.intp), np.empty(shape, np.float32)
    for fit, chosen in enumerate(train):
        index, _ = nearest_rows(features, labelled[chosen], max(neighbors))
        for number, k in enumerate(neighbors):
            best[fit, number], share[fit, number] = vote(index, classes[chosen], k)
    return best, share
