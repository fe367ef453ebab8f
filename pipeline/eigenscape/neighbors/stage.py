"""The neighbors stage: samples to neighbour lists, by the method of the job.

::

    layout     samples by place, features in that order      (eigenscape.neighbors.search.layout)
    lists      of ranks in that order, by one of
                 bisection     search parts, merge, refine   (eigenscape.neighbors.search.bisection)
                 exhaustive    every tile against every other, or all pairs within a radius
                 descent       pynndescent, in memory
                 landmarks     every sample against a few  (eigenscape.neighbors.search.landmarks)
    write      sample blocks   ranks back to sample numbers, copies after their representatives

Between layout and write everything is a raw file in scratch, indexed by part or by rank, so that
tasks read and write contiguous ranges.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.job.options import NeighborOptions
from eigenscape.neighbors.kernels.descent import descend
from eigenscape.neighbors.kernels.dimension import SEGMENT_ROWS, intrinsic_dimension, log_sums
from eigenscape.neighbors.kernels.metrics import Metric, lengths
from eigenscape.neighbors.kernels.partition import Leaves
from eigenscape.neighbors.search.bisection import bisect_lists, list_length
from eigenscape.neighbors.search.duplicates import most_equal
from eigenscape.neighbors.search.exhaustive import exact_lists, radius_lists
from eigenscape.neighbors.search.landmarks import landmark_lists, write_landmarks
from eigenscape.neighbors.search.layout import Layout, lay_out
from eigenscape.neighbors.search.reach import check_reach, sample_reach
from eigenscape.neighbors.search.recall import Truth
from eigenscape.neighbors.search.scratch import Lists
from eigenscape.neighbors.search.searchers import choose_searcher
from eigenscape.store.arrays import chunk_rows, open_array, write_rows
from eigenscape.store.rows import Rows

_DIMENSION_SEGMENTS = 256
"""Segments of samples, at most, whose lists the intrinsic dimension is estimated from."""


def neighbors_stage(context: Context) -> dict[str, Any]:
    """Write ``neighbors/index``, ``neighbors/distance`` (sample, k) and ``neighbors/order``.

    With ``method = "radius"`` index and distance are one-dimensional, and ``neighbors/indptr``
    (sample + 1) holds the start of the list of each sample. With ``method = "landmarks"`` lists name
    landmarks only, and ``neighbors/landmark`` holds their samples.
    """
    options = context.job.neighbors
    source = Rows(context.path("features/values"), unit=options.metric == "angle")
    leaves = plan_leaves(options, *source.shape, sparse=source.sparse)
    by_radius = options.method == "radius"
    least = 0 if by_radius else options.k
    equal = most_equal(options.k)
    layout = lay_out(context, source, leaves, least=least, most_equal=equal)
    order = context.workspace.create_array(
        "neighbors/order", (layout.samples,), np.int64, whole=True, dims=("rank",)
    )
    write_rows(order, 0, layout.locality_order())
    summary = {
        "method": options.method,
        "metric": options.metric,
        **({"searcher": leaves.searcher} if leaves.k else {}),
        "parts": layout.tree.parts,
        "copies": layout.samples - layout.ranked.rows,
    }
    if options.radius is not None:
        reach = sample_reach(context, layout.ranked)
        graph = context.job.graph
        bridged = graph.components == "connect" and graph.spatial is None
        check_reach(options, reach, layout.ranked.rows, bridged=bridged)
        context.reporter.note(
            f"neighbors.radius = {options.radius}: about {reach.mean:.3g} neighbours each, and none for "
            f"{100 * reach.alone:.2g} % of the samples"
        )
        context.foresee(reach.mean)
        found = radius_lists(context, layout, options.radius, options.metric)
        if not found["entries"]:
            raise _nothing_within(context, layout, options)
        return {**summary, "radius": options.radius, **found}
    if options.method == "landmarks":
        lists, ranks = landmark_lists(context, layout, options)
        landmark = write_landmarks(context.workspace, layout, ranks, options.landmarks)
        _write_lists(context, layout, lists, 0, landmark)
        return {**summary, "k": options.k, "landmarks": len(landmark)}
    truth = Truth(context, layout.ranked, options.k, layout.folder)
    version = 0
    steps: dict[str, Any] = {}
    if options.method == "lanczos-bisection":
        lists, version, steps = bisect_lists(context, layout, truth)
    elif options.method == "exact":
        lists = exact_lists(context, layout, options.k)
    else:
        lists = _descend(context, layout, options.k)
    distance = _write_lists(context, layout, lists, version)
    measured = truth.measure(np.array(lists.index(version)[truth.queries]))
    if options.recall is not None and measured["recall"] < options.recall:
        context.reporter.note(
            f"neighbors.recall = {options.recall}: {measured['recall']:.4f} was reached; raise "
            'neighbors.overlap or leaf_size, or use neighbors.method = "exact"'
        )
    return {
        **summary, "k": options.k, **steps, **measured,
        "intrinsic_dimension": _measure_dimension(context, distance, layout.samples),
    }  # fmt: skip


def _measure_dimension(context: Context, distance: str, rows: int) -> dict[str, Any]:
    """Return the intrinsic dimension by segments of samples, spread evenly over all of them."""
    stride = -(-rows // (SEGMENT_ROWS * _DIMENSION_SEGMENTS))
    work = partial(_sum_segments, distance, stride)
    ranges = blocks(rows, open_array(distance).chunks[0])
    sums = context.map("dimension", work, ranges, label="intrinsic dimension", keep=False)
    return intrinsic_dimension(np.concatenate(sums)).to_json()


def _sum_segments(distance: str, stride: int, block: Block) -> NDArray[np.float64]:
    row = np.arange(*block)
    return log_sums(open_array(distance)[slice(*block)][row // SEGMENT_ROWS % stride == 0])


def _nothing_within(context: Context, layout: Layout, options: NeighborOptions) -> InputError:
    squared = Truth(context, layout.ranked, 1, layout.folder).limit
    nearest = float(np.median(lengths(squared, options.metric)))
    return InputError(
        f"neighbors.radius = {options.radius}: no sample has another within it. Half of the samples "
        f"have their nearest at {nearest:.4g} or less; set a larger neighbors.radius."
    )


def plan_leaves(
    options: NeighborOptions, rows: int, columns: int, *, sparse: bool = False
) -> Leaves:
    """Return how the parts of the first tree are cut and searched; see `choose_searcher`.

    Without lists to find on the way only the order is wanted, and that needs no overlap.
    """
    if options.method != "lanczos-bisection":
        return Leaves(0, 0.0, options.leaf_size)
    k = list_length(options.k)
    searcher, _ = choose_searcher(options, rows, columns, sparse=sparse)
    return Leaves(k, options.overlap, max(options.leaf_size, 4 * k), searcher=searcher)


def _descend(context: Context, layout: Layout, k: int) -> Lists:
    lists = Lists(context.workspace.folder("descent"), layout.ranked.rows, k, layout.dtype)
    lists.create(0)
    work = partial(_descend_all, layout, lists, context.executor.tasks_per_process)
    context.map("nn-descent", work, ["all"], label="NN-descent")
    return lists


def _descend_all(layout: Layout, lists: Lists, threads: int, _: str) -> None:
    features = layout.ranked.read(0, lists.rows)
    index, distance = descend(features, lists.k, threads, lists.dtype)
    lists.write(0, 0, index, distance)


def _write_lists(
    context: Context,
    layout: Layout,
    lists: Lists,
    version: int,
    landmark: NDArray[np.int64] | None = None,
) -> str:
    options, rows = context.job.neighbors, layout.samples
    shape, dims = (rows, options.k), ("sample", "neighbor")
    index = context.workspace.create_array("neighbors/index", shape, layout.dtype, dims=dims)
    distance = context.workspace.create_array("neighbors/distance", shape, np.float32, dims=dims)
    work = partial(_write_block, layout, lists, version, options.metric, index, distance, landmark)
    chunk = chunk_rows(rows, 4 * options.k)
    ranges = sample_blocks(rows, chunk, context.task_bytes, 40 * lists.k)
    context.map("write", work, ranges, label="writing lists")
    return distance


def _write_block(
    layout: Layout,
    lists: Lists,
    version: int,
    metric: Metric,
    index: str,
    distance: str,
    landmark: NDArray[np.int64] | None,
    block: Block,
) -> None:
    start, stop = block
    k = open_array(index).shape[1]
    ranks = layout.rank()[start:stop]
    near = lists.index(version)[:, :k][ranks]
    squared = lists.distance(version)[:, :k][ranks]
    # Ties among squared distances were broken by rank; sample numbers must break them here.
    samples: NDArray[np.signedinteger] = layout.order()[near].astype(layout.dtype)
    by = np.lexsort((samples, squared), axis=1)
    samples = np.take_along_axis(samples, by, axis=1)
    values = lengths(np.take_along_axis(squared, by, axis=1), metric)
    copies, represented = layout.copies()
    here = slice(*np.searchsorted(copies, [start, stop]))
    rows, front = copies[here] - start, represented[here]
    if landmark is not None:
        # Lists name landmarks only: a copy of any other sample has the same list as that one.
        named = np.isin(front, landmark)
        rows, front = rows[named], front[named]
    if len(rows):
        samples[rows] = np.column_stack([front, samples[rows, :-1]])
        values[rows] = np.column_stack([np.zeros(len(rows), np.float32), values[rows, :-1]])
    write_rows(index, start, samples)
    write_rows(distance, start, values)
