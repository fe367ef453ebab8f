"""Recall of neighbour lists, measured on a random sample against brute force."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.neighbors.kernels.lists import squared_pairs
from eigenscape.neighbors.kernels.tiles import push_tiles
from eigenscape.neighbors.search.scratch import Ranked, index_type

QUERIES = 1000
"""Samples whose lists are checked."""

_ROWS = CHUNK_ROWS // 2
_NEAR = 1e-5


class Truth:
    """The distance to the k-th true neighbour of some samples.

    Parameters
    ----------
    context
        Runs the brute-force search.
    ranked
        Features by rank.
    k
        Neighbours that count.
    folder
        Keeps the result for later attempts.
    """

    def __init__(self, context: Context, ranked: Ranked, k: int, folder: Path) -> None:
        self.ranked, self.k = ranked, k
        rng = np.random.default_rng(1)
        size = min(ranked.rows, QUERIES)
        self.queries = np.sort(rng.choice(ranked.rows, size, replace=False))
        path = folder / "truth.npy"
        if not path.exists():
            work = partial(_search, ranked, self.queries, k)
            ranges = blocks(ranked.rows, _ROWS)
            found = context.map("truth", work, ranges, label="measuring recall", keep=False)
            squared = np.sort(np.concatenate(found, axis=1), axis=1)
            save_array(path, squared[:, k - 1])
        self.limit = np.load(path)

    def measure(self, lists: NDArray[np.signedinteger]) -> dict[str, Any]:
        """Compare lists with the truth.

        Parameters
        ----------
        lists : array, shape (queries, at least k)
            Ranks of the neighbours that were found, -1 where there is none, for `queries`.

        Returns
        -------
        dict
            ``recall``: mean share of the true neighbours in a list; ``recall_low``,
            ``recall_high``: its 95 % confidence interval, which is the recall itself if all lists were
            tested, and None if those tested are equal and others are left; ``recall_samples``: how many
            lists were tested. A neighbour as near as the k-th true one counts as true, whichever of the
            equals it is.
        """
        given = np.ascontiguousarray(lists[:, : self.k])
        # Distances anew from the features: what the lists say is not taken for granted.
        offered = squared_pairs(self.ranked.parts(), self.queries, given)
        limit = self.limit[:, None]
        shares = (offered <= limit + _NEAR * np.abs(limit)).mean(axis=1)
        mean = float(shares.mean())
        low: float | None = mean
        high: float | None = mean
        if len(shares) < self.ranked.rows:
            # Lists, not neighbours, are the independent draws. Equal ones do not tell how far others are.
            half = 1.96 * float(shares.std(ddof=1)) / math.sqrt(len(shares))
            low = max(0.0, mean - half) if half else None
            high = min(1.0, mean + half) if half else None
        return {
            "recall": mean,
            "recall_low": low,
            "recall_high": high,
            "recall_samples": len(shares),
        }


def _search(
    ranked: Ranked, queries: NDArray[np.int64], k: int, block: Block
) -> NDArray[np.float32]:
    index = np.full((len(queries), k), -1, index_type(ranked.rows))
    distance = np.full((len(queries), k), np.inf, np.float32)
    push_tiles(ranked.take(queries), queries, ranked.read, block, index, distance)
    return distance
