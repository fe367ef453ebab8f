"""Recursive normalised cuts of a run's graph: a task for every part that may be split."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import save_array
from eigenscape.context import Map
from eigenscape.learn.clustering.kernels.parts import ritz_fiedler
from eigenscape.learn.clustering.recursive import (
    Mask,
    Splits,
    smallest_part,
    split_cheapest,
    split_part,
)
from eigenscape.spectrum.scaled import StoredGraph

Vectors = Callable[[], NDArray[np.float32]]


def cut_parts(
    map_blocks: Map,
    graph: StoredGraph,
    vectors: Vectors,
    folder: Path,
    count: int,
    limit: float,
) -> NDArray[np.uint16]:
    """Split the graph until it has `count` parts; return the part of every row.

    Parameters
    ----------
    map_blocks
        Runs the tasks: a split of each part that was not tried.
    graph
        Its weights.
    vectors
        Maps eigenvectors of D^-1 (D - W), of which the vectors of the parts are combined.
    folder
        Where the sides of the splits go.
    count, limit
        See `split_cheapest`.
    """
    least = smallest_part(graph.rows, count)

    def propose(made: Splits, fresh: list[int]) -> list[Any]:
        work = partial(_propose, graph, vectors, folder, made, least)
        return map_blocks("split", work, fresh, label=f"cutting into {len(made.parts) + 2}")

    made = split_cheapest(propose, count, limit)
    cluster = np.zeros(graph.rows, np.uint16)
    for number, part in enumerate(made.parts, 1):
        side = _side(folder, part, graph.rows)
        cluster[_members(folder, made, part, graph.rows) & side] = number
    return cluster


def _propose(
    graph: StoredGraph, vectors: Vectors, folder: Path, made: Splits, least: int, part: int
) -> float | None:
    """Find the cheapest split of a part, note its inside, and return its price."""
    blocks, members = graph.open(), _members(folder, made, part, graph.rows)

    def vector(degree: NDArray[np.float64]) -> NDArray[np.float64]:
        return ritz_fiedler(blocks, members, degree, vectors())

    split = split_part(blocks, members, vector, least)
    if split is None:
        return None
    side = np.zeros(graph.rows, np.bool_)
    side[members] = split.inside
    save_array(folder / f"side-{part}.npy", np.packbits(side))
    return split.ncut


def _side(folder: Path, part: int, rows: int) -> Mask:
    bits = np.unpackbits(np.load(folder / f"side-{part}.npy"), count=rows)
    return np.asarray(bits.view(np.bool_))


def _members(folder: Path, made: Splits, part: int, rows: int) -> Mask:
    """Return the rows of a part: on the right side of every split above it."""
    members = np.ones(rows, np.bool_)
    while parent := made.parent(part):
        part, inside = parent
        side = _side(folder, part, rows)
        members &= side if inside else ~side
    return members
