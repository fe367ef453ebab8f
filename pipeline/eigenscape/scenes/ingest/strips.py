"""Intermediate files between a scene and arrays: a few for each strip of rows.

A strip is known by its first row. How many of its pixels are valid is known only once it is read,
hence the detour.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.base.files.mapped import attach_memmap, save_array, save_raw, write_range
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.store.arrays import chunk_rows, whole_file, write_rows
from eigenscape.store.rows import create_sparse


def save_values(scratch: Path, row: int, values: Vectors) -> None:
    """Save the samples of the strip that begins at `row`, shape (samples, bands)."""
    if isinstance(values, np.ndarray):
        save_raw(scratch / f"{row}-values", np.asarray(values, np.float32))
        return
    save_array(scratch / f"{row}-data.npy", values.data)
    save_array(scratch / f"{row}-indices.npy", values.indices.astype(np.int32, copy=False))
    save_array(scratch / f"{row}-entries.npy", np.diff(values.indptr))


def join(scratch: Path, strips: list[Block], name: str) -> NDArray[Any]:
    """Return a one-dimensional array of all strips, small enough for memory."""
    return np.concatenate([np.load(scratch / f"{row}-{name}.npy") for row, _ in strips])


def write_dense(
    context: Context, scratch: Path, strips: list[Block], counts: list[int], width: int
) -> None:
    """Write ``samples/values`` (sample, band) from strips of `counts` samples of `width` bands."""
    samples = sum(counts)
    values = context.workspace.create_array(
        "samples/values", (samples, width), np.float32, dims=("sample", "band")
    )
    work = partial(_assemble, scratch, strips, counts, width, values)
    parts = sample_blocks(samples, chunk_rows(samples, 4 * width), context.task_bytes, 8 * width)
    context.map("assemble", work, parts, label="writing samples")


def write_sparse(
    context: Context, scratch: Path, strips: list[Block], counts: list[int], width: int
) -> None:
    """Write ``samples/values/{data,indices,indptr}`` from strips of `counts` samples."""
    ends = np.cumsum(join(scratch, strips, "entries"), dtype=np.int64)
    starts = np.concatenate([[0], ends]).astype(np.int64)
    data, indices, _ = create_sparse(context.workspace, "samples/values", starts, width)
    edges = starts[np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)].tolist()
    places = {row: edges[number : number + 2] for number, (row, _) in enumerate(strips)}
    work = partial(_copy_strip, scratch, data, indices, places)
    context.map("assemble", work, [row for row, _ in strips], label="writing samples")


def _assemble(
    scratch: Path, strips: list[Block], counts: list[int], width: int, target: str, block: Block
) -> None:
    start, stop = block
    values = np.empty((stop - start, width), np.float32)
    first = 0
    for (row, _), count in zip(strips, counts, strict=True):
        begin, end = max(start, first), min(stop, first + count)
        if begin < end:
            stored = attach_memmap(scratch / f"{row}-values", (count, width), np.float32)
            values[begin - start : end - start] = stored[begin - first : end - first]
        first += count
    write_rows(target, start, values)


def _copy_strip(
    scratch: Path, data: str, indices: str, places: dict[int, list[int]], row: int
) -> None:
    first, last = places[row]
    if first < last:
        for name, target in (("data", data), ("indices", indices)):
            # From file to file through mappings: no entry passes through anonymous memory.
            stored = np.load(scratch / f"{row}-{name}.npy", mmap_mode="r")
            write_range(whole_file(target), first, stored)
