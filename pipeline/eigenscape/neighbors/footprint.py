"""What the neighbors stage will need: tasks, memory and disk, from sizes alone."""

from dataclasses import dataclass

from eigenscape.base.blocks import sample_blocks
from eigenscape.job.options import NeighborOptions
from eigenscape.neighbors.kernels.partition import (
    TREE_ROWS,
    TREE_SAMPLE,
    Leaves,
    part_size,
    split_levels,
)
from eigenscape.neighbors.kernels.tiles import QUERY_ROWS, TILE_ROWS
from eigenscape.neighbors.search.bisection import rank_blocks
from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS, TASK_RANKS
from eigenscape.neighbors.search.landmarks import DRAWN
from eigenscape.neighbors.search.layout import routed_bytes
from eigenscape.store.arrays import chunk_rows

LIBRARY_BYTES = 64 * 2**20
"""scikit-learn, which only landmarks need; it stays for the stages after them."""

_ROUTING = 8 * 2**20


@dataclass(frozen=True)
class Footprint:
    """Needs of a stage.

    Attributes
    ----------
    tasks
        Number of tasks.
    each, shared, before
        Bytes of anonymous memory that one task takes, that are held beside the tasks, and that the
        tree takes before them.
    disk, scratch
        Bytes that it adds to the store, and that it needs until it ends.
    """

    tasks: int
    each: float
    shared: float
    disk: float
    scratch: float
    before: float


def footprint(
    options: NeighborOptions, leaves: Leaves, rows: int, row_bytes: float, budget: int
) -> Footprint:
    """Add up what the methods hold at a time; tests/bench/memory.py measures how well that holds.

    Parameters
    ----------
    options
        ``[neighbors]`` of the job.
    leaves
        As `plan_leaves` gives them.
    rows
        Number of samples.
    row_bytes
        Bytes of a feature vector.
    budget
        Bytes that a task may take.
    """
    k, n = options.k, rows
    levels = split_levels(n, part_size(n), leaves.overlap)
    parts, copies = 2**levels, n * (1 + leaves.overlap) ** levels
    part = copies / parts
    route_row = routed_bytes(row_bytes, leaves)
    route = sample_blocks(n, 1, budget, route_row)
    tree = 2.2 * row_bytes * min(n, TREE_SAMPLE, TREE_ROWS << levels) if levels else 0
    # Its pieces and the part, a leaf of the first split; lists, their numbers, sorted for the mail.
    search = part * (2 * row_bytes + 28 * leaves.k + 80) + 4 * QUERY_ROWS * leaves.size
    tile = (TILE_ROWS + QUERY_ROWS) * (3 * row_bytes + 4 * QUERY_ROWS)
    # What is read, and a copy of it.
    routed = (route[0][1] - route[0][0]) * 2 * row_bytes + _ROUTING
    # Lists of the samples, and the arrays that they become.
    writing = min(n, chunk_rows(n, 4 * k)) * k * 22
    each = max(routed, search, tile, writing)
    scratch = copies * (row_bytes + 12 + 8 * leaves.k) + n * (row_bytes + 24)
    tasks = 2 * len(route) + 2 * parts
    # Samples' hashes and their order; then ranks and the order.
    shared = 24.0 * n
    if options.method == "lanczos-bisection":
        ranges = rank_blocks(n)
        width = 40 * leaves.k
        each = max(each, n / parts * width, (ranges[0][1] - ranges[0][0]) * 14 * leaves.k)
        scratch += 18 * n * leaves.k
        tasks += parts + len(ranges) * (options.refine + 1)
    elif options.method == "pynndescent":
        # Features, its own copy, its trees and its candidate lists.
        shared = n * (3 * row_bytes + 60 * k + 600)
        scratch += 18 * n * k
    elif options.method == "exact":
        tasks += -(-n // TASK_RANKS)
        scratch += 18 * n * k
    elif options.method == "landmarks":
        # What k-means sees, its own copy and work.
        each = max(each, 3 * row_bytes * min(n, DRAWN * options.landmarks))
        tasks += 1 - (-n // TASK_RANKS)
        scratch += 18 * n * k
    else:
        # As many neighbours as there may be; what there are only the search tells.
        each = max(each, 100 * min(n, TASK_RANKS) * min(n, MOST_NEIGHBORS))
        tasks += 2 * -(-n // TASK_RANKS)
    return Footprint(tasks, each, shared, n * (8 * k + 8), scratch, tree)
