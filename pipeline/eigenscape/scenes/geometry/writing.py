"""The sample of each cell of a map, written while a scene in sensor geometry is read.

::

    locate-0   rows of tiles of the map   pixels of the first line -> samples -> map/sample/0
    locate-1   ...                        of the second line, where there are several
"""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import write_range
from eigenscape.context import Context
from eigenscape.scenes.geometry.located import Located
from eigenscape.scenes.geometry.parts import TILE
from eigenscape.store.arrays import attach_whole, whole_file

_CELL_BYTES = 40
"""Of a cell of a row of tiles: its pixel, its sample, and temporaries of the search."""

_TILE_BYTES = 32 * 2**20
"""Of a tile: coordinates of pixels near it and their tree."""


def sample_array(line: int) -> str:
    """Return the name of the array of the samples that cells of the map show, of one line."""
    return f"map/sample/{line}"


def write_lookup(
    context: Context, located: Located, scratch: Path, strips: list[Block], counts: list[int]
) -> None:
    """Write ``map/sample/LINE`` (row, column): the sample in each cell of the map, -1 for none.

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


def lookup_bytes(located: Located) -> tuple[int, float, float]:
    """Return the tasks of `write_lookup`, the bytes of one, and what it leaves on disk."""
    grid, lines = located.grid, len(located.lines)
    tasks = lines * -(-grid.height // TILE)
    each = _TILE_BYTES + _CELL_BYTES * min(TILE, grid.height) * grid.width
    return tasks, each, 8.0 * lines * grid.size


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


def _numbers(scratch: Path, strip: int, pixels: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return the samples of pixels of a strip, -1 of those that are not valid."""
    valid = np.load(scratch / f"{strip}-pixel.npy", mmap_mode="r")
    if not len(valid):
        return np.full(len(pixels), -1, np.int64)
    place = np.minimum(np.searchsorted(valid, pixels), len(valid) - 1)
    return np.where(valid[place] == pixels, place + first, -1)
