"""Recursive Lanczos bisection with overlap (Chen, Fang, Saad 2009; Halevy 2011, chapter 5).

A set is split along its principal direction at the quantiles (1 - a) / 2 and (1 + a) / 2 of the
projection, so that a share a of it goes to both halves. Two levels of the same idea::

    all samples --split tree, from some of them--> parts of at most 2**16  (one routing pass)
    part        --exact quantiles, in memory-----> leaves of leaf_size     (one task)

Every sample has one *home* among the parts (its side of every median), and one home leaf in it;
the leaves in depth-first order give the locality order of the samples.

Further trees over the same samples (`turn` > 0) split along random directions, drawn with the
covariance of the set: what one tree parts, another may keep together.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors, as_parts
from eigenscape.neighbors.kernels import lists as kernels
from eigenscape.neighbors.kernels import routing
from eigenscape.neighbors.kernels.descent import descend
from eigenscape.neighbors.kernels.directions import principal_direction
from eigenscape.neighbors.kernels.tiles import centred, products

MOST_PART = 16 * ROW_TILE
"""Samples in a part, at most, as planned: a task's worth of work in about 50 MB."""

LEAST_PART = 2 * ROW_TILE
"""Samples in a part of a small set, so that several threads have something to do."""

TREE_SAMPLE = 2**18
"""Samples that the split tree is built from, at most."""

TREE_ROWS = 2**12
"""Of these, as many for each part: its quantiles are then off by 1 or 2 % of its size."""

_QUERY_ROWS = 256


@dataclass(frozen=True)
class SplitTree:
    """A complete binary tree of splits, nodes in heap order.

    Attributes
    ----------
    levels
        Depth; there are ``2**levels`` parts.
    directions : array, shape (nodes, d), float32
    bounds, ties : array, shape (nodes, 3)
        Projection at the lower, middle and upper quantile, and the number that breaks a tie there.
    """

    levels: int
    directions: NDArray[np.float32]
    bounds: NDArray[np.float32]
    ties: NDArray[np.float64]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return 1 << self.levels


def split_levels(rows: int, size: int, overlap: float) -> int:
    """Return how many times `rows` must be split to reach sets of at most `size`.

    A split leaves a share (1 + a) / 2 in each half, hence the cost exponent
    1 / (1 - log2(1 + a)) of the thesis.

    Examples
    --------
    >>> split_levels(8000, 1000, 0.0), split_levels(8000, 1000, 0.2)
    (3, 5)
    """
    if rows <= size:
        return 0
    return math.ceil(math.log(rows / size) / math.log(2 / (1 + overlap)) - 1e-9)


def part_size(rows: int) -> int:
    """Return how many samples a part should hold: it depends on the set alone."""
    return min(MOST_PART, max(LEAST_PART, -(-rows // 8)))


def build_tree(
    features: Vectors, samples: NDArray[np.int64], levels: int, overlap: float, turn: int = 0
) -> SplitTree:
    """Build a split tree from some of the samples.

    Parameters
    ----------
    features : array or csr_array, shape (m, d)
    samples : array, shape (m,)
        Their numbers, which break ties: equal samples are split evenly too.
    levels
        Depth of the tree.
    overlap
        Share a of a set that goes to both halves.
    turn
        Number of the tree.
    """
    inner = (1 << levels) - 1
    count, width = features.shape
    tree = SplitTree(
        levels,
        np.zeros((inner, width), np.float32),
        np.zeros((inner, 3), np.float32),
        np.zeros((inner, 3)),
    )
    parts = as_parts(features)
    hashes = routing.hash_ties(samples)
    members = {0: np.arange(count)}
    for node in range(inner):
        here = members.pop(node)
        tree.directions[node] = principal_direction(features[here], _seed(turn, node))
        values = routing.project_rows(parts, here, tree.directions[node])
        order = np.lexsort((hashes[here], values))
        lower, middle, upper = _quantiles(len(here), overlap)
        at = order[np.minimum([lower, middle, upper], len(here) - 1)]
        tree.bounds[node], tree.ties[node] = values[at], hashes[here[at]]
        members[2 * node + 1] = here[order[: max(upper, 1)]]
        members[2 * node + 2] = here[order[min(lower, len(here) - 1) :]]
    return tree


def route(
    features: Vectors, samples: NDArray[np.int64], tree: SplitTree
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Send samples down a split tree.

    Parameters
    ----------
    features : array or csr_array, shape (rows, d)
    samples : array, shape (rows,)
        Their numbers.
    tree
        Directions and thresholds of the splits.

    Returns
    -------
    rows : array of int32, shape (copies,)
        Row of each copy, sorted by part and then by row.
    home : array of int32, shape (copies,)
        Home part of each copy's sample.
    offsets : array, shape (parts + 1,)
        Where each part's copies begin.
    """
    counts = np.zeros(tree.parts, np.int64)
    room = 2 * len(samples)
    while True:
        counts[:] = 0
        rows, parts, homes = (np.empty(room, np.int32) for _ in range(3))
        copies = routing.route_rows(
            as_parts(features), samples, tree.directions, tree.bounds, tree.ties, tree.levels,
            counts, rows, parts, homes,
        )  # fmt: skip
        if copies <= room:
            break
        room = copies
    order = np.argsort(parts[:copies], kind="stable")
    return rows[order], homes[order], np.concatenate([[0], np.cumsum(counts)])


@dataclass(frozen=True)
class Leaves:
    """How a part is cut into leaves and searched.

    Attributes
    ----------
    k
        Length of a list; 0 finds the locality order alone.
    overlap, size
        Share of the samples that a split gives to both halves; samples in a leaf.
    turn
        Number of the tree.
    searcher
        "blas": leaves, all pairs of each; "pynndescent": NN-descent on the whole part.
    """

    k: int
    overlap: float
    size: int
    turn: int = 0
    searcher: str = "blas"


def search_part(
    features: Vectors, samples: NDArray[np.signedinteger], leaves: Leaves
) -> tuple[NDArray[np.signedinteger], NDArray[np.float32], NDArray[np.int32]]:
    """Find the neighbours of every sample of a part within the leaves of the part.

    Parameters
    ----------
    features : array or csr_array, shape (m, d)
    samples : array, shape (m,)
        Their numbers, ascending; the lists have the same type.
    leaves
        How to cut and search.

    Returns
    -------
    index : array, shape (m, k)
        Numbers of the neighbours, -1 where there are fewer.
    distance : array, shape (m, k), float32
        Squared distances, computed by differences.
    place : array of int32, shape (m,)
        Rank of each sample in the locality order of the part.
    """
    count = len(samples)
    # In rows of the part until the end: ties go by row there, which is by number as well.
    index = np.full((count, leaves.k), -1, np.int32)
    distance = np.full((count, leaves.k), np.inf, np.float32)
    place = np.empty(count, np.int32)
    placed = 0
    levels = split_levels(count, leaves.size, leaves.overlap)
    # Depth first, left half on top; a member is at home where it stands on its side of all medians.
    stack = [(np.arange(count, dtype=np.int32), np.ones(count, np.bool_), 0, 0)]
    while stack:
        members, home, depth, node = stack.pop()
        part = features[members]
        if depth < levels:
            seed = _seed(leaves.turn, (int(samples[0]) << 20) + node)
            halves = _halves(part, principal_direction(part, seed), leaves.overlap)
            for right, (rows, own) in zip((2, 1), halves, strict=True):
                stack.append((members[rows], home[rows] & own, depth + 1, 2 * node + right))
            continue
        residents = members[home]
        place[residents] = placed + np.arange(len(residents), dtype=np.int32)
        placed += len(residents)
        if leaves.k and leaves.searcher == "blas":
            _search_leaf(part, members, index, distance)
    if leaves.k and leaves.searcher == "pynndescent" and count > 1:
        found, squared = descend(features, min(leaves.k, count - 1), 1, "int32")
        index[:, : found.shape[1]], distance[:, : found.shape[1]] = found, squared
    return np.where(index >= 0, samples[index], -1).astype(samples.dtype), distance, place


def _seed(turn: int, node: int) -> int:
    return turn * 2**61 + node if turn else 0


def _halves(
    part: Vectors, direction: NDArray[np.float32], overlap: float
) -> tuple[tuple[NDArray[np.intp], NDArray[np.bool_]], ...]:
    """Return rows of each half, and which of them are at home; the right half first."""
    count = part.shape[0]
    values = routing.project_rows(as_parts(part), np.arange(count), direction)
    # Rows come in ascending order of their numbers, which therefore break ties.
    order = np.argsort(values, kind="stable")
    lower, middle, upper = _quantiles(count, overlap)
    left_home = np.zeros(count, np.bool_)
    left_home[order[:middle]] = True
    left, right = np.sort(order[:upper]), np.sort(order[lower:])
    return (right, ~left_home[right]), (left, left_home[left])


def _quantiles(rows: int, overlap: float) -> tuple[int, int, int]:
    shared = round(overlap * rows)
    lower = (rows - shared) // 2
    return lower, rows // 2, lower + shared


def _search_leaf(
    leaf: Vectors,
    members: NDArray[np.int32],
    index: NDArray[np.int32],
    distance: NDArray[np.float32],
) -> None:
    about_mean, norms = centred(leaf)
    numbers = members.astype(np.int64)  # as tiles have them: one type for the compiler
    # A copy of its own: with both factors the same, BLAS would take a slower way at these sizes.
    other = about_mean.copy()
    for start in range(0, len(members), _QUERY_ROWS):
        here = slice(start, start + _QUERY_ROWS)
        kernels.push_products(
            as_parts(leaf[here]), as_parts(leaf), products(about_mean[here], other),
            norms[here], norms, numbers[here], numbers, numbers[here], index, distance,
        )  # fmt: skip
