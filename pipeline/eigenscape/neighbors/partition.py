"""Recursive Lanczos bisection with overlap (Chen, Fang, Saad 2009; Halevy 2011, chapter 5).

A set is split along its principal direction at the quantiles (1 - a) / 2 and (1 + a) / 2 of the
projection, so that a share a of it goes to both halves. Two levels of the same idea::

    all samples --split tree, from a sample of them--> parts of about 2**16  (one routing pass)
    part        --exact quantiles, in memory---------> leaves of leaf_size   (one task)

Every sample has one *home* among the parts (its side of every median), and one home leaf in it;
the leaves in depth-first order give the locality order of the samples.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.neighbors import kernels

PART_SIZE = 2**16
"""Samples in a part, at most, as planned: a task's worth of work in about 50 MB."""

TREE_SAMPLE = 2**18
"""Samples that the split tree is built from."""

_DIRECTION_ROWS = 4096
_LANCZOS_STEPS = 12


@dataclass(frozen=True)
class SplitTree:
    """A complete binary tree of splits, nodes in heap order.

    Attributes
    ----------
    levels
        Depth; there are ``2**levels`` parts.
    directions : array, shape (nodes, d), float32
    bounds, ties : array, shape (nodes, 3)
        Projection at the lower, middle and upper quantile, and what breaks a tie there.
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


def principal_direction(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the unit vector along which centred rows vary most, by a few Lanczos steps.

    Parameters
    ----------
    rows : array, shape (rows, d)
        At most 4096 of them, evenly spaced, are looked at.

    Returns
    -------
    array, shape (d,), float32
        Its largest entry is positive. Rows that are all equal give the first axis.
    """
    step = max(1, len(rows) // _DIRECTION_ROWS)
    centred = rows[::step][:_DIRECTION_ROWS].astype(np.float64)
    centred -= centred.mean(axis=0)
    width = rows.shape[1]
    # Starting from the longest row needs no random numbers and is never orthogonal to the data.
    start = centred[np.einsum("ij,ij->i", centred, centred).argmax()]
    length = np.linalg.norm(start)
    if length == 0:
        return np.asarray(np.eye(1, width)[0], np.float32)
    steps = min(_LANCZOS_STEPS, width)
    basis = np.zeros((steps, width))
    diagonal, off = np.zeros(steps), np.zeros(steps)
    vector = start / length
    for j in range(steps):
        basis[j] = vector
        image = centred.T @ (centred @ vector)
        diagonal[j] = image @ vector
        # Against all earlier vectors, twice: Lanczos loses orthogonality at once otherwise.
        for _ in range(2):
            image -= basis[: j + 1].T @ (basis[: j + 1] @ image)
        off[j] = np.linalg.norm(image)
        if off[j] <= 1e-10 * abs(diagonal[0]):
            steps = j + 1
            break
        vector = image / off[j]
    tridiagonal = np.diag(diagonal[:steps]) + np.diag(off[: steps - 1], 1)
    tridiagonal += np.diag(off[: steps - 1], -1)
    direction = basis[:steps].T @ np.linalg.eigh(tridiagonal)[1][:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])
    return np.asarray(direction / np.linalg.norm(direction), np.float32)


def build_tree(
    features: NDArray[np.float32], samples: NDArray[np.int64], levels: int, overlap: float
) -> SplitTree:
    """Build a split tree from some of the samples.

    Parameters
    ----------
    features : array, shape (m, d)
    samples : array, shape (m,)
        Their numbers, which break ties: equal samples are split evenly too.
    levels
        Depth of the tree.
    overlap
        Share a of a set that goes to both halves.
    """
    inner = (1 << levels) - 1
    tree = SplitTree(
        levels,
        np.zeros((inner, features.shape[1]), np.float32),
        np.zeros((inner, 3), np.float32),
        np.zeros((inner, 3)),
    )
    hashes = np.array([kernels.hash_tie(sample) for sample in samples])
    members = {0: np.arange(len(features))}
    for node in range(inner):
        here = members.pop(node)
        part = features[here]
        tree.directions[node] = principal_direction(part)
        values = kernels.project_rows(part, tree.directions[node])
        order = np.lexsort((hashes[here], values))
        lower, middle, upper = _quantiles(len(here), overlap)
        at = order[np.minimum([lower, middle, upper], len(here) - 1)]
        tree.bounds[node], tree.ties[node] = values[at], hashes[here[at]]
        members[2 * node + 1] = here[order[: max(upper, 1)]]
        members[2 * node + 2] = here[order[min(lower, len(here) - 1) :]]
    return tree


def route(
    features: NDArray[np.float32], first: int, tree: SplitTree
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Send samples down a split tree.

    Parameters
    ----------
    features : array, shape (rows, d)
    first
        Number of the first sample; the others follow.

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
    room = 2 * len(features)
    while True:
        counts[:] = 0
        rows, parts, homes = (np.empty(room, np.int32) for _ in range(3))
        copies = kernels.route_rows(
            features, first, tree.directions, tree.bounds, tree.ties, tree.levels,
            counts, rows, parts, homes,
        )  # fmt: skip
        if copies <= room:
            break
        room = copies
    order = np.argsort(parts[:copies], kind="stable")
    return rows[order], homes[order], np.concatenate([[0], np.cumsum(counts)])


def search_part(
    features: NDArray[np.float32],
    samples: NDArray[np.int64],
    k: int,
    overlap: float,
    leaf_size: int,
    index_type: type[np.signedinteger],
) -> tuple[NDArray[np.signedinteger], NDArray[np.float32], NDArray[np.int32]]:
    """Find the neighbours of every sample of a part within the leaves of the part.

    Parameters
    ----------
    features : array, shape (m, d)
    samples : array, shape (m,)
        Their numbers.
    k
        Length of a list; 0 finds the locality order alone.
    overlap, leaf_size
        As in the job file.
    index_type
        Integer type that holds every sample's number.

    Returns
    -------
    index : array, shape (m, k)
        Numbers of the neighbours, -1 where there are fewer.
    distance : array, shape (m, k), float32
        Squared distances, computed by differences.
    place : array of int32, shape (m,)
        Rank of each sample in the locality order of the part.
    """
    index = np.full((len(features), k), -1, index_type)
    distance = np.full((len(features), k), np.inf, np.float32)
    place = np.empty(len(features), np.int32)
    local = np.arange(len(features), dtype=np.int32)
    placed = 0
    levels = split_levels(len(features), leaf_size, overlap)
    # Depth first, left half on top; a member is at home where it stands on its side of all medians.
    stack = [(local, np.ones(len(features), np.bool_), 0)]
    while stack:
        members, home, depth = stack.pop()
        if depth < levels:
            stack += [(*half, depth + 1) for half in _halves(features, members, home, overlap)]
            continue
        residents = members[home]
        place[residents] = placed + np.arange(len(residents), dtype=np.int32)
        placed += len(residents)
        if k:
            _search_leaf(features, members, index, distance)
    if k:
        kernels.exact_distances(features, features, samples, index, distance)
    return index, distance, place


def _halves(
    features: NDArray[np.float32],
    members: NDArray[np.int32],
    home: NDArray[np.bool_],
    overlap: float,
) -> tuple[tuple[NDArray[np.int32], NDArray[np.bool_]], ...]:
    """Split a set; the right half first, so that a stack yields the left one first."""
    part = features[members]
    values = kernels.project_rows(part, principal_direction(part))
    # Members come in ascending order of their numbers, which therefore break ties.
    order = np.argsort(values, kind="stable")
    lower, middle, upper = _quantiles(len(members), overlap)
    left_home = np.zeros(len(members), np.bool_)
    left_home[order[:middle]] = True
    left, right = np.sort(order[:upper]), np.sort(order[lower:])
    return (
        (members[right], home[right] & ~left_home[right]),
        (members[left], home[left] & left_home[left]),
    )


def _quantiles(rows: int, overlap: float) -> tuple[int, int, int]:
    shared = round(overlap * rows)
    lower = (rows - shared) // 2
    return lower, rows // 2, lower + shared


def _search_leaf(
    features: NDArray[np.float32],
    members: NDArray[np.int32],
    index: NDArray[np.signedinteger],
    distance: NDArray[np.float32],
) -> None:
    leaf = features[members]
    # About the leaf's own mean, |x|^2 - 2 x y + |y|^2 cancels least.
    leaf = leaf - leaf.mean(axis=0, dtype=np.float64).astype(np.float32)
    norms = np.einsum("ij,ij->i", leaf, leaf)
    kernels.push_products(
        features, features, leaf @ leaf.T, norms, norms, members, members, members, index, distance
    )
