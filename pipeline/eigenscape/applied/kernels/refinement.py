"""Lists of new samples, made better by the lists of the samples that they hold."""

import numpy as np
from numba import njit

from eigenscape.neighbors.kernels.distances import squared
from eigenscape.neighbors.kernels.lists import insert, meet


@njit(cache=True, nogil=True)
def refine_queries(queries, features, lists, rounds, index, distance):  # type: ignore[no-untyped-def]
    """Offer every query the neighbours of those in its list, and then of those that this has found.

    Parameters
    ----------
    queries : array, shape (m, d)
    features : array, shape (n, d)
    lists : array of int, shape (n, k)
        Neighbours of each row of the features, -1 for none.
    rounds : int
        How often.
    index, distance : array, shape (m, length)
        Lists of the queries and squared distances, changed in place.
    """
    length, k = index.shape[1], lists.shape[1]
    # Candidates already compared, in a hash table with linear probing, at most a quarter full.
    size = 64
    while size < 4 * length * (1 + rounds * (k + 1)):
        size *= 2
    met = np.empty(size, np.int64)
    when = np.full(size, -1, np.int64)
    asked = np.empty(length * rounds, np.int64)
    near = np.empty(length, np.int64)
    for query in range(queries.shape[0]):
        for slot in range(length):
            meet(index[query, slot], query, met, when)
        count = 0
        for _ in range(rounds):
            for slot in range(length):
                near[slot] = index[query, slot]
            for slot in range(length):
                if near[slot] < 0 or _among(near[slot], asked, count):
                    continue
                asked[count] = near[slot]
                count += 1
                for further in range(k):
                    candidate = lists[near[slot], further]
                    if candidate >= 0 and meet(candidate, query, met, when):
                        d = squared(queries, query, features, candidate)
                        if d <= distance[query, -1]:
                            insert(index, distance, query, candidate, d)


@njit(cache=True, nogil=True)
def _among(candidate, some, count):  # type: ignore[no-untyped-def]
    place = 0
    while place < count and some[place] != candidate:
        place += 1
    return place < count
