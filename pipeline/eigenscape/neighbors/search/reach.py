"""The number of samples within a radius, by a sample of queries: before all pairs are compared.

A search by radius costs as much as there are pairs, whatever it finds; a graph of a thousand neighbours
each takes hundreds of times as long as one of ten, and one in which most samples are alone is made of
bridges. A thousand queries show it, at a share of the cost.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.neighbors.kernels.metrics import Metric, chord_of, lengths
from eigenscape.neighbors.kernels.tiles import QUERY_ROWS, TILE_ROWS, find_within, push_tile
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS
from eigenscape.neighbors.search.recall import QUERIES
from eigenscape.neighbors.search.scratch import Ranked, index_type

MOST_BRIDGED = 2**15
"""Components that are bridged, at most: each costs a search among all samples."""

_NEAR = 30
"""Neighbours that a graph by radius may be meant to have: messages name their distance."""


@dataclass(frozen=True)
class Reach:
    """Neighbours of some queries within the radius.

    Attributes
    ----------
    mean
        Neighbours on average.
    alone
        Share that has none.
    nearest, near : array, shape (queries,)
        Distance to the first and to the `_NEAR`-th neighbour.
    """

    mean: float
    alone: float
    nearest: NDArray[np.float32]
    near: NDArray[np.float32]


def sample_reach(context: Context, ranked: Ranked, radius: float, metric: Metric) -> Reach:
    """Count what random samples have within ``neighbors.radius``."""
    rng = np.random.default_rng(1)
    queries = np.sort(rng.choice(ranked.rows, min(ranked.rows, QUERIES), replace=False))
    near = min(_NEAR, max(1, ranked.rows - 1))
    work = partial(_search, ranked, queries, near, chord_of(radius, metric))
    found = context.map(
        "reach", work, blocks(ranked.rows, CHUNK_ROWS // 2), label="what is within", keep=False
    )
    counts = np.sum([part[0] for part in found], axis=0)
    squared = np.sort(np.concatenate([part[1] for part in found], axis=1), axis=1)
    return Reach(
        float(counts.mean()),
        float((counts == 0).mean()),
        lengths(squared[:, 0], metric),
        lengths(squared[:, near - 1], metric),
    )


def _search(
    ranked: Ranked, queries: NDArray[np.int64], near: int, chord: float, block: Block
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    counts = np.zeros(len(queries), np.int64)
    index = np.full((len(queries), near), -1, index_type(ranked.rows))
    squared = np.full(index.shape, np.inf, np.float32)
    left = ranked.take(queries)
    for start in range(*block, TILE_ROWS):
        right = ranked.read(start, min(start + TILE_ROWS, block[1]))
        numbers = np.arange(start, start + right.shape[0])
        for first in range(0, len(queries), QUERY_ROWS):
            here = slice(first, first + QUERY_ROWS)
            rows, _, _ = find_within(left[here], queries[here], right, start, chord)
            counts[here] += np.bincount(rows, minlength=len(queries[here]))
            push_tile(left[here], queries[here], right, numbers, index[here], squared[here])
    return counts, squared


def check_reach(radius: float, reach: Reach, rows: int, *, bridged: bool) -> None:
    """Refuse a radius whose graph would take too long, by the sample.

    Parameters
    ----------
    radius
        ``neighbors.radius`` of the job.
    reach
        Neighbours of a sample of queries within the radius.
    rows
        Number of samples.
    bridged
        Whether the graph will bridge every sample that has none. Edges between neighbouring pixels
        leave few of them, whatever the spectra say.

    Raises
    ------
    InputError
        With the estimate, and a radius that fits.
    """
    of = f"of {len(reach.near)} samples drawn at random"
    usual = f"half {of} have {min(_NEAR, rows - 1)} neighbours within {np.median(reach.near):.4g}"
    if reach.mean > MOST_NEIGHBORS:
        raise InputError(
            f"neighbors.radius = {radius}: samples have about {reach.mean:,.0f} neighbours within it, "
            f"the limit is {MOST_NEIGHBORS} on average; {usual}. Set neighbors.radius to about that, or "
            'use the k nearest (neighbors.method = "lanczos-bisection").'
        )
    alone = reach.alone * rows
    if bridged and alone > MOST_BRIDGED:
        enough = float(np.quantile(reach.nearest, 1 - MOST_BRIDGED / rows))
        raise InputError(
            f"neighbors.radius = {radius}: about {alone:,.0f} of {rows:,} samples have no neighbour "
            f"within it, and each would have to be bridged; the limit is {MOST_BRIDGED:,}. Set "
            f'neighbors.radius to {enough:.4g} or more, or graph.components to "largest"; {usual}.'
        )
