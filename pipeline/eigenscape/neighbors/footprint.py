"""Memory and disk of the neighbors stage; each method adds its own (`NeighborMethod.footprint`)."""

from dataclasses import replace

from eigenscape.base.blocks import sample_blocks
from eigenscape.base.footprint import Footprint
from eigenscape.neighbors.kernels.partition import (
    TREE_ROWS,
    TREE_SAMPLE,
    Leaves,
    part_size,
    split_levels,
)
from eigenscape.neighbors.kernels.tiles import QUERY_ROWS, TILE_ROWS
from eigenscape.neighbors.method import NeighborMethod, Table
from eigenscape.neighbors.search.forest import bundle_count
from eigenscape.neighbors.search.layout import routed_bytes
from eigenscape.store.arrays import chunk_rows, stored_bytes

_ROUTING = 8 * 2**20


def part_count(rows: int, leaves: Leaves) -> int:
    """Return the number of parts that so many samples are cut into."""
    return int(2 ** split_levels(rows, part_size(rows), leaves.overlap))


def copy_count(rows: int, leaves: Leaves) -> float:
    """Return how many samples all parts hold, those that several share counted in each."""
    levels = split_levels(rows, part_size(rows), leaves.overlap)
    return float(rows * (1 + leaves.overlap) ** levels)


def laid_out(method: NeighborMethod, table: Table) -> Footprint:
    """Add up what is held while samples are put in order and lists are written.

    tests/bench/performance/memory.py measures how well that holds.
    """
    k, n, row_bytes = method.k, table.rows, table.row_bytes
    leaves = method.leaves(n, table.columns, sparse=table.sparse)
    levels = split_levels(n, part_size(n), leaves.overlap)
    parts, copies = 2**levels, copy_count(n, leaves)
    part = copies / parts
    route_row = routed_bytes(row_bytes, leaves)
    route = sample_blocks(n, 1, table.budget, route_row)
    tree = 2.2 * row_bytes * min(n, TREE_SAMPLE, TREE_ROWS << levels) if levels else 0
    # Its pieces and the part, a leaf of the first split; lists, their numbers, sorted for the mail.
    search = part * (2 * row_bytes + 28 * leaves.k + 80) + 4 * QUERY_ROWS * leaves.size
    tile = (TILE_ROWS + QUERY_ROWS) * (3 * row_bytes + 4 * QUERY_ROWS)
    # What is read, and a copy of it.
    routed = (route[0][1] - route[0][0]) * 2 * row_bytes + _ROUTING
    # Lists of the samples, and the arrays that they become.
    writing = min(n, chunk_rows(n, 4 * k)) * k * 22
    each = max(routed, search, tile, writing)
    # Samples as they are routed, whose bundles go one after the other; what a search leaves of them.
    bundles = bundle_count(parts)
    runs, left = copies * (row_bytes + 12), n * (row_bytes + 8) + mail_bytes(leaves, n)
    scratch = max(runs + left / bundles, runs / bundles + left, left + _kept(table))
    tasks = 2 * len(route) + 2 * parts
    # Samples' hashes and their order; then ranks and the order.
    shared = 24.0 * n
    disk = 2 * stored_bytes(n, 4 * k) + 8 * n
    return Footprint(tasks, each, shared, disk, scratch, tree)


def with_lists(laid: Footprint, table: Table, size: float) -> Footprint:
    """Add the disk that lists take, once the features are in order and their copies by part are gone.

    Parameters
    ----------
    laid
        What it takes to put the samples in order: see `laid_out`.
    table
        The samples.
    size
        Bytes of the lists.
    """
    return replace(laid, scratch=max(laid.scratch, _kept(table) + size))


def mail_bytes(leaves: Leaves, rows: int) -> float:
    """Return the bytes of the lists that parts have for others."""
    return copy_count(rows, leaves) * (4 + 8 * leaves.k) if leaves.k else 0.0


def _kept(table: Table) -> float:
    """Return the bytes of the features in order, and of ranks and orders."""
    return table.rows * (table.row_bytes + 24)
