"""Random forests: decision trees on draws of the training samples, each of which votes for a class.

A tree is grown until its leaves hold one class each. Its node compares one column, of the square root of
their number that are drawn at random, with the threshold that separates the classes best (Breiman 2001),
or of thresholds drawn at random, one for each of these columns, with the best of them; then every tree
learns from all samples (extremely randomised trees: Geurts, Ernst, Wehenkel 2006). scikit-learn grows the
trees, one by one: its forests change the filters of warnings of all threads for each tree, and so warn by
mistake where two are grown at a time. What is kept are the nodes as arrays: no pickled objects, and the same
votes in any block.
"""

from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse
from numba import njit
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from eigenscape.base.vectors import Vectors

F4 = NDArray[np.float32]

_GROUP = 5
"""Trees whose seeds follow from one draw."""

_TILE_ROWS = 512
_TILE_ENTRIES = 2**21
"""Of sparse rows that are dense at a time."""

_GROWERS = {"best": DecisionTreeClassifier, "random": ExtraTreeClassifier}


@dataclass(frozen=True)
class Forest:
    """Trees, node by node. The arrays are read-only.

    Attributes
    ----------
    roots : array of int64, shape (trees,)
        Node at which each tree begins.
    column : array of int32, shape (nodes,)
        That a node compares; of a leaf -1 less its class.
    threshold : array of float32, shape (nodes,)
        Rows with a larger value go on to the second child, all others to the first.
    children : array of int32, shape (nodes, 2)
    """

    roots: NDArray[np.int64]
    column: NDArray[np.int32]
    threshold: F4
    children: NDArray[np.int32]

    def __post_init__(self) -> None:
        for part in fields(self):
            # As they come from a file: what is compiled for one serves the other.
            getattr(self, part.name).setflags(write=False)


def grow(
    rows: Vectors, classes: NDArray[np.intp], trees: int, thresholds: str, rng: np.random.Generator
) -> Forest:
    """Return the forest of some training samples.

    Parameters
    ----------
    rows : array or csr_array, shape (n, d)
        Features, finite.
    classes : array of int, shape (n,)
        At least one class.
    trees
        How many.
    thresholds
        "best" or "random": see the module.
    rng
        Source of the draws.
    """
    if scipy.sparse.issparse(rows):
        rows = scipy.sparse.csc_array(rows)
        # scikit-learn takes no others; there are fewer entries than that.
        rows.indices, rows.indptr = rows.indices.astype(np.intc), rows.indptr.astype(np.intc)
    parts, roots, first = [], [], 0
    for number in range(trees):
        if number % _GROUP == 0:
            seeds = np.random.RandomState(int(rng.integers(2**31)))
        seed = seeds.randint(np.iinfo(np.int32).max)
        tree = _GROWERS[thresholds](max_features="sqrt", random_state=seed)
        tree.fit(rows, classes, _times_drawn(len(classes), seed) if thresholds == "best" else None)
        part = _nodes(tree.tree_, tree.classes_, first)
        parts.append(part)
        roots.append(first)
        first += len(part[0])
    column, threshold, children = map(np.concatenate, zip(*parts, strict=True))
    return Forest(np.array(roots, np.int64), column, threshold, children)


def _times_drawn(samples: int, seed: int) -> NDArray[np.intp]:
    """Return how often a tree's draw with replacement takes each sample, as scikit-learn's forests do."""
    drawn = np.random.RandomState(seed).randint(0, samples, samples)
    return np.bincount(drawn, minlength=samples)


def _nodes(
    tree: object, names: NDArray[np.intp], first: int
) -> tuple[NDArray[np.int32], F4, NDArray[np.int32]]:
    """Return columns, thresholds and children of the nodes of one of scikit-learn's trees."""
    left, right, column, threshold, value = (
        getattr(tree, name)
        for name in ("children_left", "children_right", "feature", "threshold", "value")
    )
    leaf = left < 0
    named = -1 - names[value[:, 0].argmax(axis=1)]
    # x <= threshold in double is x <= the next smaller single, as x is one.
    single = threshold.astype(np.float32)
    single = np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
    children = np.where(leaf[:, None], 0, first + np.stack([left, right], axis=1))
    return (
        np.where(leaf, named, column).astype(np.int32),
        single.astype(np.float32),
        children.astype(np.int32),
    )


def shares_of_votes(forest: Forest, rows: Vectors, count: int) -> F4:
    """Return the share of the trees that vote for each class, shape (rows, count).

    Parameters
    ----------
    forest
        The trees.
    rows : array or csr_array, shape (rows, d), float32
        Features, finite.
    count
        Number of classes.
    """
    votes = np.zeros((rows.shape[0], count), np.float32)
    if isinstance(rows, np.ndarray):
        _vote(
            np.ascontiguousarray(rows, np.float32), forest.roots, forest.column, forest.threshold,
            forest.children, votes,
        )  # fmt: skip
    else:
        # Of a wide table the trees read some columns alone.
        used, column = np.unique(forest.column, return_inverse=True)
        leaves = int(np.searchsorted(used, 0))
        narrow = np.where(forest.column < 0, forest.column, column - leaves).astype(np.int32)
        dense = Forest(forest.roots, narrow, forest.threshold, forest.children)
        step = max(1, _TILE_ENTRIES // max(1, len(used) - leaves))
        for start in range(0, rows.shape[0], step):
            here = slice(start, start + step)
            tile = np.asarray(rows[here][:, used[leaves:]].toarray(), np.float32)
            votes[here] = shares_of_votes(dense, tile, count) * len(forest.roots)
    votes /= len(forest.roots)
    return votes


@njit(cache=True, nogil=True)
def _vote(rows, roots, column, threshold, children, votes):  # type: ignore[no-untyped-def]
    """Add the vote of every tree for every row, a tree at a time on rows that stay in the cache."""
    for start in range(0, rows.shape[0], _TILE_ROWS):
        stop = min(start + _TILE_ROWS, rows.shape[0])
        for root in roots:
            for row in range(start, stop):
                node = root
                while column[node] >= 0:
                    larger = 1 if rows[row, column[node]] > threshold[node] else 0
                    node = children[node, larger]
                votes[row, -1 - column[node]] += 1
