"""NN-descent by pynndescent (Dong, Moses, Li 2011): all features in memory, graph in the same order."""

import threading
import warnings

import numba
import numpy as np
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors, as_parts
from eigenscape.neighbors.kernels import lists as kernels
from eigenscape.neighbors.kernels.tiles import push_tiles

# Its loops are parallel themselves, and not every threading layer can be entered twice.
_ALONE = threading.Lock()


def descend(
    features: Vectors, k: int, threads: int, dtype: str
) -> tuple[NDArray[np.signedinteger], NDArray[np.float32]]:
    """Find nearest neighbours by NN-descent.

    Parameters
    ----------
    features : array or csr_array, shape (rows, d)
    k
        Neighbours of each row, fewer than rows.
    threads
        Threads to work on.
    dtype
        Integer type of the lists.

    Returns
    -------
    index, distance : array, shape (rows, k)
        Rows and squared distances, sorted by (distance, row).
    """
    from pynndescent import NNDescent

    rows = features.shape[0]
    with _ALONE, warnings.catch_warnings():
        # It finds too few neighbours for some samples at times; they are completed below.
        warnings.filterwarnings("ignore", "Failed to correctly find n_neighbors")
        # One more than wanted, since each list begins with the sample itself (or its equals).
        search = NNDescent(
            features, n_neighbors=min(k + 1, rows), random_state=0,
            n_jobs=min(threads, numba.config.NUMBA_NUM_THREADS),
        )  # fmt: skip
        found, _distances = search.neighbor_graph
    index = np.full((rows, k), -1, dtype)
    distance = np.full((rows, k), np.inf, np.float32)
    kernels.offer_lists(as_parts(features), found, index, distance)
    short = np.flatnonzero(index[:, -1] < 0)
    if len(short):
        mine, squared = index[short], distance[short]
        read = lambda start, stop: features[start:stop]  # noqa: E731
        push_tiles(features[short], short, read, (0, rows), mine, squared)
        index[short], distance[short] = mine, squared
    return index, distance
