"""The sample of each cell of a map, and of several lines the cell of each sample, written with the samples.

::

    locate-0   rows of tiles of the map   pixels of the first line -> samples -> map/sample/0
    locate-1   ...                        of the second line, where there are several
    place      lines, where there are several   map/sample/* -> samples/place
"""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import scratch_arrays, write_range
from eigenscape.context import Context
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.geometry.parts import TILE
from eigenscape.store.arrays import attach_whole, open_array, open_memmap, whole_file

_CELL_BYTES = 40
"""Of a cell of a row of tiles: its pixel, its sample, and temporaries of the search."""

_TILE_BYTES = 32 * 2**20
"""Of a tile: coordinates of pixels near it and their tree."""

_STEP = 2**18
"""Cells, or samples, that are looked at at a time, in whole rows."""


def sample_array(line: int) -> str:
    """Return the name of the array of the samples that cells of the map show, of one line."""
    return f"map/sample/{line}"


def write_lookup(
    context: Context, located: Located, scratch: Path, strips: list[Block], counts: list[int]
) -> None:
    """Write ``map/sample/LINE`` (row, column): the sample in each cell of the map, -1 for none.

    Of several lines ``samples/place`` (sample) is written, too: the cell of the map in which each sample
    lies, row * columns + column. Lines see the same ground, and the distance of two samples is that of
    their cells.

    Parameters
    ----------
    context
        Of the ingest stage.
    located
        Where the pixels of the scene are.
    scratch, strips, counts
        Where lies which pixels of each strip are samples, rows of the strips, and samples in each.
    """
    kind = np.int32 if sum(counts) < 2**31 else np.int64
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64).tolist()
    for line in range(len(located.lines)):
        shape = (located.grid.height, located.grid.width)
        path = context.workspace.create_array(
            sample_array(line), shape, kind, whole=True, dims=("y", "x")
        )
        # Reserved here, once: tasks that did it side by side would empty each other's files.
        attach_whole(path)
        work = partial(_write_rows, located, line, scratch, strips, firsts, path, np.dtype(kind))
        context.map(
            f"locate-{line}", work, blocks(shape[0], TILE), label="places of pixels on the map"
        )
    if len(located.lines) > 1:
        _write_places(context, located, strips[-1][1], sum(counts))


def _write_places(context: Context, located: Located, rows: int, samples: int) -> None:
    workspace = context.workspace
    path = workspace.create_array(
        "samples/place", (samples,), np.int64, whole=True, dims=("sample",)
    )
    attach_whole(path)
    firsts = [line.first for line in located.lines]
    bounds = list(zip(firsts, [*firsts[1:], rows], strict=True))
    store, scratch = workspace.array_path(""), workspace.folder("places")
    work = partial(_write_line, store, scratch, located.width, bounds)
    context.map("place", work, list(range(len(bounds))), label="places of pixels on the map")


def lookup_bytes(located: Located, pixels: int) -> tuple[int, float, float]:
    """Return the tasks of `write_lookup`, the bytes of one, and what it leaves on disk of so many pixels."""
    grid, lines = located.grid, len(located.lines)
    tasks = lines * -(-grid.height // TILE)
    each = _TILE_BYTES + _CELL_BYTES * min(TILE, grid.height) * grid.width
    return tasks, each, 8.0 * (lines * grid.size + (pixels if lines > 1 else 0))


def _write_rows(
    located: Located,
    line: int,
    scratch: Path,
    strips: list[Block],
    firsts: list[int],
    target: str,
    kind: np.dtype[np.signedinteger],
    block: Block,
) -> None:
    start, stop = block
    pixel = located.rows(line, start, stop)
    found = np.full(pixel.shape, -1, kind)
    known = np.flatnonzero(pixel >= 0)
    if len(known):
        wanted = pixel.ravel()[known]
        rows = wanted // located.width
        for (top, bottom), first in zip(strips, firsts[:-1], strict=True):
            here = np.flatnonzero((rows >= top) & (rows < bottom))
            if len(here):
                found.ravel()[known[here]] = _numbers(scratch, top, wanted[here], first)
    write_range(whole_file(target), start, found)


def _write_line(store: Path, scratch: Path, width: int, bounds: list[Block], line: int) -> None:
    """Write the cell of each sample of a line: the first that shows it, else that of one near it.

    That is the nearest in its row that a cell shows; in a row without any, the one of a row beside it.
    """
    first, last = bounds[line]
    row_start = open_array(store / "samples/row_start")[first : last + 1]
    pixel, target = open_array(store / "samples/pixel"), whole_file(store / "samples/place")
    with scratch_arrays(scratch) as zeros:
        cell = zeros((row_start[-1] - row_start[0],), np.int64)
        _first_cells(open_memmap(store / sample_array(line)), row_start[0], cell)
        near: NDArray[np.int64] | None = None
        for top, bottom in blocks(last - first, _STEP // width + 1):
            begin, end = row_start[top], row_start[bottom]
            column = pixel[begin:end] % width
            found = cell[begin - row_start[0] : end - row_start[0]].copy()
            near = _fill_rows(column, found, row_start[top : bottom + 1] - begin, near, width)
            write_range(target, begin, np.maximum(found - 1, 0))


def _first_cells(shown: NDArray[np.signedinteger], start: int, cell: NDArray[np.int64]) -> None:
    """Write one more than the first cell that shows each sample of a line, whose first one is `start`."""
    height, width = shown.shape
    # From the last cell to the first, which stays.
    for top, bottom in reversed(blocks(height, max(1, _STEP // width))):
        sample = shown[top:bottom].ravel()
        known = np.flatnonzero(sample >= 0)[::-1]
        cell[sample[known] - start] = known + (top * width + 1)


def _fill_rows(
    column: NDArray[np.int64],
    cell: NDArray[np.int64],
    row_start: NDArray[np.int64],
    near: NDArray[np.int64] | None,
    width: int,
) -> NDArray[np.int64] | None:
    """Fill samples of some rows that no cell shows: 0 in `cell`.

    By the nearest one of their row; in a row without any by `near`, what the last row that had some gives to
    each column. The first rows of a line are filled by the first row that has some. Return the new `near`.
    """
    for low, high in pairwise(row_start.tolist()):
        own = slice(low, high)
        known = np.flatnonzero(cell[own])
        if len(known):
            done = 0 if near is None else low
            near = _nearest(column[own][known], cell[own][known], width)
            cell[done:high] = near[column[done:high]]
        elif near is not None:
            cell[own] = near[column[own]]
    return near


def _nearest(column: NDArray[np.int64], value: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return the value of the nearest of some columns, ascending, for each column of a row."""
    ends = (column[1:] + column[:-1] + 1) // 2
    return value[np.searchsorted(ends, np.arange(width), side="right")]


def _numbers(scratch: Path, strip: int, pixels: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return the samples of pixels of a strip, -1 of those that are not valid."""
    valid = np.load(scratch / f"{strip}-pixel.npy", mmap_mode="r")
    if not len(valid):
        return np.full(len(pixels), -1, np.int64)
    place = np.minimum(np.searchsorted(valid, pixels), len(valid) - 1)
    return np.where(valid[place] == pixels, place + first, -1)
