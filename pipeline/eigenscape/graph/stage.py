"""The graph stage: union symmetrisation, weights, degrees, components.

::

    reorder     sample blocks   lists from sample numbers to ranks in the locality order
    spatial     sample blocks   neighbouring pixels, as lists too, with [graph.spatial]
    components  one pass        union-find over the lists; bridges, or the largest alone
    bucket      row blocks      every edge also filed under its other end
    unite       row blocks      own edges + filed edges -> CSR block, weights, degrees
    join        row blocks      + edges between neighbouring pixels, at their share of the weight

The weight matrix is symmetric to the last bit: both copies of an edge are computed from the same
length by the same expression.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import attach_memmap, create_memmap, save_array, write_range
from eigenscape.base.memory import CHUNK_ROWS, ROW_TILE
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.graph.blocks import write_whole
from eigenscape.graph.bridges import find_bridges
from eigenscape.graph.kernels import weights as kernels
from eigenscape.graph.lists import FlatLists, connected_components, rank_lists
from eigenscape.graph.spatial import (
    join_rows,
    spatial_bandwidth,
    spatial_factor,
    spatial_lists,
    spectral_file,
)
from eigenscape.job.options import GraphOptions
from eigenscape.neighbors.search.reach import MOST_BRIDGED
from eigenscape.store.rows import Rows
from eigenscape.store.workspace import Workspace

MOST_COMPONENTS = 1000
"""Largest number of components for ``components = "each"``: each one adds a null vector that is stored."""

_BLOCK_ENTRIES = 16 * CHUNK_ROWS


def block_rows(k: int) -> int:
    """Return the number of rows in a CSR block for lists of mean length `k` (a few tens of megabytes)."""
    return max(1, _BLOCK_ENTRIES // k // ROW_TILE) * ROW_TILE


def graph_stage(context: Context) -> dict[str, Any]:
    """Write ``graph/<block>/{indptr,indices,data}``, ``graph/{sample,degree,component}``."""
    options = context.job.graph
    order = np.asarray(context.memmap("neighbors/order"))
    rank = np.empty(len(order), context.open("neighbors/index").dtype)
    rank[order] = np.arange(len(order), dtype=rank.dtype)
    lists = rank_lists(context, order, rank)
    spatial = spatial_lists(context, rank, options.spatial.neighbors) if options.spatial else None
    neighbors, landmark = context.job.neighbors, None
    if neighbors.most_landmarks is not None:
        landmark = np.zeros(len(order), bool)
        landmark[context.memmap("neighbors/landmark")] = True
    component = connected_components(
        lists, *([spatial] if spatial else []),
        landmark=None if landmark is None else landmark[order],
    )[rank]  # fmt: skip
    sizes = np.bincount(component)
    count = len(sizes)
    reach = f"neighbors.k = {neighbors.k}" if lists.k else f"neighbors.radius = {neighbors.reach}"
    _check_components(options.components, sizes, reach)
    bridges = np.empty((0, 2), np.int64)
    if options.components == "connect" and count > 1:
        features = Rows(context.path("features/values"), unit=neighbors.metric == "angle")
        bridges = find_bridges(features, component, context.task_bytes, context.map)
        if landmark is not None:
            nearest = context.open("neighbors/index")
            bridges = _between_landmarks(bridges, landmark, lambda sample: nearest[sample, 0])
    elif options.components == "largest" and count > 1:
        inside = component[order] == 0
        order, lists = order[inside], lists.keep(inside)
        spatial = spatial.keep(inside) if spatial else None
    _write_small(context.workspace, order, component)
    entries = _write_blocks(context, lists, rank[bridges], spatial)
    return {
        "rows": lists.rows,
        "block_rows": block_rows(lists.mean_length),
        "entries": entries,
        "components": count,
        "largest_component": int(sizes.max()),
        "bridges": len(bridges),
        "connected": count == 1 or options.components != "each",
    }


def _between_landmarks(
    bridges: NDArray[np.int64], landmark: NDArray[np.bool_], nearest: Callable[[int], int]
) -> NDArray[np.int64]:
    """Move the ends of bridges to the nearest landmarks: it is their graph that must be connected."""
    ends = [
        sample if landmark[sample] else int(nearest(sample)) for sample in bridges.ravel().tolist()
    ]
    return np.array(ends, np.int64).reshape(bridges.shape)


def _check_components(components: str, sizes: NDArray[np.int64], reach: str) -> None:
    """Refuse a graph whose spectrum cannot be taken.

    Parameters
    ----------
    components
        ``graph.components``.
    sizes : array, shape (components,)
        Samples of each component, the largest first.
    reach
        Key that decides how many neighbours a sample has, and its value: "neighbors.k = 12".
    """
    count, alone = len(sizes), int((sizes == 1).sum())
    key, given = reach.split(" = ")
    if sizes[0] == 1:
        raise InputError(
            f"{reach}: the graph has no edge, for none of {count} samples has a "
            f"neighbour. Raise {key}."
        )
    if components == "connect" and count > MOST_BRIDGED:
        raise InputError(
            f'graph.components = "connect": the graph has {count:,} connected components, {alone:,} of '
            f"them single samples, and the limit is {MOST_BRIDGED:,}. Raise {key}, which "
            f'is {given}, or set graph.components to "largest".'
        )
    if components != "each":
        return
    fix = f'Set graph.components to "connect" or "largest", or raise {key}.'
    if alone:
        # Of degree 0: D^-1/2 is infinite, and nothing but a null vector would belong to it.
        raise InputError(
            f'graph.components = "each": {alone} of {sizes.sum()} samples have no neighbour with '
            f"{reach}, and a component of one sample has no eigenvectors. {fix}"
        )
    if count > MOST_COMPONENTS:
        raise InputError(
            f'graph.components = "each": the graph has {count} connected components, the limit is '
            f"{MOST_COMPONENTS}. {fix}"
        )


def _write_small(
    workspace: Workspace, order: NDArray[np.int64], component: NDArray[np.int32]
) -> None:
    write_whole(workspace, "graph/sample", order, "row")
    write_whole(workspace, "graph/component", component, "sample")


def _cut(lists: FlatLists) -> list[Block]:
    """Cut the rows into blocks, shorter ones where lists are long or rows are hubs.

    A row can have as many entries as there are samples; cut by rows alone, a block of hubs could
    have as many as the whole graph.
    """
    size = lists.arriving()
    for start, stop in lists.tiles():
        size[start:stop] += np.diff(lists.read((start, stop))[0])
    step = block_rows(lists.mean_length)
    # Even lists come to two entries here for each one of theirs.
    starts = np.flatnonzero(kernels.cut_rows(size, step, 3 * step * lists.mean_length))
    ends = [*starts[1:], lists.rows]
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _write_blocks(
    context: Context, lists: FlatLists, bridges: NDArray[np.int64], spatial: FlatLists | None
) -> int:
    options = context.job.graph
    ranges = _cut(lists)
    context.map("bucket", partial(_bucket, lists, ranges), ranges, label="transposing the lists")
    degree = lists.folder / "degree"
    create_memmap(degree, (lists.rows,), np.float64)
    save_array(lists.folder / "scale.npy", lists.scale())
    bandwidth = 1.0 if options.bandwidth == "auto" else float(options.bandwidth)
    if options.bandwidth == "auto" and kernels.WEIGHTS[options.weights].squared:
        # A scene of duplicates alone has mean 0; any bandwidth gives weight 1 then.
        bandwidth = lists.mean_square() or 1.0
    # A bridge is an edge like any other, seen from both of its ends.
    source = np.concatenate([bridges[:, 0], bridges[:, 1]]).astype(lists.dtype)
    target = np.concatenate([bridges[:, 1], bridges[:, 0]]).astype(lists.dtype)
    extra = (source, target, np.full(len(source), np.nan, np.float32))
    store = partial(_store, context.workspace, spatial.folder if spatial else None)
    unite = partial(_unite, lists, ranges, options, bandwidth, extra, degree, store)
    entries = context.map("unite", unite, ranges, label="weighing edges")
    degrees = attach_memmap(degree, (lists.rows,), np.float64)
    if spatial and options.spatial:
        width = spatial_bandwidth(spatial, options.spatial)
        find = partial(spatial_factor, spatial, width, options.spatial.weight, degree)
        factor = context.map("factor", find, ["all"])[0]
        if not factor:
            context.reporter.note(
                "[graph.spatial] adds no edge: no two valid pixels are neighbours"
            )
        joined = lists.folder / "degree-joined"
        create_memmap(joined, (lists.rows,), np.float64)
        join = partial(join_rows, spatial, width, factor, joined, ranges, context.workspace)
        entries = context.map("join", join, ranges, label="edges in space")
        degrees = attach_memmap(joined, (lists.rows,), np.float64)
    write_whole(context.workspace, "graph/degree", degrees, "row")
    return int(sum(entries))


def _store(
    workspace: Workspace, waiting: Path | None, number: int, name: str, values: NDArray[Any]
) -> None:
    """Write a part of a block: for good, or in scratch where spatial weights are to be added."""
    if waiting is not None:
        save_array(spectral_file(waiting, number, name), values)
        return
    write_whole(workspace, f"graph/{number}/{name}", values)


def _bucket(lists: FlatLists, ranges: list[Block], block: Block) -> None:
    starts = np.array([first for first, _ in ranges] + [lists.rows])
    indptr, index, distance = lists.read(block)
    counts = np.zeros(len(ranges), np.int64)
    kernels.count_targets(index, starts, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    source = np.empty(offsets[-1], lists.dtype)
    target = np.empty_like(source)
    length = np.empty(offsets[-1], np.float32)
    kernels.bucket_edges(
        block[0], indptr, index, distance, starts, offsets[:-1].copy(), source, target, length
    )
    for name, values in (
        ("source", source), ("target", target), ("length", length), ("offsets", offsets),
    ):  # fmt: skip
        save_array(lists.folder / f"edges-{block[0]}-{name}.npy", values)


def _unite(
    lists: FlatLists,
    ranges: list[Block],
    options: GraphOptions,
    bandwidth: float,
    extra: tuple[NDArray[Any], ...],
    degree: Path,
    store: Callable[[int, str, NDArray[Any]], None],
    block: Block,
) -> int:
    start = block[0]
    number = ranges.index(block)
    indptr, columns, lengths = kernels.union_rows(
        start, *lists.read(block), *_arriving(lists, ranges, extra, block)
    )
    rule = kernels.WEIGHTS[options.weights]
    scale = np.load(lists.folder / "scale.npy", mmap_mode="r") if rule.scaled else None
    weights = rule.weigh(start, indptr, columns, lengths, scale, bandwidth)
    for name, values in (("indptr", indptr), ("indices", columns), ("data", weights)):
        store(number, name, values)
    write_range(degree, start, kernels.row_sums(indptr, weights))
    return len(columns)


def _arriving(
    lists: FlatLists, ranges: list[Block], extra: tuple[NDArray[Any], ...], block: Block
) -> list[NDArray[Any]]:
    """Return source, target and length of the edges that point into a block."""
    number = ranges.index(block)
    here = (extra[1] >= block[0]) & (extra[1] < block[1])
    pieces = [tuple(part[here] for part in extra)]
    for first, _ in ranges:
        offsets = np.load(lists.folder / f"edges-{first}-offsets.npy")
        piece = slice(int(offsets[number]), int(offsets[number + 1]))
        pieces.append(
            tuple(
                np.load(lists.folder / f"edges-{first}-{name}.npy", mmap_mode="r")[piece]
                for name in ("source", "target", "length")
            )
        )
    return [np.concatenate(part) for part in zip(*pieces, strict=True)]
