"""Exact lists, and all pairs within a radius: every tile of samples against every other.

Tiles are runs of the locality order, so they are compact. A tile that lies farther away than what
is sought (by the triangle inequality, from the balls around both) is never looked at, and the
nearest come first: the fewer dimensions the data really have, the more is passed over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context, Map
from eigenscape.errors import InputError
from eigenscape.neighbors.kernels.metrics import Metric, chord_of, lengths
from eigenscape.neighbors.kernels.tiles import (
    QUERY_ROWS,
    SLACK,
    TILE_ROWS,
    ball,
    find_within,
    push_tile,
)
from eigenscape.neighbors.search.layout import Layout
from eigenscape.neighbors.search.scratch import Lists, Ranked
from eigenscape.store.arrays import attach_whole, write_rows

TASK_RANKS = 4 * QUERY_ROWS
"""Ranks of queries per task."""

MOST_NEIGHBORS = 1000
"""Neighbours within the radius, on average over the samples of a task: as many as k may be."""


@dataclass(frozen=True)
class Tiles:
    """The ranks in tiles, and the ball around each; its methods are the tasks.

    Attributes
    ----------
    ranked
        Features by rank.
    folder
        Holds ``centres.npy`` (tile, column) and ``radii.npy`` (tile).
    lists
        Where `nearest` writes; None where there are no lists of one length.
    """

    ranked: Ranked
    folder: Path
    lists: Lists | None = None

    def nearest(self, layout: Layout, block: Block) -> None:
        """Find the nearest neighbours of a block of ranks among all others.

        Lists hold sample numbers until they are written: equally near samples would go by rank otherwise,
        and ranks follow from how the samples are cut into parts.
        """
        assert self.lists is not None
        start, stop = block
        order = layout.order()
        index = np.full((stop - start, self.lists.k), -1, self.lists.dtype)
        distance = np.full(index.shape, np.inf, np.float32)
        for first, last in blocks(stop - start, QUERY_ROWS):
            left = self.ranked.read(start + first, start + last)
            queries = np.array(order[start + first : start + last], np.int64)
            mine, squared = index[first:last], distance[first:last]
            for bound, tile in self._by_bound(left):
                # Bounds ascend: no tile after this one is any nearer.
                if bound > np.sqrt(squared[:, -1].max()) * (1 + SLACK):
                    break
                end = min(tile + TILE_ROWS, self.ranked.rows)
                right = self.ranked.read(tile, end)
                numbers = np.array(order[tile:end], np.int64)
                push_tile(left, queries, right, numbers, mine, squared)
        self.lists.write(0, start, layout.rank()[index], distance)

    def within(self, radius: float, chord: float, block: Block) -> int:
        """Find all pairs within a radius of a block of ranks; return how many there are.

        The radius is the one of the job; the chord is the straight distance that belongs to it.
        """
        start, stop = block
        found, most = [], MOST_NEIGHBORS * (stop - start)
        total = 0
        for first, last in blocks(stop - start, QUERY_ROWS):
            left = self.ranked.read(start + first, start + last)
            queries = np.arange(start + first, start + last)
            for bound, tile in self._by_bound(left):
                if bound > chord * (1 + SLACK):
                    break
                right = self.ranked.read(tile, min(tile + TILE_ROWS, self.ranked.rows))
                rows, numbers, squared = find_within(left, queries, right, tile, chord)
                found.append((rows + first, numbers, squared))
                total += len(rows)
                if total > most:
                    raise InputError(
                        f"neighbors.radius = {radius}: {stop - start} samples have more than "
                        f"{most} neighbours within it; the limit is {MOST_NEIGHBORS} each on "
                        "average. Set a smaller neighbors.radius, or use the k nearest "
                        '(neighbors.method = "lanczos-bisection").'
                    )
        rows, numbers, squared = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((numbers, squared, rows))
        save_array(self._pairs(start, "counts"), np.bincount(rows, minlength=stop - start))
        save_array(self._pairs(start, "index"), numbers[order])
        save_array(self._pairs(start, "distance"), squared[order])
        return total

    def pairs(self, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return counts, ranks and squared distances that `within` found for a block."""
        counts, index, distance = (
            np.load(self._pairs(start, name)) for name in ("counts", "index", "distance")
        )
        return counts, index, distance

    def measure(self, tile: int) -> tuple[NDArray[np.float32], float]:
        """Return the ball around a tile."""
        return ball(self.ranked.read(tile, min(tile + TILE_ROWS, self.ranked.rows)))

    def _by_bound(self, left: Vectors) -> Iterator[tuple[float, int]]:
        """Yield a lower bound of the distance to every tile, and its first rank, ascending."""
        centre, radius = ball(left)
        centres = np.load(self.folder / "centres.npy", mmap_mode="r")
        away = np.sqrt(((centres - centre).astype(np.float64) ** 2).sum(axis=1))
        bounds = away * (1 - SLACK) - radius - np.load(self.folder / "radii.npy")
        # Tiles that overlap come by their centres: near ones make the lists short of room soonest.
        for number in np.lexsort((away, np.maximum(bounds, 0))):
            yield float(bounds[number]), int(number) * TILE_ROWS

    def _pairs(self, start: int, name: str) -> Path:
        return self.folder / f"within-{start}-{name}.npy"


def measure_tiles(tiles: Tiles, map_blocks: Map) -> None:
    """Write the balls around all tiles."""
    if not (tiles.folder / "radii.npy").exists():
        starts = list(range(0, tiles.ranked.rows, TILE_ROWS))
        balls = map_blocks("balls", tiles.measure, starts, label="measuring tiles", keep=False)
        save_array(tiles.folder / "centres.npy", np.stack([centre for centre, _ in balls]))
        save_array(tiles.folder / "radii.npy", np.array([radius for _, radius in balls]))


def exact_lists(context: Context, layout: Layout, k: int) -> Lists:
    """Fill the lists by comparing every sample with every other that could be nearer."""
    folder = context.workspace.folder("exact")
    lists = Lists(folder, layout.ranked.rows, k, layout.dtype)
    lists.create(0)
    tiles = Tiles(layout.ranked, folder, lists)
    measure_tiles(tiles, context.map)
    work = partial(tiles.nearest, layout)
    context.map("exact", work, blocks(lists.rows, TASK_RANKS), label="comparing all pairs")
    return lists


def radius_lists(context: Context, layout: Layout, radius: float, metric: Metric) -> dict[str, Any]:
    """Write ``neighbors/{indptr,index,distance}``: all neighbours within a radius.

    Parameters
    ----------
    context, layout
        As elsewhere.
    radius
        Largest distance, as the metric says it.
    metric
        What the features were prepared for.
    """
    tiles = Tiles(layout.ranked, context.workspace.folder("radius"))
    measure_tiles(tiles, context.map)
    ranges = blocks(layout.ranked.rows, TASK_RANKS)
    work = partial(tiles.within, radius, chord_of(radius, metric))
    context.map("within", work, ranges, label="finding neighbours within the radius")
    rank, (copies, represented) = layout.rank(), layout.copies()
    by_rank = np.concatenate([tiles.pairs(start)[0] for start, _ in ranges])
    counts = by_rank[rank]
    counts[copies] += 1  # the representative itself
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    make = partial(context.workspace.create_array, whole=True, dims=("entry",))
    index = make("neighbors/index", (int(starts[-1]),), layout.dtype)
    distance = make("neighbors/distance", (int(starts[-1]),), np.float32)
    indptr = context.workspace.create_array(
        "neighbors/indptr", starts.shape, np.int64, whole=True, dims=("row_start",)
    )
    write_rows(indptr, 0, starts)
    for path in (index, distance):
        attach_whole(path)
    save_array(tiles.folder / "starts.npy", starts)
    by_representative = np.argsort(rank[represented], kind="stable")
    save_array(tiles.folder / "copies.npy", copies[by_representative])
    scatter = partial(_scatter, layout, tiles, index, distance, metric)
    context.map("write", scatter, ranges, label="writing lists", together=True)
    return {
        "entries": int(starts[-1]),
        "mean_neighbors": float(starts[-1] / layout.samples),
        "isolated": int((counts == 0).sum()),
    }


def _scatter(
    layout: Layout, tiles: Tiles, index: str, distance: str, metric: Metric, block: Block
) -> None:
    """Write the lists of a block of ranks, and those of their copies, in the order of samples."""
    first, last = block
    counts, near, squared = tiles.pairs(first)
    order, rank = layout.order(), layout.rank()
    starts = np.load(tiles.folder / "starts.npy", mmap_mode="r")
    copies = np.load(tiles.folder / "copies.npy", mmap_mode="r")
    samples = order[near].astype(layout.dtype)
    owner = np.repeat(np.arange(len(counts)), counts)
    # Ties went by rank; sample numbers must break them here.
    sort = np.lexsort((samples, squared, owner))
    samples, values = samples[sort], lengths(squared[sort], metric)
    begin = np.concatenate([[0], np.cumsum(counts)])
    target_index, target_distance = attach_whole(index), attach_whole(distance)
    for place, sample in enumerate(order[first:last].tolist()):
        piece = slice(int(begin[place]), int(begin[place + 1]))
        at = slice(int(starts[sample]), int(starts[sample + 1]))
        target_index[at], target_distance[at] = samples[piece], values[piece]
    here = np.searchsorted(rank[copies], [first, last]) if len(copies) else (0, 0)
    for copy in np.asarray(copies[here[0] : here[1]]).tolist():
        place = int(rank[copy]) - first
        piece = slice(int(begin[place]), int(begin[place + 1]))
        at = slice(int(starts[copy]), int(starts[copy + 1]))
        target_index[at] = np.concatenate([[order[first + place]], samples[piece]])
        target_distance[at] = np.concatenate([[0], values[piece]])
