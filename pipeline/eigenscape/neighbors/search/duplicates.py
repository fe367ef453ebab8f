"""The rule for samples with identical features.

Scenes hold thousands of identical pixels (saturated, filled, quantised). Their lists would hold
nothing but each other, and the graph would fall apart into as many pieces as there are such values.
So groups of more than k // 4 identical samples are represented by one of them, the first: only it
is searched and found. The others, its *copies*, take over its list with the representative itself in
front. Should no more than 4 k samples be left that way, groups keep up to k representatives; should
fewer than k + 1 be left, as many as it takes. Where labels spread over the graph, those of a group count
together, and where its eigenvectors are classified, its samples have the same ones
(`eigenscape.learn.propagate.identical`).

Groups are found by a 64-bit hash of the features: two different samples share one of 10^8 with odds
below 1e-3, and a false group would need k // 4 more of them.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import attach_memmap, create_memmap, note_rows, save_array
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import unit_vectors
from eigenscape.context import Map
from eigenscape.neighbors.kernels.hashes import hash_rows
from eigenscape.neighbors.kernels.tiles import check_range
from eigenscape.store.rows import Rows


def most_equal(k: int) -> int:
    """Return how many identical samples may stand in the lists as themselves."""
    return max(1, k // 4)


_LISTS = 4
"""Lists' worth of samples that are left where groups have as many. With hardly more than one list, all lists
reach over nearly all values. Measured on images of 4, 11, 21 and 29 values, each of one class only, by
squares, with k = 12: 35, 30, 55 and 81 % right with k + 1 left, 100 % with 4 k."""


def find_copies(source: Rows, folder: Path, k: int, most: int, budget: int, map_blocks: Map) -> int:
    """Find the samples that others represent, and note both.

    This is the first to read all features, so it also refuses those that are too large.

    Parameters
    ----------
    source
        The features.
    folder
        Gets ``copies.npy``, the copies in ascending order, and ``represented.npy``, the sample
        that stands for each.
    k
        Length of the lists.
    most
        Size up to which groups of identical samples are left alone.
    budget
        Bytes that a task may take.
    map_blocks
        Runs the tasks.

    Returns
    -------
    int
        How many copies there are.
    """
    rows, columns = source.shape
    create_memmap(folder / "hash", (rows,), np.uint64)
    ranges = sample_blocks(rows, 1, budget, 8 * columns)
    work = partial(_hash_block, source, folder)
    map_blocks("hash", work, ranges, label="finding identical samples")
    hashes = attach_memmap(folder / "hash", (rows,), np.uint64)
    copies, represented = choose_copies(hashes, k, most)
    save_array(folder / "copies.npy", copies)
    save_array(folder / "represented.npy", represented)
    return len(copies)


def count_zeros(source: Rows, folder: Path) -> int:
    """Return the number of vectors of zeros among rows of length 1, from the hashes of `find_copies`.

    Parameters
    ----------
    source
        The features, with `Rows.unit`.
    folder
        See `find_copies`.
    """
    rows, columns = source.shape
    zero = hash_rows(unit_vectors(np.zeros((1, columns - 1), np.float32)))
    return int((attach_memmap(folder / "hash", (rows,), np.uint64) == zero).sum())


def choose_copies(
    hashes: NDArray[np.uint64], k: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose which samples of groups with equal hashes are left out, and who stands for them.

    Parameters
    ----------
    hashes : array, shape (samples,)
    k
        Length of the lists; 0 where one sample of a group is enough.
    most
        Size up to which a group is left alone.

    Returns
    -------
    copies, represented : array, shape (copies,)
        Ascending sample numbers, and the representative of each.
    """
    nothing = np.zeros(0, np.int64)
    ordered = np.sort(hashes)
    if not (ordered[most:] == ordered[: max(0, len(ordered) - most)]).any():
        return nothing, nothing
    del ordered
    order = np.argsort(hashes, kind="stable")  # by number within a group
    ordered = hashes[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    size = np.diff(np.concatenate([first, [len(order)]]))
    keep = 1
    # With k of a group left at most, a list holds another value.
    while _left(size, most, keep) <= (k if keep >= k else _LISTS * k):
        keep += 1
    place = np.arange(len(order)) - np.repeat(first, size)
    surplus = (place >= keep) & np.repeat(size > most, size)
    copies = order[surplus]
    # Copies take turns among the representatives, should there be several.
    represented = order[np.repeat(first, size)[surplus] + place[surplus] % keep]
    ascending = np.argsort(copies)
    return copies[ascending], represented[ascending]


def _left(size: NDArray[np.int64], most: int, keep: int) -> int:
    """Return how many samples are left if groups of more than `most` keep so many."""
    return int(np.where(size > most, np.minimum(size, keep), size).sum())


def include_copies(
    index: NDArray[np.integer],
    distance: NDArray[np.float32],
    copies: NDArray[np.int64],
    represented: NDArray[np.int64],
) -> None:
    """Put copies into lists of representatives, so that the lists are those of all samples.

    Parameters
    ----------
    index, distance : array, shape (samples, k)
        Lists, nearest first, changed in place.
    copies, represented
        As `choose_copies` returns them.
    """
    order = np.argsort(represented, kind="stable")
    members, owners = copies[order], represented[order]
    copied = np.zeros(len(index), np.bool_)
    copied[copies] = True
    for start, stop in blocks(len(index), ROW_TILE):
        rows = np.arange(start, stop)
        _include(index[start:stop], distance[start:stop], rows, copied[start:stop], members, owners)


def _include(
    index: NDArray[np.integer],
    distance: NDArray[np.float32],
    itself: NDArray[np.int64],
    copied: NDArray[np.bool_],
    members: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> None:
    """Put copies into the lists of some samples; `members` are sorted by who represents them, `owners`."""
    k = index.shape[1]

    def count(samples: NDArray[np.integer]) -> NDArray[np.int64]:
        # Of more than k + 1 equal samples a list has room for k.
        size = np.searchsorted(owners, samples, "right") - np.searchsorted(owners, samples)
        return np.asarray(np.minimum(size, k))

    changed = copied | (count(itself) > 0) | (count(index) > 0).any(axis=1)
    rows = np.flatnonzero(changed)
    # The sample itself in front brings its copies, and is then taken out.
    named = np.column_stack([itself[rows], index[rows]]).ravel()
    sizes = 1 + count(named)
    place = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    entries = np.repeat(named, sizes)
    lengths = np.repeat(np.column_stack([np.zeros(len(rows)), distance[rows]]).ravel(), sizes)
    further = place > 0
    entries[further] = members[np.searchsorted(owners, entries[further]) + place[further] - 1]
    row = np.repeat(np.repeat(np.arange(len(rows)), k + 1), sizes)
    other = entries != itself[rows][row]
    entries, lengths, row = entries[other], lengths[other], row[other]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    index[rows] = entries[rank < k].reshape(len(rows), k)
    distance[rows] = lengths[rank < k].reshape(len(rows), k)


def _hash_block(source: Rows, folder: Path, block: Block) -> None:
    start, stop = block
    target = attach_memmap(folder / "hash", (source.shape[0],), np.uint64, "r+")
    vectors = source.read(start, stop)
    check_range(vectors)
    target[start:stop] = hash_rows(vectors)
    note_rows(target, start, stop)
