"""Strips in which a scene is read, by the blocks in which its files are stored.

A block is decoded whole, however little of it is wanted. So a strip has whole rows of blocks where they
fit the memory; where they do not, the strips of a row of blocks are read by one task, which keeps the
blocks decoded meanwhile; and where these do not fit either, they are decoded anew for each strip.
"""

from dataclasses import dataclass
from typing import Any

from eigenscape.base.blocks import Block, blocks
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.resampled import bands_read
from eigenscape.scenes.views.wrapped import innermost

_STRIP_BYTES = 2**27
_ITEM_BYTES = 16
"""Bytes per value while a strip is read: the stored type, float32, masks and copies of both."""


@dataclass(frozen=True)
class Strips:
    """How the rows of a scene are read.

    Attributes
    ----------
    rows
        Of a strip, at most.
    groups
        Strips that a task reads one after the other, with the files open.
    kept_bytes
        Of decoded blocks that it keeps meanwhile.
    """

    rows: int
    groups: tuple[tuple[Block, ...], ...]
    kept_bytes: int = 0


def strips_of(scene: Scene, budget: int) -> Strips:
    """Cut a scene into strips of at most 128 MiB, or higher where a row of blocks is.

    Parameters
    ----------
    scene
        As `eigenscape.scenes.open.open_scene` returns it. A sparse table is one strip: any part of it costs
        the whole file.
    budget
        Bytes that a task may take.
    """
    height, step = scene.grid.height, scene.row_step
    if isinstance(scene, SparseScene):
        return _alone(height, height)
    row_bytes = scene.grid.width * bands_read(scene) * _ITEM_BYTES
    rows = max(1, min(budget, _STRIP_BYTES) // row_bytes)
    if rows >= step:
        return _alone(height, rows // step * step)
    if step * row_bytes <= budget:
        return _alone(height, step)
    kept = block_row_bytes(scene)
    if not 0 < kept <= budget * 3 // 4:
        return _alone(height, rows)
    rows = max(1, min(budget - kept, _STRIP_BYTES) // row_bytes)
    groups = tuple(
        tuple((start + first, start + last) for first, last in blocks(stop - start, rows))
        for start, stop in blocks(height, step)
    )
    return Strips(rows, groups, kept)


def _alone(height: int, rows: int) -> Strips:
    rows = min(rows, height)
    return Strips(rows, tuple((block,) for block in blocks(height, rows)))


def block_row_bytes(scene: Scene) -> int:
    """Return the bytes of all blocks that a row of a scene touches, decoded; 0 where that is not known."""
    return max(sum(int(source.row_bytes) for source in each) for each in _sources(scene))


def decoding_bytes(scene: Scene) -> int:
    """Return what a task takes to decode a block of a raster: the block, and what it is decoded from."""
    return 2 * max((source.chunk_bytes for each in _sources(scene) for source in each), default=0)


def held_bytes(scene: Scene) -> int:
    """Return the bytes that reading any part of a scene leaves in memory: of files that are read whole."""
    source = innermost(scene)
    held = getattr(source, "held_bytes", None)
    return int(getattr(getattr(source, "source", None), "held_bytes", 0) if held is None else held)


def _sources(scene: Scene) -> list[list[Any]]:
    """Return what holds the bands and the flags of a scene, of several lines those of each."""
    inner = innermost(scene)
    if hasattr(inner, "lines"):
        return [each for line in inner.lines for each in _sources(line)]
    parts = [getattr(part, "source", part) for part in getattr(inner, "parts", ())]
    flags = [flag.source for flag in getattr(inner, "flags", ())]
    return [[source for source in dict.fromkeys([*parts, *flags]) if hasattr(source, "row_bytes")]]
