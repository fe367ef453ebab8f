"""Recall of neighbour lists, measured on a random sample against brute force."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import open_array
from eigenscape.neighbors.exact import brute_force, read_rows
from eigenscape.stage import Block, Context, blocks

QUERIES = 1000
"""Samples whose lists are checked."""

_ROWS = 2**14


def measure_recall(context: Context, index: str) -> dict[str, Any]:
    """Compare the lists of some samples with exact ones.

    Returns
    -------
    dict
        ``recall``: mean share of the true neighbours in a list; ``recall_low``, ``recall_high``:
        its 95 % confidence interval; ``recall_samples``: how many lists were checked. A neighbour
        as near as the k-th true one counts as true, whichever of the equals it is.
    """
    values = context.path("features/values")
    rows, _ = context.open("features/values").shape
    rng = np.random.default_rng(1)
    own = np.sort(rng.choice(rows, min(rows, QUERIES), replace=False))
    queries = read_rows(values, own)
    lists = open_array(index)
    k = lists.shape[1]
    given = np.concatenate(
        [
            lists[start:stop][own[slice(*np.searchsorted(own, [start, stop]))] - start]
            for start, stop in blocks(rows, lists.chunks[0])
        ]
    )
    work = partial(_search, values, queries, own, k)
    found = context.map("recall", work, blocks(rows, _ROWS), label="measuring recall", keep=False)
    squared = np.sort(np.concatenate([distance for _, distance in found], axis=1), axis=1)
    limit = squared[:, k - 1 : k]
    # The distance of the given neighbours, by differences as in the lists themselves.
    near = _gather(values, given)
    offered = ((near - queries[:, None, :]) ** 2).sum(axis=2)
    shares = (offered <= limit * (1 + 1e-5)).mean(axis=1)
    mean, half = float(shares.mean()), 0.0
    if len(shares) > 1 and len(shares) < rows:
        # Lists, not neighbours, are the independent draws.
        half = 1.96 * float(shares.std(ddof=1)) / math.sqrt(len(shares))
    return {
        "recall": mean,
        "recall_low": max(0.0, mean - half),
        "recall_high": min(1.0, mean + half),
        "recall_samples": len(own),
    }


def _gather(values: str, given: NDArray[np.signedinteger]) -> NDArray[np.float32]:
    unique, inverse = np.unique(given.astype(np.int64), return_inverse=True)
    return read_rows(values, unique)[inverse.reshape(given.shape)]


def _search(
    values: str, queries: NDArray[np.float32], own: NDArray[np.int64], k: int, block: Block
) -> tuple[NDArray[np.signedinteger], NDArray[np.float32]]:
    return brute_force(values, queries, own, min(k, block[1] - block[0]), [block], np.int64)
