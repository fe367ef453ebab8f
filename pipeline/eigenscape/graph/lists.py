"""Neighbour lists in the locality order, flat: the input of a graph.

The list of a row is a run of entries; runs follow each other without gaps. Lists of the k nearest
are all of length k (-1 where there is no neighbour), so that their starts need not be stored;
those of a radius have any length, 0 included::

    k = 3     index 4 1 -1 | 0 2 5 | ...     starts 0 3 6 ...     made for each block
    radius    index 4 1 | | 0 2 5 3 | ...    starts 0 2 2 6 ...   stored
"""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, save_array
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.context import Context
from eigenscape.graph.kernels import weights as kernels
from eigenscape.graph.kernels.components import flatten, unite
from eigenscape.store.arrays import open_array, open_memmap

_SCALE_FLOOR = 0.1
_TILE_ROWS = CHUNK_ROWS // 2
_TILE_ENTRIES = 8 * CHUNK_ROWS


@dataclass(frozen=True)
class FlatLists:
    """Neighbour lists on disk. Small, so that every task can carry it.

    Attributes
    ----------
    folder
        Where the files ``index`` and ``distance`` lie, and ``starts.npy`` if `k` is None.
    rows, entries
        Number of lists, and of the entries of all of them.
    k
        Length of every list; None where lengths differ.
    dtype
        Integer type of the neighbours' numbers.
    """

    folder: Path
    rows: int
    entries: int
    k: int | None
    dtype: type[np.signedinteger]

    @property
    def mean_length(self) -> int:
        """Mean length of a list, rounded up, at least 1."""
        return max(1, math.ceil(self.entries / self.rows))

    def index(self, mode: str = "r") -> NDArray[np.signedinteger]:
        """Map the numbers of the neighbours, shape (entries,)."""
        return attach_memmap(self.folder / "index", (self.entries,), self.dtype, mode)

    def distance(self, mode: str = "r") -> NDArray[np.float32]:
        """Map the distances of the neighbours, shape (entries,)."""
        return attach_memmap(self.folder / "distance", (self.entries,), np.float32, mode)

    def starts(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the lists of some rows begin; that of the row after the last is the end."""
        if self.k is not None:
            return rows * self.k
        return np.asarray(np.load(self.folder / "starts.npy", mmap_mode="r")[rows])

    def read(
        self, block: Block
    ) -> tuple[NDArray[np.int64], NDArray[np.signedinteger], NDArray[np.float32]]:
        """Map the lists of a range of rows.

        Returns
        -------
        indptr : array, shape (rows + 1,)
            Where each list begins in the arrays that follow.
        index, distance : array, shape (entries,)
        """
        starts = self.starts(np.arange(block[0], block[1] + 1, dtype=np.int64))
        piece = slice(int(starts[0]), int(starts[-1]))
        return starts - starts[0], self.index()[piece], self.distance()[piece]

    def tiles(self) -> list[Block]:
        """Return ranges of rows for passes over all lists."""
        return blocks(self.rows, _TILE_ROWS)

    def scale(self) -> NDArray[np.float32]:
        """Return the distance of each row to its last neighbour, kept away from 0.

        A sample with k duplicates has scale 0, which would cut it off from all others, and one
        without neighbours has none: scales are at least a tenth of the median of those that are
        not 0.
        """
        scale = np.empty(self.rows, np.float32)
        for start, stop in self.tiles():
            kernels.last_distances(*self.read((start, stop)), scale[start:stop])
        return np.maximum(scale, np.float32(least_scale(scale)))

    def mean_square(self) -> float:
        """Return the mean squared length of all entries."""
        index, distance = self.index(), self.distance()
        total, count = 0.0, 0
        for start, stop in blocks(self.entries, _TILE_ENTRIES):
            lengths = distance[start:stop][index[start:stop] >= 0].astype(np.float64)
            total += float(lengths @ lengths)
            count += len(lengths)
        return total / max(count, 1)

    def arriving(self) -> NDArray[np.int64]:
        """Return how many entries name each row."""
        counts = np.zeros(self.rows, np.int64)
        for block in self.tiles():
            kernels.count_names(self.read(block)[1], counts)
        return counts

    def keep(self, inside: NDArray[np.bool_]) -> "FlatLists":
        """Write the lists of some rows for themselves.

        Parameters
        ----------
        inside : array, shape (rows,)
            Which rows to keep; they are numbered anew, and entries that name others are dropped.
        """
        length: NDArray[np.int64] | int | None = self.k
        if length is None:
            length = np.diff(np.load(self.folder / "starts.npy", mmap_mode="r"))[inside]
        kept = create_lists(self.folder / "kept", int(inside.sum()), length, self.dtype)
        number = np.where(inside, np.cumsum(inside) - 1, -1).astype(self.dtype)
        index, distance = kept.index("r+"), kept.distance("r+")
        filled = 0
        for start, stop in self.tiles():
            filled = kernels.keep_rows(
                *self.read((start, stop)), inside[start:stop], number, filled, index, distance
            )
        return kept


def connected_components(
    lists: FlatLists, *further: FlatLists, landmark: NDArray[np.bool_] | None = None
) -> NDArray[np.int32]:
    """Return the component of each row by the edges of all lists, the largest component first.

    Parameters
    ----------
    lists, further
        The lists.
    landmark : array of bool, shape (rows,), optional
        Which rows are landmarks: the components are those of their own graph then, and any other
        row belongs to that of its nearest landmark, though it has edges to more of them.
    """
    parent = np.arange(lists.rows, dtype=lists.dtype)
    for edges in (lists, *further):
        for block in edges.tiles():
            indptr, index, _ = edges.read(block)
            if landmark is not None and lists.k is not None:
                first = np.zeros(len(index), bool)
                first[indptr[:-1]] = True
                index = np.where(first | np.repeat(landmark[slice(*block)], lists.k), index, -1)
            unite(block[0], indptr, index, parent)
    flatten(parent)
    roots, component = np.unique(parent, return_inverse=True)
    by_size = np.argsort(-np.bincount(component, minlength=len(roots)), kind="stable")
    number = np.empty(len(roots), np.int32)
    number[by_size] = np.arange(len(roots), dtype=np.int32)
    return number[component]


def create_lists(
    folder: Path, rows: int, length: NDArray[np.int64] | int, dtype: type[np.signedinteger]
) -> FlatLists:
    """Create the files of lists that tasks fill.

    Parameters
    ----------
    folder
        Where; made if it is not there.
    rows
        How many lists.
    length : array, shape (rows,), or int
        How long each is, or all are.
    dtype
        Integer type of the neighbours' numbers.
    """
    folder.mkdir(exist_ok=True)
    if isinstance(length, int):
        lists = FlatLists(folder, rows, rows * length, length, dtype)
    else:
        starts = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
        save_array(folder / "starts.npy", starts)
        lists = FlatLists(folder, rows, int(starts[-1]), None, dtype)
    for name, kind in (("index", dtype), ("distance", np.float32)):
        create_memmap(folder / name, (lists.entries,), kind)
    return lists


def rank_lists(context: Context, order: NDArray[np.int64], rank: NDArray[Any]) -> FlatLists:
    """Bring the lists of the neighbors stage into the locality order.

    Parameters
    ----------
    context
        Of the graph stage.
    order : array, shape (rows,)
        Sample of each rank.
    rank : array, shape (rows,)
        Rank of each sample, of the integer type that the lists are to have.
    """
    folder = context.workspace.folder("lists")
    save_array(folder / "rank.npy", rank)
    stored = tuple(Path(context.path(f"neighbors/{name}")) for name in ("index", "distance"))
    indptr = Path(context.path("neighbors/indptr"))
    neighbors = open_array(stored[0])
    length: NDArray[np.int64] | int
    if indptr.exists():
        length, chunk = np.diff(open_memmap(indptr))[order], 1
    else:
        length, chunk = int(neighbors.shape[1]), int(neighbors.chunks[0])
    lists = create_lists(folder, len(order), length, rank.dtype.type)
    work = partial(_reorder, lists, stored, indptr)
    row = 40 * lists.mean_length
    ranges = sample_blocks(lists.rows, chunk, context.task_bytes, row)
    context.map("reorder", work, ranges, together=True)
    return lists


def _reorder(lists: FlatLists, stored: tuple[Path, ...], indptr: Path, block: Block) -> None:
    start, stop = block
    rank = np.load(lists.folder / "rank.npy", mmap_mode="r")
    if lists.k is None:
        starts = open_memmap(indptr)[start : stop + 1]
        piece = slice(int(starts[0]), int(starts[-1]))
        near, lengths = (open_memmap(path)[piece] for path in stored)
    else:
        starts = lists.starts(np.arange(stop - start + 1, dtype=np.int64))
        near, lengths = (open_array(path)[start:stop].reshape(-1) for path in stored)
    places = lists.starts(rank[start:stop].astype(np.int64))
    kernels.place_lists(
        np.asarray(starts) - starts[0], near, lengths, rank, places,
        lists.index("r+"), lists.distance("r+"),
    )  # fmt: skip


def least_scale(scale: NDArray[np.float32]) -> float:
    """Return the least scale that counts: a share of the median of those that are not 0."""
    positive = scale[scale > 0]
    return _SCALE_FLOOR * float(np.median(positive)) if len(positive) else 1.0
