"""Compiled inner loops of the graph: lists, transposition, union, weights; the rules of the weights.

Lists are flat: `index` and `distance` hold the entries, `indptr` the start of each row's. Rows
may be hubs, since all exact copies of a sample can name the same one: no loop takes more time than
the entries of a row times their logarithm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

WEIGHT_FLOOR = np.float32(np.finfo(np.float32).eps)
"""Smallest weight of an edge.

exp(-d^2 / t) underflows for samples far from all others, and a sample whose weights are all 0 has
degree 0: D^-1/2 is infinite there and NaNs follow. An edge is an edge: it keeps this much."""


BRIDGE_WEIGHT = np.float32(np.exp(-1))
"""Weight of a bridge between components: that of an edge as long as its ends' own scales.

From its true length it would underflow, and the eigenvalues that belong to the components would be
lost in rounding. Bridges have the length NaN."""


@njit(cache=True, nogil=True)
def place_lists(indptr, index, distance, rank, places, out_index, out_distance):  # type: ignore[no-untyped-def]
    """Write lists where they go, their entries numbered by rank.

    Parameters
    ----------
    indptr : array, shape (rows + 1,)
    index, distance : array, shape (entries,)
        The lists; -1 where there is no neighbour.
    rank : array, shape (n,)
        New number of every sample.
    places : array, shape (rows,)
        Where in the outputs each list begins.
    out_index, out_distance : array
        Filled.
    """
    for row in range(places.shape[0]):
        place = places[row]
        for entry in range(indptr[row], indptr[row + 1]):
            other = index[entry]
            out_index[place] = rank[other] if other >= 0 else -1
            out_distance[place] = distance[entry]
            place += 1


@njit(cache=True, nogil=True)
def keep_rows(indptr, index, distance, inside, number, filled, out_index, out_distance):  # type: ignore[no-untyped-def]
    """Append the lists of the rows that are inside to the outputs; return how far these are filled.

    Parameters
    ----------
    indptr, index, distance
        As in `place_lists`.
    inside : array of bool, shape (rows,)
    number : array, shape (n,)
        New number of every row.
    filled : int
        Entries that the outputs hold already.
    out_index, out_distance : array
    """
    for row in range(inside.shape[0]):
        if inside[row]:
            for entry in range(indptr[row], indptr[row + 1]):
                other = index[entry]
                out_index[filled] = number[other] if other >= 0 else -1
                out_distance[filled] = distance[entry]
                filled += 1
    return filled


@njit(cache=True, nogil=True)
def last_distances(indptr, index, distance, last):  # type: ignore[no-untyped-def]
    """Fill in the distance of each row's last neighbour, 0 for an empty list."""
    for row in range(last.shape[0]):
        last[row] = 0
        for entry in range(indptr[row], indptr[row + 1]):
            if index[entry] >= 0:
                last[row] = max(last[row], distance[entry])


@njit(cache=True, nogil=True)
def count_names(index, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` how often the entries name each row."""
    for entry in range(index.shape[0]):
        if index[entry] >= 0:
            counts[index[entry]] += 1


@njit(cache=True, nogil=True)
def cut_rows(size, most_rows, most_entries):  # type: ignore[no-untyped-def]
    """Cut rows into blocks that hold so many rows and entries at most, or a single row.

    Parameters
    ----------
    size : array, shape (n,)
        Entries of each row.
    most_rows, most_entries : int

    Returns
    -------
    array of bool, shape (n,)
        Which rows begin a block.
    """
    begins = np.zeros(size.shape[0], np.bool_)
    rows = entries = 0
    for row in range(size.shape[0]):
        if row == 0 or rows == most_rows or entries + size[row] > most_entries:
            begins[row] = True
            rows = entries = 0
        rows += 1
        entries += size[row]
    return begins


@njit(cache=True, nogil=True)
def count_targets(index, starts, counts):  # type: ignore[no-untyped-def]
    """Count the entries that point into each block of rows; `starts` as in `bucket_edges`."""
    block = 0
    for entry in range(index.shape[0]):
        if index[entry] >= 0:
            block = _block_of(index[entry], starts, block)
            counts[block] += 1


@njit(cache=True, nogil=True)
def bucket_edges(first, indptr, index, distance, starts, offsets, source, target, length):  # type: ignore[no-untyped-def]
    """Sort list entries by the block that they point into: the edges seen from their other end.

    Parameters
    ----------
    first : int
        Number of the first row.
    indptr, index, distance
        As in `place_lists`.
    starts : array, shape (blocks + 1,)
        First row of each block, and the number of rows.
    offsets : array, shape (blocks,)
        Where the next entry of each block goes; moved on in place.
    source, target, length : array
        Filled: ``source`` is the row that the list belongs to, ``target`` the one it names.
    """
    block = 0
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            other = index[entry]
            if other >= 0:
                block = _block_of(other, starts, block)
                place = offsets[block]
                source[place] = first + row
                target[place] = other
                length[place] = distance[entry]
                offsets[block] += 1


@njit(cache=True, nogil=True)
def _block_of(row, starts, guess):  # type: ignore[no-untyped-def]
    """Return the block of a row; most are in the block of the row before, the guess."""
    if starts[guess] <= row < starts[guess + 1]:
        return guess
    return np.searchsorted(starts, row, side="right") - 1


@njit(cache=True, nogil=True)
def _sort_entries(columns, lengths):  # type: ignore[no-untyped-def]
    """Sort a row's entries by column, in place (Shell 1959, with Knuth's gaps).

    NumPy's sorts take two seconds to compile here.
    """
    size, gap = columns.shape[0], 1
    while gap < size // 64:  # insertions alone, of all but hubs
        gap = 3 * gap + 1
    while gap:
        for entry in range(gap, size):
            column, length = columns[entry], lengths[entry]
            place = entry
            while place >= gap and columns[place - gap] > column:
                columns[place] = columns[place - gap]
                lengths[place] = lengths[place - gap]
                place -= gap
            columns[place] = column
            lengths[place] = length
        gap //= 3


@njit(cache=True, nogil=True)
def union_rows(first, indptr, index, distance, source, target, length):  # type: ignore[no-untyped-def]
    """Unite own lists with the edges that arrive from elsewhere, as CSR with sorted columns.

    Parameters
    ----------
    first : int
        Number of the first row.
    indptr, index, distance
        Lists of the block's own rows, as in `place_lists`.
    source, target, length : array, shape (edges,)
        Edges source -> target whose target lies in the block.

    Returns
    -------
    indptr : array, shape (rows + 1,)
    columns, lengths : array, shape (entries,)
        Views of arrays with room for every edge twice.
    """
    rows = indptr.shape[0] - 1
    room = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            room[row + 1] += index[entry] >= 0
    for edge in range(source.shape[0]):
        room[target[edge] - first + 1] += 1
    for row in range(rows):
        room[row + 1] += room[row]
    columns = np.empty(room[rows], index.dtype)
    lengths = np.empty(room[rows], np.float32)
    filled = room[:-1].copy()
    for row in range(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            if index[entry] >= 0:
                columns[filled[row]] = index[entry]
                lengths[filled[row]] = distance[entry]
                filled[row] += 1
    for edge in range(source.shape[0]):
        row = target[edge] - first
        columns[filled[row]] = source[edge]
        lengths[filled[row]] = length[edge]
        filled[row] += 1
    starts = np.zeros(rows + 1, np.int64)
    kept = 0
    for row in range(rows):
        begin, end = room[row], room[row + 1]
        _sort_entries(columns[begin:end], lengths[begin:end])
        previous = -1
        for entry in range(begin, end):
            if columns[entry] == previous:
                # Both ends name each other; their lengths may differ by rounding, and the smaller
                # one is what the other end takes too.
                lengths[kept - 1] = min(lengths[kept - 1], lengths[entry])
            else:
                previous = columns[entry]
                columns[kept] = previous
                lengths[kept] = lengths[entry]
                kept += 1
        starts[row + 1] = kept
    return starts, columns[:kept], lengths[:kept]


@njit(cache=True, nogil=True)
def self_tuning_weights(first, indptr, columns, lengths, scale, bandwidth, weights):  # type: ignore[no-untyped-def]
    """exp(-d^2 / (t s_i s_j)), at least `WEIGHT_FLOOR`, in place (Zelnik-Manor, Perona 2004)."""
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            if np.isnan(lengths[entry]):
                weights[entry] = BRIDGE_WEIGHT
                continue
            d = np.float64(lengths[entry])
            t = np.float64(scale[first + row]) * np.float64(scale[columns[entry]])
            weights[entry] = max(np.float32(np.exp(-d * d / (bandwidth * t))), WEIGHT_FLOOR)


@njit(cache=True, nogil=True)
def heat_weights(lengths, bandwidth, weights):  # type: ignore[no-untyped-def]
    """exp(-d^2 / t), at least `WEIGHT_FLOOR`, in place (Belkin 2003, 2.2)."""
    for entry in range(lengths.shape[0]):
        if np.isnan(lengths[entry]):
            weights[entry] = BRIDGE_WEIGHT
            continue
        d = np.float64(lengths[entry])
        weights[entry] = max(np.float32(np.exp(-d * d / bandwidth)), WEIGHT_FLOOR)


@njit(cache=True, nogil=True)
def row_sums(indptr, weights):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of each row, in double."""
    sums = np.empty(indptr.shape[0] - 1)
    for row in range(indptr.shape[0] - 1):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += weights[entry]
        sums[row] = total
    return sums


@dataclass(frozen=True)
class WeightRule:
    """What distinguishes a rule of edge weights from the others.

    Attributes
    ----------
    fill
        Writes the weights: called with the arguments of `weigh`, and an array of ones, shape (entries,).
    scaled
        Whether a weight depends on the scales of its two samples.
    squared
        Whether the bandwidth is in squared units of the features, and "auto" the mean squared length of the
        lists; otherwise "auto" is 1.
    """

    fill: Callable[..., None]
    scaled: bool
    squared: bool

    def weigh(
        self,
        first: int,
        indptr: NDArray[np.int64],
        columns: NDArray[np.signedinteger],
        lengths: NDArray[np.float32],
        scale: NDArray[np.float32] | None,
        bandwidth: float,
    ) -> NDArray[np.float32]:
        """Return the weights of the edges of some rows.

        Parameters
        ----------
        first
            Number of the first row.
        indptr : array, shape (rows + 1,)
        columns, lengths : array, shape (entries,)
            The edges; those of the length NaN are bridges.
        scale : array, shape (n,)
            Scale of every sample, by the numbers of `first` and `columns`; not read unless `scaled`.
        bandwidth
            t in the weights.

        Returns
        -------
        array, shape (entries,)
        """
        weights = np.ones(len(columns), np.float32)
        self.fill(first, indptr, columns, lengths, scale, bandwidth, weights)
        return weights


def _keep_ones(*_: Any) -> None:
    """Leave all weights 1."""


def _fill_heat(
    first: int, indptr: Any, columns: Any, lengths: Any, scale: Any, bandwidth: float, weights: Any
) -> None:
    heat_weights(lengths, bandwidth, weights)


WEIGHTS = {
    "self-tuning": WeightRule(self_tuning_weights, scaled=True, squared=False),
    "heat": WeightRule(_fill_heat, scaled=False, squared=True),
    "binary": WeightRule(_keep_ones, scaled=False, squared=False),
}
"""The rules of edge weights by their names in a job."""
