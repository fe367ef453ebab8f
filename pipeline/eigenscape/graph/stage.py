"""The graph stage: union symmetrisation, weights, degrees, components.

::

    reorder     sample blocks   lists from sample numbers to ranks in the locality order
    components  one pass        union-find over the lists; bridges, or the largest alone
    bucket      row blocks      every edge also filed under its other end
    unite       row blocks      own edges + filed edges -> CSR block, weights, degrees

The weight matrix is symmetric to the last bit: both copies of an edge are computed from the same
length by the same expression.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, create_memmap, open_array, save_array
from eigenscape.errors import InputError
from eigenscape.graph import kernels
from eigenscape.graph.bridges import find_bridges
from eigenscape.memory import ROW_TILE
from eigenscape.options import GraphOptions
from eigenscape.stage import Block, Context, blocks, sample_blocks
from eigenscape.workspace import Workspace

MOST_COMPONENTS = 1000
"""Components that "each" can solve on: every one adds a null vector that is stored."""

_BLOCK_ENTRIES = 2**21
_SCALE_FLOOR = 0.1
_TILE = 2**16


def block_rows(k: int) -> int:
    """Return the rows of a CSR block for lists of length `k`: a few tens of megabytes."""
    return max(1, _BLOCK_ENTRIES // k // ROW_TILE) * ROW_TILE


def graph_stage(context: Context) -> dict[str, Any]:
    """Write ``graph/<block>/{indptr,indices,data}``, ``graph/{sample,degree,component}``."""
    options = context.job.graph
    neighbors = context.open("neighbors/index")
    rows, k = neighbors.shape
    dtype = neighbors.dtype.type
    scratch = context.workspace.scratch("lists/x").parent
    for name, kind in (("index", dtype), ("distance", np.float32)):
        create_memmap(scratch / name, (rows, k), kind)
    rank = np.empty(rows, dtype)
    order = np.asarray(context.memmap("neighbors/order"))
    rank[order] = np.arange(rows, dtype=dtype)
    save_array(scratch / "rank.npy", rank)
    reorder = partial(
        _reorder, context.path("neighbors/index"), context.path("neighbors/distance"), scratch
    )
    chunk = neighbors.chunks[0]
    context.map("reorder", reorder, sample_blocks(rows, chunk, context.task_bytes, 40 * k))

    lists = _Lists(scratch, rows, k, dtype)
    component = _components(lists)[rank]
    count = int(component.max()) + 1
    bridges = np.empty((0, 2), np.int64)
    if options.components == "connect" and count > 1:
        bridges = find_bridges(context, component)
    elif options.components == "largest" and count > 1:
        order, lists = _keep_largest(order, component, lists)
    elif options.components == "each" and count > MOST_COMPONENTS:
        raise InputError(
            f'graph.components = "each": the graph has {count} connected components, the limit is '
            f'{MOST_COMPONENTS}. Set graph.components to "connect" or "largest", or raise neighbors.k.'
        )
    _write_small(context.workspace, order, component)
    entries = _write_blocks(context, lists, rank[bridges])
    sizes = np.bincount(component)
    return {
        "rows": lists.rows,
        "block_rows": block_rows(k),
        "entries": entries,
        "components": count,
        "largest_component": int(sizes.max()),
        "bridges": len(bridges),
        "connected": count == 1 or options.components != "each",
    }


class _Lists:
    """The neighbour lists by rank, mapped from scratch. Pickles as a path."""

    def __init__(self, scratch: Path, rows: int, k: int, dtype: type[np.signedinteger]) -> None:
        self.scratch, self.rows, self.k, self.dtype = scratch, rows, k, dtype

    def index(self, mode: str = "r") -> NDArray[np.signedinteger]:
        return attach_memmap(self.scratch / "index", (self.rows, self.k), self.dtype, mode)

    def distance(self, mode: str = "r") -> NDArray[np.float32]:
        return attach_memmap(self.scratch / "distance", (self.rows, self.k), np.float32, mode)

    def scale(self) -> NDArray[np.float32]:
        """Return the distance of each row to its last neighbour, kept away from 0.

        A sample with k duplicates has scale 0, which would cut it off from all others: scales are
        at least a tenth of the median of those that are not 0.
        """
        index, distance = self.index(), self.distance()
        scale = np.empty(self.rows, np.float32)
        for start in range(0, self.rows, _TILE):
            known = index[start : start + _TILE] >= 0
            scale[start : start + _TILE] = np.where(known, distance[start : start + _TILE], 0).max(
                axis=1
            )
        positive = scale[scale > 0]
        floor = _SCALE_FLOOR * float(np.median(positive)) if len(positive) else 1.0
        return np.maximum(scale, np.float32(floor))

    def mean_square(self) -> float:
        """Return the mean squared length of all list entries."""
        index, distance = self.index(), self.distance()
        total, count = 0.0, 0
        for start in range(0, self.rows, _TILE):
            known = index[start : start + _TILE] >= 0
            squares = distance[start : start + _TILE].astype(np.float64) ** 2
            total += float(squares[known].sum())
            count += int(known.sum())
        return total / max(count, 1)


def _reorder(index: str, distance: str, scratch: Path, block: Block) -> None:
    start, stop = block
    rank = np.load(scratch / "rank.npy", mmap_mode="r")
    lists = open_array(index)
    shape = lists.shape
    near = lists[start:stop]
    ranks = rank[start:stop]
    attach_memmap(scratch / "index", shape, lists.dtype, "r+")[ranks] = np.where(
        near >= 0, rank[near], -1
    )
    attach_memmap(scratch / "distance", shape, np.float32, "r+")[ranks] = open_array(distance)[
        start:stop
    ]


def _components(lists: _Lists) -> NDArray[np.int32]:
    """Return the component of each rank, the largest component first."""
    parent = np.arange(lists.rows, dtype=lists.dtype)
    kernels.unite(lists.index(), parent)
    kernels.flatten(parent)
    roots, component = np.unique(parent, return_inverse=True)
    by_size = np.argsort(-np.bincount(component, minlength=len(roots)), kind="stable")
    number = np.empty(len(roots), np.int32)
    number[by_size] = np.arange(len(roots), dtype=np.int32)
    return number[component]


def _keep_largest(
    order: NDArray[np.int64], component: NDArray[np.int32], lists: _Lists
) -> tuple[NDArray[np.int64], _Lists]:
    """Leave out all rows but those of component 0, whose lists name no others."""
    inside = component[order] == 0
    renumber = (np.cumsum(inside) - 1).astype(lists.dtype)
    target = lists.scratch / "largest"
    target.mkdir(exist_ok=True)
    kept = _Lists(target, int(inside.sum()), lists.k, lists.dtype)
    for name, kind in (("index", lists.dtype), ("distance", np.float32)):
        create_memmap(target / name, (kept.rows, kept.k), kind)
    index, distance = kept.index("r+"), kept.distance("r+")
    filled = 0
    for start in range(0, lists.rows, _TILE):
        rows = np.flatnonzero(inside[start : start + _TILE]) + start
        near = lists.index()[rows]
        index[filled : filled + len(rows)] = np.where(near >= 0, renumber[near], -1)
        distance[filled : filled + len(rows)] = lists.distance()[rows]
        filled += len(rows)
    return order[inside], kept


def _write_small(
    workspace: Workspace, order: NDArray[np.int64], component: NDArray[np.int32]
) -> None:
    for name, values, dim in (
        ("graph/sample", order, "row"),
        ("graph/component", component, "sample"),
    ):
        path = workspace.create_array(name, values.shape, values.dtype, whole=True, dims=(dim,))
        open_array(path)[...] = values


def _write_blocks(context: Context, lists: _Lists, bridges: NDArray[np.int64]) -> int:
    options = context.job.graph
    step = block_rows(lists.k)
    ranges = blocks(lists.rows, step)
    context.map("bucket", partial(_bucket, lists, step), ranges, label="transposing the lists")
    degree = lists.scratch / "degree"
    create_memmap(degree, (lists.rows,), np.float64)
    save_array(lists.scratch / "scale.npy", lists.scale())
    bandwidth = None
    if options.weights == "heat":
        # A scene of duplicates alone has mean 0; any bandwidth gives weight 1 then.
        auto = options.bandwidth == "auto"
        bandwidth = (lists.mean_square() or 1.0) if auto else float(options.bandwidth)
    # A bridge is an edge like any other, seen from both of its ends.
    source = np.concatenate([bridges[:, 0], bridges[:, 1]]).astype(lists.dtype)
    target = np.concatenate([bridges[:, 1], bridges[:, 0]]).astype(lists.dtype)
    extra = (source, target, np.full(len(source), np.nan, np.float32))
    unite = partial(_unite, lists, ranges, options, bandwidth, extra, degree, context.workspace)
    entries = context.map("unite", unite, ranges, label="weighing edges")
    path = context.workspace.create_array(
        "graph/degree", (lists.rows,), np.float64, whole=True, dims=("row",)
    )
    open_array(path)[...] = attach_memmap(degree, (lists.rows,), np.float64)
    return int(sum(entries))


def _bucket(lists: _Lists, step: int, block: Block) -> None:
    start, stop = block
    index, distance = lists.index()[start:stop], lists.distance()[start:stop]
    counts = np.zeros(-(-lists.rows // step), np.int64)
    kernels.count_targets(index, step, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    source = np.empty(offsets[-1], lists.dtype)
    target = np.empty_like(source)
    length = np.empty(offsets[-1], np.float32)
    kernels.bucket_edges(index, distance, start, step, offsets[:-1].copy(), source, target, length)
    for name, values in (
        ("source", source), ("target", target), ("length", length), ("offsets", offsets),
    ):  # fmt: skip
        save_array(lists.scratch / f"edges-{start}-{name}.npy", values)


def _unite(
    lists: _Lists,
    ranges: list[Block],
    options: GraphOptions,
    bandwidth: float | None,
    extra: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    degree: Path,
    workspace: Workspace,
    block: Block,
) -> int:
    start, stop = block
    number = ranges.index(block)
    here = (extra[1] >= start) & (extra[1] < stop)
    pieces = [tuple(part[here] for part in extra)]
    for first, _ in ranges:
        offsets = np.load(lists.scratch / f"edges-{first}-offsets.npy")
        piece = slice(int(offsets[number]), int(offsets[number + 1]))
        pieces.append(
            tuple(
                np.load(lists.scratch / f"edges-{first}-{name}.npy", mmap_mode="r")[piece]
                for name in ("source", "target", "length")
            )
        )
    source, target, length = (np.concatenate(part) for part in zip(*pieces, strict=True))
    indptr, columns, lengths = kernels.union_rows(
        start, lists.index()[start:stop], lists.distance()[start:stop], source, target, length
    )
    weights = np.ones(len(columns), np.float32)
    if options.weights == "self-tuning":
        scale = np.load(lists.scratch / "scale.npy", mmap_mode="r")
        kernels.self_tuning_weights(start, indptr, columns, lengths, scale, weights)
    elif options.weights == "heat":
        kernels.heat_weights(lengths, bandwidth, weights)
    for name, values in (("indptr", indptr), ("indices", columns), ("data", weights)):
        path = workspace.create_array(
            f"graph/{number}/{name}", values.shape, values.dtype, whole=True
        )
        open_array(path)[...] = values
    sums = np.add.reduceat(weights.astype(np.float64), indptr[:-1])
    attach_memmap(degree, (lists.rows,), np.float64, "r+")[start:stop] = sums
    return len(columns)
