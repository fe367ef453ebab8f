"""The locality order of the samples, and their features in it: the input of every method.

::

    hash     sample blocks   which samples are copies of others (eigenscape.neighbors.search.duplicates)
    route    sample blocks   samples to parts
    search   parts           leaves in depth-first order; lists too, where the method is bisection
    gather   parts           features by rank
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import sample_blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.context import Context
from eigenscape.neighbors.kernels.partition import Leaves
from eigenscape.neighbors.search.duplicates import find_copies
from eigenscape.neighbors.search.forest import Tree, bundle_count, plant_tree
from eigenscape.neighbors.search.scratch import Ranked, index_type
from eigenscape.store.arrays import open_array
from eigenscape.store.rows import Rows


@dataclass(frozen=True)
class Layout:
    """Samples by rank in the locality order. Copies have the rank of their representative.

    Attributes
    ----------
    folder
        ``order.npy``: the sample of each rank; ``rank.npy``: the rank of each sample;
        ``copies.npy``, ``represented.npy``: see `find_copies`.
    samples
        Number of samples, copies included.
    ranked
        The features by rank.
    tree
        The tree that the order comes from.
    starts
        First rank of each of its parts, and the number of ranks.
    """

    folder: Path
    samples: int
    ranked: Ranked
    tree: Tree
    starts: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """Name of the type of sample numbers and ranks."""
        return self.tree.dtype

    def order(self) -> NDArray[np.int64]:
        """Map the sample of each rank."""
        return np.asarray(np.load(self.folder / "order.npy", mmap_mode="r"))

    def rank(self) -> NDArray[np.signedinteger]:
        """Map the rank of each sample."""
        return np.asarray(np.load(self.folder / "rank.npy", mmap_mode="r"))

    def copies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Map the copies, ascending, and the samples that represent them."""
        return (
            np.asarray(np.load(self.folder / "copies.npy", mmap_mode="r")),
            np.asarray(np.load(self.folder / "represented.npy", mmap_mode="r")),
        )

    def locality_order(self) -> NDArray[np.int64]:
        """Return all samples in the locality order, copies after who represents them."""
        order, (copies, represented) = self.order(), self.copies()
        if not len(copies):
            return order
        rank = self.rank()
        samples = np.concatenate([order, copies])
        key = np.concatenate(
            [2 * rank[order].astype(np.int64), 2 * rank[represented].astype(np.int64) + 1]
        )
        return samples[np.argsort(key, kind="stable")]

    def gather(self, part: int) -> None:
        """Write the features of a part's residents by rank."""
        first, last = self.starts[part : part + 2]
        self.ranked.write(first, self.tree.read_residents(part, last - first))


def lay_out(
    context: Context, source: Rows, leaves: Leaves, *, least: int, most_equal: int
) -> Layout:
    """Sort the samples by place and write their features in that order.

    Parameters
    ----------
    context
        Runs the tasks.
    source
        The features.
    leaves
        How parts are cut, and the length of the lists that are found on the way (0 for none).
    least
        Neighbours that every sample must have: more samples are left once copies are taken out.
    most_equal
        Size up to which groups of identical samples are left alone.
    """
    folder = context.workspace.folder("layout")
    rows, columns = source.shape
    copies = find_copies(source, folder, least, most_equal, context.task_bytes, context.map)
    tree, residents = grow_tree(context, source, leaves, folder, rows - copies)
    order = np.concatenate(
        [np.load(tree.folder / f"order-{part}.npy") for part in range(tree.parts)]
    )
    ranks = len(order)
    if not (folder / "rank.npy").exists():
        rank = np.empty(rows, tree.dtype)
        rank[order] = np.arange(ranks, dtype=tree.dtype)
        rank[np.load(folder / "copies.npy")] = rank[np.load(folder / "represented.npy")]
        starts = np.concatenate([[0], np.cumsum(residents)])
        save_array(folder / "order.npy", order)
        save_array(folder / "part-starts.npy", starts)
        save_array(folder / "rank.npy", rank)  # last: where it is, the others are
    ranked = Ranked(folder, ranks, columns, source.sparse)
    ranked.create(_row_lengths(source, order) if source.sparse else None)
    starts = np.load(folder / "part-starts.npy")
    layout = Layout(folder, rows, ranked, tree, tuple(starts.tolist()))
    context.map("gather", layout.gather, list(range(tree.parts)), label="sorting samples by place")
    tree.remove_residents()
    return layout


def grow_tree(
    context: Context, source: Rows, leaves: Leaves, shared: Path, rows: int
) -> tuple[Tree, list[int]]:
    """Build a tree, route the samples and search its parts; what was routed is deleted on the way.

    Parameters
    ----------
    context, source, leaves
        As in `lay_out`.
    shared
        Folder of the layout.
    rows
        Samples that are not copies.

    Returns
    -------
    Tree
    residents
        Samples at home in each part.
    """
    turn = leaves.turn
    folder = context.workspace.folder(f"tree-{turn}")
    parts = plant_tree(folder, shared, source, rows, leaves)
    samples, _ = source.shape
    row = (8 if source.sparse else 4) * source.stored / samples
    # A fixed number of runs at most: each part reads a slice of every run.
    runs = tuple(sample_blocks(samples, 1, context.task_bytes, routed_bytes(row, leaves)))
    dtype = np.dtype(index_type(samples)).name
    tree = Tree(folder, shared, source, runs, parts, bundle_count(parts), leaves, dtype)
    context.map(f"route-{turn}", tree.route_block, runs, label="routing samples")
    residents: list[int] = []
    for bundles in tree.steps(context.executor.width):
        numbers = tree.parts_of(bundles)
        residents += context.map(f"search-{turn}", tree.search, numbers, label="searching parts")
        tree.remove_runs(bundles)
    return tree, residents


def routed_bytes(row_bytes: float, leaves: Leaves) -> float:
    """Return the memory that a sample takes while it is routed, its copies in parts included."""
    return row_bytes * (2 + 4 * (1 + leaves.overlap))


def _row_lengths(source: Rows, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of entries of each rank's row of a sparse table."""
    lengths = np.diff(open_array(Path(source.path) / "indptr")[...])
    if source.unit:
        lengths = np.maximum(lengths, 1)  # the column for vectors of zeros
    return np.asarray(lengths[order])
