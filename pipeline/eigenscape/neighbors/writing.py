"""Conversion of neighbour lists from ranks to sample numbers, and their measures (recall, dimension)."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.neighbors.kernels.dimension import SEGMENT_ROWS, intrinsic_dimension, log_sums
from eigenscape.neighbors.kernels.metrics import Metric, lengths
from eigenscape.neighbors.method import InMemoryMethod, NearestMethod
from eigenscape.neighbors.search.exhaustive import radius_lists
from eigenscape.neighbors.search.landmarks import landmark_lists, write_landmarks
from eigenscape.neighbors.search.layout import Layout
from eigenscape.neighbors.search.reach import check_reach, sample_reach
from eigenscape.neighbors.search.recall import Truth
from eigenscape.neighbors.search.scratch import Lists
from eigenscape.store.arrays import chunk_rows, open_array, write_rows

if TYPE_CHECKING:
    from eigenscape.neighbors.methods.landmarks import Landmarks
    from eigenscape.neighbors.methods.radius import Radius

_DIMENSION_SEGMENTS = 256
"""Segments of samples, at most, whose lists the intrinsic dimension is estimated from."""


def write_nearest(context: Context, layout: Layout, method: NearestMethod) -> dict[str, Any]:
    """Write lists of k neighbours; measure their recall and the intrinsic dimension."""
    truth = Truth(context, layout.ranked, method.k, layout.folder)
    lists, version, steps = method.search(context, layout, truth)
    distance = _write_lists(context, layout, lists, version)
    measured = truth.measure(np.array(lists.index(version)[truth.queries]))
    if note := method.judge(measured):
        context.reporter.note(note)
    return {
        "k": method.k, **steps, **measured,
        "intrinsic_dimension": _measure_dimension(context, distance, layout.samples),
    }  # fmt: skip


def write_within(context: Context, layout: Layout, method: "Radius") -> dict[str, Any]:
    """Write the lists of all neighbours within a radius and their starts; return the summary."""
    assert method.radius is not None, "a radius is given"
    reach = sample_reach(context, layout.ranked, method.radius, method.metric)
    graph = context.job.graph
    bridged = graph.components == "connect" and graph.spatial is None
    check_reach(method.radius, reach, layout.ranked.rows, bridged=bridged)
    context.reporter.note(
        f"neighbors.radius = {method.radius}: about {reach.mean:.3g} neighbours each, and none for "
        f"{100 * reach.alone:.2g} % of the samples"
    )
    context.project_again(reach.mean)
    found = radius_lists(context, layout, method.radius, method.metric)
    if not found["entries"]:
        raise _nothing_within(context, layout, method)
    return {"radius": method.radius, **found}


def write_to_landmarks(context: Context, layout: Layout, method: "Landmarks") -> dict[str, Any]:
    """Write the lists of landmarks and the landmarks' sample numbers; return the summary."""
    lists, ranks = landmark_lists(context, layout, method.k, method.landmarks, method.seed)
    landmark = write_landmarks(context.workspace, layout, ranks, method.landmarks)
    _write_lists(context, layout, lists, 0, landmark)
    return {"k": method.k, "landmarks": len(landmark)}


def search_in_memory(context: Context, layout: Layout, method: InMemoryMethod) -> Lists:
    """Return the lists of a search in the memory of one task."""
    lists = Lists(context.workspace.folder("descent"), layout.ranked.rows, method.k, layout.dtype)
    lists.create(0)
    threads = context.executor.tasks_per_process
    work = partial(_search_all, layout, lists, method, threads)
    context.map("nn-descent", work, ["all"], label=method.method)
    return lists


def _search_all(layout: Layout, lists: Lists, method: InMemoryMethod, threads: int, _: str) -> None:
    features = layout.ranked.read(0, lists.rows)
    index, distance = method.find(features, lists.k, threads, lists.dtype)
    lists.write(0, 0, index, distance)


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


def _nothing_within(context: Context, layout: Layout, method: "Radius") -> InputError:
    squared = Truth(context, layout.ranked, 1, layout.folder).limit
    nearest = float(np.median(lengths(squared, method.metric)))
    return InputError(
        f"neighbors.radius = {method.radius}: no sample has another within it. Half of the samples "
        f"have their nearest at {nearest:.4g} or less; set a larger neighbors.radius."
    )


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
