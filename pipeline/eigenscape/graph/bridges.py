"""Bridges between the connected components of a graph.

Neighbour graphs of real scenes fall apart into a few components (METHODS E15: two or three on three
of three), and where neighbours are those within a radius, every sample without any is a component.
With ``components = "connect"`` every component gets an edge to its nearest other one, and so on
until one is left (Boruvka's minimum spanning tree of the components).
"""

from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import CHUNK_ROWS, rows_within
from eigenscape.base.vectors import Vectors, as_parts
from eigenscape.context import Map
from eigenscape.graph.kernels.components import flatten, join_pairs, nearest_outside
from eigenscape.neighbors.kernels.tiles import compare
from eigenscape.store.rows import Rows

MOST_QUERIES = 2**13
"""Samples, over all components, whose nearest outsider is sought in a round. A component of fewer
than its share is searched whole; of a larger one its share of samples stands for the rest. Where
there are more components than this, one sample stands for each, and so many are sought at a time."""

_TILE = min(1024, CHUNK_ROWS)
RANGE = CHUNK_ROWS // 8
"""Candidates that a task reads, at most."""

Way = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Squared distance and number of the nearest outsider of each query."""


def find_bridges(
    features: Rows, component: NDArray[np.int32], budget: int, map_blocks: Map
) -> NDArray[np.int64]:
    """Return edges that make a graph connected.

    Parameters
    ----------
    features
        Vectors of the samples.
    component : array, shape (samples,)
        Component of each sample, 0 ... c-1.
    budget
        Bytes that a task may take.
    map_blocks
        Runs the tasks.

    Returns
    -------
    array, shape (bridges, 2)
        The samples at both ends.
    """
    pairs: list[NDArray[np.int64]] = []
    while component.max() > 0:
        inside, outside = _shortest_ways(features, component, budget, map_blocks, len(pairs))
        label = np.arange(component.max() + 1, dtype=np.int32)
        # Two components that are each other's nearest propose the same bridge.
        joined = join_pairs(component[inside], component[outside], label)
        pairs.append(np.sort(np.stack([inside, outside], axis=1)[joined], axis=1))
        flatten(label)
        component = np.unique(label, return_inverse=True)[1].astype(np.int32)[component]
    return np.concatenate([np.empty((0, 2), np.int64), *pairs])


def bridging_bytes(rows: int, row_bytes: float) -> float:
    """Return the bytes of a task of the search for bridges: candidates, a copy of some, distances."""
    return 1.5 * row_bytes * min(rows, RANGE) + 4 * _TILE**2


def _shortest_ways(
    features: Rows, component: NDArray[np.int32], budget: int, map_blocks: Map, number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sample and outsider for every component but the largest, the shortest way first."""
    own = _choose(component)
    values = features.stored / features.shape[0]
    row_bytes = values * (8 if features.sparse else 4)
    # Distances are exact, so that nothing hinges on how queries and candidates are cut.
    group = rows_within(budget, 4 * row_bytes, most=MOST_QUERIES)
    ranges = blocks(len(component), rows_within(budget, 8 * row_bytes, most=RANGE))
    ways: list[Way] = []
    for start, stop in blocks(len(own), group):
        samples = own[start:stop]
        work = partial(_search, features, features.take(samples), component[samples], component)
        nearer = map_blocks(
            f"bridges-{number}", work, ranges, label="bridging components", keep=False
        )
        ways.append(reduce(_nearer, nearer))
    distance, nearest = (np.concatenate(part) for part in zip(*ways, strict=True))
    order = np.lexsort((own, distance, component[own]))
    firsts = order[np.unique(component[own][order], return_index=True)[1]]
    firsts = firsts[np.lexsort((nearest[firsts], own[firsts], distance[firsts]))]
    return own[firsts], nearest[firsts]


def _nearer(one: Way, other: Way) -> Way:
    """Return the nearer outsider of each query, the first of two that are as near."""
    nearer = other[0] < one[0]
    return np.where(nearer, other[0], one[0]), np.where(nearer, other[1], one[1])


def _choose(component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the samples, in ascending order, that stand for every component but the largest."""
    sizes = np.bincount(component)
    share = max(1, MOST_QUERIES // len(sizes))
    rng = np.random.default_rng(2)
    members = np.argsort(component, kind="stable")
    ends = np.cumsum(sizes)
    chosen = []
    for label in np.delete(np.arange(len(sizes)), sizes.argmax()):
        inside = members[ends[label] - sizes[label] : ends[label]]
        chosen.append(rng.choice(inside, share, replace=False) if share < len(inside) else inside)
    return np.sort(np.concatenate(chosen))


def _search(
    features: Rows,
    queries: Vectors,
    inside: NDArray[np.int32],
    component: NDArray[np.int32],
    block: Block,
) -> Way:
    """Return the nearest sample of a block that is in another component, for each query."""
    best = np.full(len(inside), np.inf, np.float32)
    nearest = np.full(len(inside), -1, np.int64)
    candidates = features.read(*block)
    for start, stop in blocks(candidates.shape[0], _TILE):
        right = candidates[start:stop]
        first = block[0] + start
        for tile in blocks(len(inside), _TILE):
            here = slice(*tile)
            left = queries[here]
            nearest_outside(
                as_parts(left), as_parts(right), *compare(left, right),
                inside[here], component[first : first + right.shape[0]],
                first, best[here], nearest[here],
            )  # fmt: skip
    return best, nearest
