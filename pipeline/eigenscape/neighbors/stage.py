"""The neighbors stage: out-of-core recursive Lanczos bisection, and the two other methods.

::

    sample -> split tree            in memory, from 2**18 samples at most
    route    sample blocks          every block cut by part: the runs of an external sort
    search   parts                  lists within a part; copies that live elsewhere are mailed home
    order    one pass               home leaves in depth-first order: the locality order
    merge    parts                  own lists + mailed lists -> one list per sample
    refine   blocks of that order   neighbours of neighbours, exact distances
    write    sample blocks          back to sample numbers
    recall   sample blocks          against brute force for some of the samples

Between route and write everything is a raw file in scratch, indexed by part or by rank in the
locality order, so that tasks read and write contiguous ranges.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, chunk_rows, create_memmap, open_array, save_array
from eigenscape.neighbors import kernels
from eigenscape.neighbors.exact import exact_lists, nndescent_lists, read_rows
from eigenscape.neighbors.partition import (
    PART_SIZE,
    TREE_SAMPLE,
    SplitTree,
    build_tree,
    route,
    search_part,
    split_levels,
)
from eigenscape.neighbors.recall import measure_recall
from eigenscape.stage import Block, Context, blocks, sample_blocks

RANK_ROWS = 2**16
"""Rows per task in the locality order."""


def index_type(rows: int) -> type[np.signedinteger]:
    """Return the integer type that holds every sample's number and its negative."""
    return np.int32 if rows < 2**31 else np.int64


def neighbors_stage(context: Context) -> dict[str, Any]:
    """Write ``neighbors/index``, ``neighbors/distance`` (sample, k) and ``neighbors/order``."""
    options = context.job.neighbors
    rows, _ = context.open("features/values").shape
    dtype = index_type(rows)
    shape = (rows, options.k)
    dims = ("sample", "neighbor")
    index = context.workspace.create_array("neighbors/index", shape, dtype, dims=dims)
    distance = context.workspace.create_array("neighbors/distance", shape, np.float32, dims=dims)
    order = context.workspace.create_array(
        "neighbors/order", (rows,), np.int64, whole=True, dims=("rank",)
    )
    bisect = options.method == "lanczos-bisection"
    plan = _Bisection(context, rows, options.k if bisect else 0)
    plan.route_samples()
    plan.search_parts()
    open_array(order)[...] = plan.rank_samples()
    rounds: list[float] = []
    if bisect:
        rounds = plan.merge_and_refine(index, distance)
    elif options.method == "exact":
        exact_lists(context, index, distance)
    else:
        nndescent_lists(context, index, distance)
    return {
        "method": options.method,
        "k": options.k,
        "parts": plan.tree.parts,
        "refined": rounds,
        **measure_recall(context, index),
    }


class _Bisection:
    """The files of one bisection in scratch, and the steps that fill them."""

    def __init__(self, context: Context, rows: int, k: int) -> None:
        self.context = context
        self.rows = rows
        self.k = k
        options = context.job.neighbors
        # Without lists to find (k = 0) only the order is wanted, and that needs no copies.
        self.overlap = options.overlap if k else 0.0
        self.leaf_size = max(options.leaf_size, 4 * k)
        self.dtype = index_type(rows)
        self.scratch = context.workspace.scratch("bisection/x").parent
        self.values = context.path("features/values")
        self.tree = self._split_tree()

    def _split_tree(self) -> SplitTree:
        path = self.scratch / "tree.npz"
        levels = split_levels(self.rows, PART_SIZE, self.overlap)
        if not path.exists():
            rng = np.random.default_rng(0)
            size = min(self.rows, TREE_SAMPLE) if levels else 0
            samples = np.sort(rng.choice(self.rows, size, replace=False))
            tree = build_tree(read_rows(self.values, samples), samples, levels, self.overlap)
            temporary = path.with_suffix(".tmp.npz")
            np.savez(temporary, directions=tree.directions, bounds=tree.bounds, ties=tree.ties)
            temporary.replace(path)
        with np.load(path) as stored:
            return SplitTree(levels, stored["directions"], stored["bounds"], stored["ties"])

    def route_samples(self) -> None:
        width = self.context.open("features/values").shape[1]
        self.width = width
        # A fixed number of runs at most: each part reads a slice of every run.
        self.runs = sample_blocks(
            self.rows, 1, self.context.task_bytes, 4 * width * (2 + 4 * (1 + self.overlap))
        )
        work = partial(_route_block, self.values, self.scratch, self.tree)
        self.context.map("route", work, self.runs, label="routing samples")

    def search_parts(self) -> None:
        work = partial(
            _search_part, self.scratch, self.runs, self.width, self.tree.parts,
            self.k, self.overlap, self.leaf_size, self.dtype,
        )  # fmt: skip
        parts = list(range(self.tree.parts))
        self.residents = self.context.map("search", work, parts, label="searching parts")

    def rank_samples(self) -> NDArray[np.int64]:
        """Return the sample of each rank, and write the rank of each sample to scratch."""
        order = np.concatenate(
            [np.load(self.scratch / f"order-{part}.npy") for part in range(self.tree.parts)]
        )
        rank = np.empty(self.rows, self.dtype)
        rank[order] = np.arange(self.rows, dtype=self.dtype)
        save_array(self.scratch / "rank.npy", rank)
        save_array(self.scratch / "order.npy", order)
        return order

    def merge_and_refine(self, index: str, distance: str) -> list[float]:
        context, rows, k = self.context, self.rows, self.k
        starts = np.concatenate([[0], np.cumsum(self.residents)])
        create_memmap(self.scratch / "features", (rows, self.width), np.float32)
        self._create_lists(0)
        merge = partial(
            _merge_part, self.scratch, self.runs, starts, self.width, self.tree.parts, k, self.dtype
        )
        context.map("merge", merge, list(range(self.tree.parts)), label="merging lists")
        rounds = []
        ranges = blocks(rows, RANK_ROWS)
        for number in range(context.job.neighbors.refine):
            self._create_lists(number + 1)
            work = partial(_refine_block, self.scratch, number, rows, self.width, k, self.dtype)
            changed = context.map(
                f"refine-{number}", work, ranges, label=f"refining, round {number + 1}"
            )
            rounds.append(sum(changed) / (rows * k))
        final = context.job.neighbors.refine
        write = partial(_write_block, self.scratch, final, rows, k, self.dtype, index, distance)
        chunk = chunk_rows(rows, 4 * k)
        context.map("write", write, sample_blocks(rows, chunk, context.task_bytes, 40 * k))
        return rounds

    def _create_lists(self, number: int) -> None:
        create_memmap(self.scratch / f"index-{number}", (self.rows, self.k), self.dtype)
        create_memmap(self.scratch / f"distance-{number}", (self.rows, self.k), np.float32)


def _route_block(values: str, scratch: Path, tree: SplitTree, block: Block) -> None:
    features = open_array(values)[block[0] : block[1]]
    rows, home, offsets = route(features, block[0], tree)
    name = f"{block[0]}-{block[1]}"
    save_array(scratch / f"run-{name}-rows.npy", rows)
    save_array(scratch / f"run-{name}-home.npy", home)
    save_array(scratch / f"run-{name}-offsets.npy", offsets)
    # Last, since it is by far the largest: what is there is whole.
    with open(scratch / f"run-{name}-features", "wb") as stream:
        for start in range(0, len(rows), RANK_ROWS):
            stream.write(features[rows[start : start + RANK_ROWS]].data)


def _read_part(
    scratch: Path, runs: list[Block], width: int, part: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int32]]:
    """Return features, numbers and homes of a part's samples, in ascending order."""
    features, samples, home = [], [], []
    for start, stop in runs:
        name = f"{start}-{stop}"
        offsets = np.load(scratch / f"run-{name}-offsets.npy", mmap_mode="r")
        piece = slice(int(offsets[part]), int(offsets[part + 1]))
        stored = attach_memmap(
            scratch / f"run-{name}-features", (int(offsets[-1]), width), np.float32
        )
        features.append(stored[piece])
        rows = np.load(scratch / f"run-{name}-rows.npy", mmap_mode="r")[piece]
        samples.append(rows.astype(np.int64) + start)
        home.append(np.load(scratch / f"run-{name}-home.npy", mmap_mode="r")[piece])
    return np.concatenate(features), np.concatenate(samples), np.concatenate(home)


def _search_part(
    scratch: Path,
    runs: list[Block],
    width: int,
    parts: int,
    k: int,
    overlap: float,
    leaf_size: int,
    dtype: type[np.signedinteger],
    part: int,
) -> int:
    features, samples, home = _read_part(scratch, runs, width, part)
    index, distance, place = search_part(features, samples, k, overlap, leaf_size, dtype)
    residents = np.flatnonzero(home == part)
    residents = residents[np.argsort(place[residents], kind="stable")]
    save_array(scratch / f"order-{part}.npy", samples[residents])
    if k:
        save_array(scratch / f"own-{part}-index.npy", index[residents])
        save_array(scratch / f"own-{part}-distance.npy", distance[residents])
        # Sorted by home, so that every home reads its own slice.
        guests = np.argsort(home, kind="stable")
        guests = guests[home[guests] != part]
        offsets = np.searchsorted(home[guests], np.arange(parts + 1))
        save_array(scratch / f"mail-{part}-offsets.npy", offsets)
        save_array(scratch / f"mail-{part}-sample.npy", samples[guests])
        save_array(scratch / f"mail-{part}-index.npy", index[guests])
        save_array(scratch / f"mail-{part}-distance.npy", distance[guests])
    return len(residents)


def _merge_part(
    scratch: Path,
    runs: list[Block],
    starts: NDArray[np.int64],
    width: int,
    parts: int,
    k: int,
    dtype: type[np.signedinteger],
    part: int,
) -> None:
    first, last = int(starts[part]), int(starts[part + 1])
    rank = np.load(scratch / "rank.npy", mmap_mode="r")
    index = np.load(scratch / f"own-{part}-index.npy")
    distance = np.load(scratch / f"own-{part}-distance.npy")
    for other in range(parts):
        offsets = np.load(scratch / f"mail-{other}-offsets.npy", mmap_mode="r")
        piece = slice(int(offsets[part]), int(offsets[part + 1]))
        if piece.start < piece.stop:
            kernels.merge_lists(
                rank[np.load(scratch / f"mail-{other}-sample.npy", mmap_mode="r")[piece]] - first,
                np.load(scratch / f"mail-{other}-index.npy", mmap_mode="r")[piece],
                np.load(scratch / f"mail-{other}-distance.npy", mmap_mode="r")[piece],
                index,
                distance,
            )
    rows = len(rank)
    lists = attach_memmap(scratch / "index-0", (rows, k), dtype, "r+")
    lists[first:last] = np.where(index >= 0, rank[index], -1)
    attach_memmap(scratch / "distance-0", (rows, k), np.float32, "r+")[first:last] = distance
    features, samples, _ = _read_part(scratch, runs, width, part)
    order = np.load(scratch / f"order-{part}.npy")
    ranked = attach_memmap(scratch / "features", (rows, width), np.float32, "r+")
    ranked[first:last] = features[np.searchsorted(samples, order)]


def _refine_block(
    scratch: Path, number: int, rows: int, width: int, k: int, dtype: type, block: Block
) -> int:
    start, stop = block
    features = attach_memmap(scratch / "features", (rows, width), np.float32)
    index = attach_memmap(scratch / f"index-{number}", (rows, k), dtype)
    distance = attach_memmap(scratch / f"distance-{number}", (rows, k), np.float32)
    new_index: NDArray[np.signedinteger] = np.empty((stop - start, k), dtype)
    new_distance = np.empty((stop - start, k), np.float32)
    changed = kernels.refine_lists(features, start, stop, index, distance, new_index, new_distance)
    more = number + 1
    attach_memmap(scratch / f"index-{more}", (rows, k), dtype, "r+")[start:stop] = new_index
    attach_memmap(scratch / f"distance-{more}", (rows, k), np.float32, "r+")[start:stop] = (
        new_distance
    )
    return int(changed)


def _write_block(
    scratch: Path,
    number: int,
    rows: int,
    k: int,
    dtype: type,
    index: str,
    distance: str,
    block: Block,
) -> None:
    start, stop = block
    ranks = np.load(scratch / "rank.npy", mmap_mode="r")[start:stop]
    order = np.load(scratch / "order.npy", mmap_mode="r")
    lists = attach_memmap(scratch / f"index-{number}", (rows, k), dtype)[ranks]
    squared = attach_memmap(scratch / f"distance-{number}", (rows, k), np.float32)[ranks]
    # Ties among squared distances were broken by rank; sample numbers must break them here.
    samples: NDArray[np.signedinteger] = np.where(lists >= 0, order[lists], -1).astype(dtype)
    by = np.lexsort((samples, squared), axis=1)
    open_array(index)[start:stop] = np.take_along_axis(samples, by, axis=1)
    open_array(distance)[start:stop] = np.sqrt(np.take_along_axis(squared, by, axis=1))
