"""Bridges between the connected components of a graph.

Neighbour graphs of real scenes fall apart into a few components (METHODS E15: two or three on three
of three). With ``components = "connect"`` every component gets an edge to its nearest other one, and
so on until one is left (Boruvka's minimum spanning tree of the components).
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import open_array
from eigenscape.graph import kernels
from eigenscape.neighbors.exact import read_rows
from eigenscape.stage import Block, Context, blocks

MOST_QUERIES = 2**13
"""Samples, over all components, whose nearest outsider is sought in a round. A component of fewer
than its share is searched whole; of a larger one this many samples stand for the rest."""

_TILE = 2048


def find_bridges(context: Context, component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return edges that make a graph connected.

    Parameters
    ----------
    component : array, shape (samples,)
        Component of each sample, 0 ... c-1.

    Returns
    -------
    array, shape (bridges, 2)
        The samples at both ends.
    """
    component = component.copy()
    pairs: list[tuple[int, int]] = []
    number = 0
    while component.max() > 0:
        nearest = _nearest_outsiders(context, component, number)
        number += 1
        for _, a, b in sorted(nearest):
            # Two components that are each other's nearest propose the same bridge.
            if component[a] != component[b]:
                pairs.append((min(a, b), max(a, b)))
                keep, drop = sorted((component[a], component[b]))
                component[component == drop] = keep
        component = np.unique(component, return_inverse=True)[1].astype(np.int32)
    return np.array(pairs, np.int64).reshape(-1, 2)


def _nearest_outsiders(
    context: Context, component: NDArray[np.int32], number: int
) -> list[tuple[float, int, int]]:
    """Return (distance, sample, outsider) for every component but the largest."""
    sizes = np.bincount(component)
    share = max(1, MOST_QUERIES // len(sizes))
    rng = np.random.default_rng(2)
    largest = int(sizes.argmax())
    members = np.argsort(component, kind="stable")
    ends = np.cumsum(sizes)
    chosen = []
    for label in range(len(sizes)):
        if label != largest:
            inside = members[ends[label] - sizes[label] : ends[label]]
            size = min(share, len(inside))
            chosen.append(rng.choice(inside, size, replace=False) if size < len(inside) else inside)
    own = np.sort(np.concatenate(chosen))
    values = context.path("features/values")
    queries = read_rows(values, own)
    work = partial(_search, values, queries, component[own], component)
    ranges = blocks(len(component), 2**14)
    found = context.map(f"bridges-{number}", work, ranges, label="bridging components", keep=False)
    best = np.stack([distance for distance, _ in found])
    winner = best.argmin(axis=0)
    columns = np.arange(len(own))
    nearest = np.stack([sample for _, sample in found])[winner, columns]
    best = best[winner, columns]
    order = np.lexsort((own, best, component[own]))
    firsts = order[np.unique(component[own][order], return_index=True)[1]]
    return [(float(np.sqrt(best[i])), int(own[i]), int(nearest[i])) for i in firsts]


def _search(
    values: str,
    queries: NDArray[np.float32],
    inside: NDArray[np.int32],
    component: NDArray[np.int32],
    block: Block,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    best = np.full(len(queries), np.inf, np.float32)
    nearest = np.full(len(queries), -1, np.int64)
    features = open_array(values)[block[0] : block[1]]
    for start in range(0, len(features), _TILE):
        near = features[start : start + _TILE]
        centre = near.mean(axis=0, dtype=np.float64).astype(np.float32)
        near = near - centre
        norms = np.einsum("ij,ij->i", near, near)
        first = block[0] + start
        outside = component[first : first + len(near)]
        for at in range(0, len(queries), _TILE):
            here = slice(at, at + _TILE)
            query = queries[here] - centre
            kernels.nearest_outside(
                queries[here], features[start : start + _TILE], query @ near.T,
                np.einsum("ij,ij->i", query, query), norms,
                inside[here], outside, first, best[here], nearest[here],
            )  # fmt: skip
    # Exact lengths: the product's rounding must not decide which bridge is the shortest.
    known = nearest >= 0
    exact = features[nearest[known] - block[0]] - queries[known]
    best[known] = np.einsum("ij,ij->i", exact, exact)
    return best, nearest
