"""One bisection tree over a table: its files in scratch, and the tasks that fill them.

::

    route    sample blocks   every block cut by part: the runs of an external sort
    search   parts           lists within a part, mailed to the parts where the samples are at home;
                             features of those at home
    mail     one task        which parts have mail for which home
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import read_raw, save_array, save_raw
from eigenscape.base.files.whole import remove, written_whole
from eigenscape.base.vectors import Vectors, join
from eigenscape.neighbors.kernels.partition import (
    TREE_ROWS,
    TREE_SAMPLE,
    Leaves,
    SplitTree,
    build_tree,
    part_size,
    route,
    search_part,
    split_levels,
)
from eigenscape.neighbors.search.scratch import load_vectors, save_vectors
from eigenscape.store.rows import Rows

BUNDLE_PARTS = 64
"""Least number of parts in a bundle: all are searched before its runs are deleted, and others wait."""

_MOST_BUNDLES = 4
_STEP_ITEMS = 8
_PIECES = "mail-pieces.npy"
_STARTS = "mail-starts.npy"


@dataclass(frozen=True)
class Tree:
    """A bisection tree; its methods are the tasks, so it is small and pickles.

    Attributes
    ----------
    folder
        Files of this tree.
    shared
        Files of all trees: copies, ranks.
    source
        The features.
    runs
        Blocks of samples that were routed together.
    parts
        Number of parts.
    bundles
        Number of bundles of parts, all of the same size: runs are stored, and deleted, by bundle.
    leaves
        How a part is cut and searched.
    dtype
        Name of the integer type that holds every sample's number.
    """

    folder: Path
    shared: Path
    source: Rows
    runs: tuple[Block, ...]
    parts: int
    bundles: int
    leaves: Leaves
    dtype: str

    @property
    def home(self) -> bool:
        """Whether this is the first tree, whose parts are the homes of the samples."""
        return self.leaves.turn == 0

    def route_block(self, block: Block) -> None:
        """Send a block of samples down the tree and write it by part: one run."""
        start, stop = block
        features = self.source.read(start, stop)
        samples = np.arange(start, stop)
        copies = self._copies(start, stop)
        if len(copies):
            samples = np.setdiff1d(samples, copies, assume_unique=True)
            features = features[samples - start]
        rows, home, offsets = route(features, samples, load_tree(self.folder))
        for bundle in range(self.bundles):
            name = self._run(bundle, block)
            bounds = offsets[bundle * self._width : (bundle + 1) * self._width + 1]
            here = slice(*bounds[[0, -1]])
            save_raw(name.with_suffix(".samples"), samples[rows[here]].astype(self.dtype))
            save_raw(name.with_suffix(".home"), home[here])
            save_raw(name.with_suffix(".offsets"), bounds - bounds[0])
            save_vectors(name.with_suffix(".features"), features, rows[here])

    def read_part(self, part: int) -> tuple[Vectors, NDArray[np.signedinteger], NDArray[np.int32]]:
        """Return features, numbers and homes of a part's samples, in ascending order."""
        features, samples, home = [], [], []
        columns, sparse = self.source.shape[1], self.source.sparse
        bundle, place = divmod(part, self._width)
        for block in self.runs:
            name = self._run(bundle, block)
            piece = read_raw(name.with_suffix(".offsets"), np.int64, place, place + 2).tolist()
            features.append(
                load_vectors(name.with_suffix(".features"), columns, *piece, sparse=sparse)
            )
            samples.append(read_raw(name.with_suffix(".samples"), self.dtype, *piece))
            home.append(read_raw(name.with_suffix(".home"), np.int32, *piece))
        return join(features), np.concatenate(samples), np.concatenate(home)

    def search(self, part: int) -> int:
        """Search a part and mail the lists home; return how many samples are at home here."""
        features, samples, home = self.read_part(part)
        index, distance, place = search_part(features, samples, self.leaves)
        residents = np.flatnonzero(home == part)
        if self.home:
            residents = residents[np.argsort(place[residents], kind="stable")]
            save_array(self.folder / f"order-{part}.npy", samples[residents].astype(np.int64))
            save_vectors(self._residents(part), features, residents)
        if self.leaves.k:
            if not self.home:
                rank = np.load(self.shared / "rank.npy", mmap_mode="r")
                starts = np.load(self.shared / "part-starts.npy")
                home = np.searchsorted(starts, rank[samples], side="right") - 1
            # Sorted by home, so that every home reads its own slice.
            sort = np.argsort(home, kind="stable")
            homes, first = np.unique(home[sort], return_index=True)
            name = self.folder / f"mail-{part}"
            pieces = np.column_stack([homes, first, np.append(first[1:], len(sort))])
            save_array(self.folder / f"mail-{part}.npy", pieces.astype(np.int64))
            save_raw(name.with_suffix(".samples"), samples[sort])
            save_raw(name.with_suffix(".index"), index[sort])
            save_raw(name.with_suffix(".distance"), distance[sort])
        return len(residents)

    def mail(
        self, home: int
    ) -> Iterator[tuple[NDArray[np.signedinteger], NDArray[np.signedinteger], NDArray[np.float32]]]:
        """Yield samples, lists and distances that the parts have for a home: see `sort_mail`."""
        k = self.leaves.k
        first, last = np.load(self.folder / _STARTS, mmap_mode="r")[home : home + 2]
        for part, start, stop in np.load(self.folder / _PIECES, mmap_mode="r")[first:last].tolist():
            name = self.folder / f"mail-{part}"
            yield (
                read_raw(name.with_suffix(".samples"), self.dtype, start, stop),
                read_raw(name.with_suffix(".index"), self.dtype, start, stop, k),
                read_raw(name.with_suffix(".distance"), np.float32, start, stop, k),
            )

    def sort_mail(self, _: str) -> None:
        """Record, for every home, the pieces of mail from each part, by part.

        A part has mail for a few homes only: looked up here once, a home opens these alone, and not
        the files of all parts.
        """
        pieces, homes = [], []
        for part in range(self.parts):
            home, first, last = np.load(self.folder / f"mail-{part}.npy").T
            homes.append(home)
            pieces.append(np.column_stack([np.full(len(home), part), first, last]))
        home = np.concatenate(homes)
        sort = np.argsort(home, kind="stable")
        save_array(self.folder / _PIECES, np.concatenate(pieces)[sort])
        save_array(
            self.folder / _STARTS, np.searchsorted(home[sort], np.arange(self.home_parts() + 1))
        )

    def read_residents(self, part: int, count: int) -> Vectors:
        """Return the features of the samples that are at home in a part, in the locality order."""
        columns, sparse = self.source.shape[1], self.source.sparse
        return load_vectors(self._residents(part), columns, 0, count, sparse=sparse)

    def steps(self, width: int) -> Iterator[range]:
        """Yield the bundles that are searched in one step, where so many tasks run at a time."""
        step = -(-_STEP_ITEMS * width // self._width)
        for first in range(0, self.bundles, step):
            yield range(first, min(first + step, self.bundles))

    def parts_of(self, bundles: range) -> list[int]:
        """Return the parts in some bundles."""
        return list(range(bundles.start * self._width, bundles.stop * self._width))

    def remove_runs(self, bundles: range) -> None:
        """Delete the samples of some bundles as they were routed, once their parts are searched."""
        for bundle in bundles:
            remove(*sorted(self.folder.glob(f"run-{bundle}-*")))

    def remove_residents(self) -> None:
        """Delete the features of the parts, once they are in order."""
        remove(*sorted(self.folder.glob("residents-*")))

    def remove_mail(self) -> None:
        """Delete the mail, once it is merged."""
        remove(*sorted(self.folder.glob("mail-*")))

    def home_parts(self) -> int:
        """Return the number of parts of the first tree."""
        return self.parts if self.home else len(np.load(self.shared / "part-starts.npy")) - 1

    def _copies(self, start: int, stop: int) -> NDArray[np.int64]:
        copies = np.load(self.shared / "copies.npy", mmap_mode="r")
        return np.asarray(copies[slice(*np.searchsorted(copies, [start, stop]))])

    @property
    def _width(self) -> int:
        """Number of parts in a bundle."""
        return self.parts // self.bundles

    def _run(self, bundle: int, block: Block) -> Path:
        return self.folder / f"run-{bundle}-{block[0]}-{block[1]}"

    def _residents(self, part: int) -> Path:
        return self.folder / f"residents-{part}"


def bundle_count(parts: int) -> int:
    """Return the number of bundles of so many parts, a power of two like theirs."""
    return max(1, min(_MOST_BUNDLES, parts // BUNDLE_PARTS))


def plant_tree(folder: Path, shared: Path, source: Rows, rows: int, leaves: Leaves) -> int:
    """Build the split tree of a table and write it to a folder; return its number of parts.

    Parameters
    ----------
    folder, shared, source, leaves
        As in `Tree`.
    rows
        Samples that are not copies.
    """
    path = folder / "tree.npz"
    levels = split_levels(rows, part_size(rows), leaves.overlap)
    if not path.exists():
        rng = np.random.default_rng(leaves.turn)
        size = min(rows, TREE_SAMPLE, TREE_ROWS << levels) if levels else 0
        chosen = np.sort(rng.choice(rows, size, replace=False))
        samples = _number(chosen, np.load(shared / "copies.npy", mmap_mode="r"))
        tree = build_tree(source.take(samples), samples, levels, leaves.overlap, leaves.turn)
        with written_whole(path) as temporary:
            np.savez(temporary, directions=tree.directions, bounds=tree.bounds, ties=tree.ties)
    return 1 << levels


def load_tree(folder: Path) -> SplitTree:
    """Read the split tree of a folder."""
    with np.load(folder / "tree.npz") as stored:
        bounds = stored["bounds"]
        levels = int(len(bounds) + 1).bit_length() - 1
        return SplitTree(levels, stored["directions"], bounds, stored["ties"])


def _number(places: NDArray[np.int64], copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sample at each place among those that are not copies."""
    # The j-th copy is preceded by copies[j] - j others.
    before = copies - np.arange(len(copies))
    return places + np.searchsorted(before, places, side="right")
