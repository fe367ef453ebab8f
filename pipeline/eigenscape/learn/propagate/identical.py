"""Large groups of identical samples, whose labels count together.

In the neighbour lists the first sample of such a group represents the others, its copies
(`eigenscape.neighbors.search.duplicates`): it has edges to all of them, and to what lies around the group.
If labels stayed on their own samples, that of the representative would decide for the whole group and its
surroundings, against any number of labels of copies. In eigenvectors, too, its row is unlike those of its
copies: of the normalised Laplacian several times as long.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import attach_memmap, map_array, save_array
from eigenscape.context import Context
from eigenscape.labels.training import Labelled
from eigenscape.neighbors.search.duplicates import find_copies, most_equal
from eigenscape.store.rows import Rows


@dataclass(frozen=True)
class Identical:
    """The groups of identical samples that others represent.

    Attributes
    ----------
    folder
        ``member.npy``: the samples of all groups, ascending; ``group.npy``: the group of each;
        ``representative.npy``: those of them that represent others, ascending; ``copy.npy``: one of each
        group that does not.
    same_edges
        Whether all copies of a sample have the same edges, so that their labels count on it alone and they
        share its values: not where neighbouring pixels have edges too.
    """

    folder: Path
    same_edges: bool

    def groups_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of each sample, -1 for none."""
        member = self._map("member")
        place = np.minimum(np.searchsorted(member, samples), len(member) - 1)
        return np.where(member[place] == samples, self._map("group")[place], -1)

    def pool(self, labelled: NDArray[np.int64]) -> "Pool":
        """Return those of the labelled samples, by their numbers, whose labels are taken together."""
        group, representative = self.groups_of(labelled), self._map("representative")
        position = np.flatnonzero(group >= 0)
        found, own = np.unique(group[position], return_inverse=True)
        owner = self.groups_of(representative)
        used = np.isin(owner, found)
        moved = group >= 0 if self.same_edges else np.isin(labelled, representative)
        owner = np.searchsorted(found, owner[used])
        return Pool(position, own, representative[used], owner, moved)

    def stand_ins(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Map the samples of all groups; return the first representative of each group beside them."""
        representative = self._map("representative")
        _, first = np.unique(self.groups_of(representative), return_index=True)
        return self._map("member"), representative[first][self._map("group")]

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.copies())

    def copies(self) -> NDArray[np.int64]:
        """Return a sample of each group that represents no others, shape (groups,)."""
        return self._map("copy")

    def alike(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return some samples, with one of `copies` in place of every member of a group."""
        group = self.groups_of(samples)
        return np.where(group >= 0, self.copies()[group], samples)

    def _map(self, name: str) -> NDArray[np.int64]:
        return map_array(self.folder / f"{name}.npy")


@dataclass(frozen=True)
class Pool:
    """Labels of identical samples.

    Attributes
    ----------
    position : array, shape (pooled,)
        Positions of their samples among all labelled ones.
    group : array, shape (pooled,)
        The group of each, 0 ... groups-1.
    representative : array, shape (representatives,)
        Numbers of the samples that represent these groups, ascending.
    owner : array, shape (representatives,)
        The group of each.
    moved : array of bool, shape (labelled,)
        Whose labels count on the representatives alone, not on their own samples.
    """

    position: NDArray[np.int64]
    group: NDArray[np.int64]
    representative: NDArray[np.int64]
    owner: NDArray[np.int64]
    moved: NDArray[np.bool_]

    def counts(self, labelled: Labelled, fit: int) -> NDArray[np.int64]:
        """Return the training labels of a fit, shape (representatives, classes): those of its whole group."""
        known = labelled.train[fit, self.position]
        groups = int(self.owner.max(initial=-1)) + 1
        cell = self.group[known] * labelled.count + labelled.classes[self.position[known]]
        found = np.bincount(cell, minlength=groups * labelled.count)
        return found.reshape(groups, labelled.count)[self.owner]

    def means(
        self, labelled: Labelled, fit: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean of these labels in each class, NaN where there is none, and their number.

        Several representatives of a group have equal parts of the number.

        Returns
        -------
        mean : array, shape (representatives, classes)
        number : array, shape (representatives,)
        """
        counts = self.counts(labelled, fit)
        total = counts.sum(axis=1, keepdims=True)
        mean = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
        return mean, total[:, 0] / np.bincount(self.owner)[self.owner]


def find_identical(context: Context) -> Identical | None:
    """Find the groups again that the neighbors stage has found; None where there are none."""
    lists = context.run.record("neighbors")
    # A graph that is given as a matrix has no lists.
    if lists is None or not lists.summary.get("copies"):
        return None
    options, folder = context.job.neighbors, context.workspace.folder("learn/identical")
    rows = Rows(context.path("features/values"), unit=options.metric == "angle")
    least, most = options.least_neighbors, most_equal(options.k)
    find_copies(rows, folder, least, most, context.task_bytes, context.map)
    hashes = attach_memmap(folder / "hash", rows.shape[:1], np.uint64)
    representative = np.unique(np.load(folder / "represented.npy"))
    member = np.union1d(np.load(folder / "copies.npy"), representative)
    if options.most_landmarks is not None:
        # Others than landmarks have no edges to their copies.
        representative = np.intersect1d(representative, context.memmap("neighbors/landmark"))
    values = np.unique(hashes[representative])
    member = member[np.isin(hashes[member], values)]
    if not len(member):
        return None
    group = np.searchsorted(values, hashes[member])
    copy = np.zeros(len(values), np.int64)
    np.maximum.at(copy, group, member)  # Representatives come first.
    save_array(folder / "member.npy", member)
    save_array(folder / "group.npy", group)
    save_array(folder / "copy.npy", copy)
    save_array(folder / "representative.npy", representative)
    return Identical(folder, context.job.graph.spatial is None)
