"""Recursive normalised cuts of a run's graph: a task for every part that may be split."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import open_memmap, save_array
from eigenscape.learn.parts import ritz_fiedler
from eigenscape.learn.recursive import Mask, Splits, smallest_part, split_cheapest, split_part
from eigenscape.spectrum.operator import RowBlock
from eigenscape.stage import Block, Context

Vectors = Callable[[], NDArray[np.float32]]


@dataclass(frozen=True)
class StoredGraph:
    """Where the weights of the graph stage lie: small, so that every task opens them for itself.

    Attributes
    ----------
    paths
        Of indptr, indices and data of each block.
    starts
        First row of each block, and the number of rows.
    degree_path
        Of the row sums.
    """

    paths: tuple[tuple[str, str, str], ...]
    starts: tuple[int, ...]
    degree_path: str

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def rows_of(self, number: int) -> Block:
        """Return the range of rows of a block."""
        return self.starts[number], self.starts[number + 1]

    def block(self, number: int) -> RowBlock:
        """Map a block."""
        indptr, indices, data = (open_memmap(path) for path in self.paths[number])
        return RowBlock(self.starts[number], indptr, indices, data)

    def open(self) -> list[RowBlock]:
        """Map all blocks."""
        return [self.block(number) for number in range(len(self.paths))]

    def degree(self) -> NDArray[np.float64]:
        """Map the row sums."""
        return open_memmap(self.degree_path)


def stored_graph(context: Context) -> StoredGraph:
    """Return where the weights lie that the graph stage wrote."""
    record = context.run.record("graph")
    assert record is not None, "learn follows the graph"
    paths: list[tuple[str, str, str]] = []
    starts = [0]
    while starts[-1] < record.summary["rows"]:
        folder = f"graph/{len(paths)}"
        indptr, indices, data = (
            context.path(f"{folder}/{name}") for name in ("indptr", "indices", "data")
        )
        paths.append((indptr, indices, data))
        starts.append(starts[-1] + context.open(f"{folder}/indptr").shape[0] - 1)
    return StoredGraph(tuple(paths), tuple(starts), context.path("graph/degree"))


def cut_parts(
    context: Context,
    graph: StoredGraph,
    vectors: Vectors,
    folder: Path,
    count: int,
    limit: float,
) -> NDArray[np.uint16]:
    """Split the graph until it has `count` parts; return the part of every row.

    Parameters
    ----------
    context
        Of the learn stage.
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
        return context.map("split", work, fresh, label=f"cutting into {len(made.parts) + 2}")

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
