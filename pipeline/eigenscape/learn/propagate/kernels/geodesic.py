"""Geodesic nearest neighbours: the class of the labelled sample nearest along the graph.

The graph has an edge wherever one of two samples lists the other, as long as the distance in the
list; the geodesic distance is the length of the shortest path (Belkin 2003, 3.3 and 3.8). One
Dijkstra from all labelled samples at once finds the nearest to every sample, and beside it the
nearest of another class, which says how clear the choice is.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.spectrum.kernels.operator import RowBlock

_ROOM = 2**16
_TRIFLE = 1e-6


@dataclass(frozen=True)
class Nearest:
    """The labelled sample that is nearest to every sample along the graph.

    Attributes
    ----------
    position : array of int, shape (n,)
        Its position among the labelled samples, -1 where no path leads to one.
    distance : array, shape (n,)
        Length of the path, inf where there is none.
    rival : array of int, shape (n,)
        Position of the nearest labelled sample of another class, -1 where no path leads to one.
    rival_distance : array, shape (n,)
        Length of the path to it.
    """

    position: NDArray[np.int32]
    distance: NDArray[np.float64]
    rival: NDArray[np.int32]
    rival_distance: NDArray[np.float64]

    def scores(self, classes: NDArray[np.intp], count: int) -> NDArray[np.float32]:
        """Return how near the two nearest classes are: b / (a + b) and a / (a + b).

        Parameters
        ----------
        classes : array of int, shape (labelled,)
            0 ... count-1.
        count
            Number of classes.

        Returns
        -------
        array, shape (n, count), float32
            For the distance a to the nearest labelled sample and b to its rival; 0 for all other
            classes. Equally near ones are told apart by a trifle. NaN where nothing is reached.
        """
        scores = np.full((len(self.position), count), np.nan, np.float32)
        reached = np.flatnonzero(self.position >= 0)
        scores[reached] = 0
        scores[reached, classes[self.position[reached]]] = 1
        both = np.flatnonzero(self.rival >= 0)
        near, far = self.distance[both], self.rival_distance[both]
        total = near + far
        share = np.divide(far, total, out=np.full_like(total, 0.5), where=total > 0)
        share = np.maximum(share, 0.5 + _TRIFLE)
        scores[both, classes[self.position[both]]] = share
        scores[both, classes[self.rival[both]]] = 1 - share
        return scores


def undirected(
    index: NDArray[np.signedinteger],
    distance: NDArray[np.floating],
    indptr: NDArray[np.int64] | None = None,
) -> RowBlock:
    """Return the edges of neighbour lists, seen from both ends.

    An edge that both ends list is there twice: paths take the shorter one.

    Parameters
    ----------
    index : array of int, shape (n, k) or (entries,)
        Neighbours of every sample; no number of a sample (-1 or n) where there is none.
    distance : array, shape (n, k) or (entries,)
        Lengths; entries that are not finite are no edges.
    indptr : array of int, shape (n + 1,), optional
        Where each list begins in one-dimensional arrays.

    Returns
    -------
    RowBlock
        All rows, with lengths (float32) for data; columns of one row are in no order.
    """
    if indptr is None:
        rows, k = index.shape
        indptr = np.arange(rows + 1, dtype=np.int64) * k
    flat, lengths = index.reshape(-1), np.asarray(distance, np.float32).reshape(-1)
    starts = _count_ends(indptr, flat, lengths)
    columns = np.empty(starts[-1], np.int32 if len(indptr) <= 2**31 else np.int64)
    data = np.empty(starts[-1], np.float32)
    _place_ends(indptr, flat, lengths, starts[:-1].copy(), columns, data)
    return RowBlock(0, starts, columns, data)


def geodesic_nearest(
    graph: RowBlock, sample: NDArray[np.int64], classes: NDArray[np.intp]
) -> Nearest:
    """Return the labelled sample nearest to every sample along the graph, and its rival.

    Among equal distances the labelled sample that comes first wins, so that the answer does not
    depend on the order of the edges.

    Parameters
    ----------
    graph
        See `undirected`; lengths are not negative.
    sample : array of int, shape (labelled,)
        Numbers of the labelled samples, distinct.
    classes : array of int, shape (labelled,)
        Their classes.
    """
    rows = len(graph.indptr) - 1
    position = np.full((rows, 2), -1, np.int32)
    distance = np.full((rows, 2), np.inf)
    _search(
        graph.indptr, graph.indices, graph.data,
        np.asarray(sample, np.int64), np.asarray(classes, np.int64), position, distance,
    )  # fmt: skip
    return Nearest(position[:, 0], distance[:, 0], position[:, 1], distance[:, 1])


@njit(cache=True, nogil=True)
def _is_edge(row, other, length, rows):  # type: ignore[no-untyped-def]
    return 0 <= other < rows and other != row and np.isfinite(length)


@njit(cache=True, nogil=True)
def _count_ends(indptr, index, distance):  # type: ignore[no-untyped-def]
    """Return where the edges of each row begin when both ends hold them."""
    rows = indptr.shape[0] - 1
    starts = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            if _is_edge(row, index[entry], distance[entry], rows):
                starts[row + 1] += 1
                starts[index[entry] + 1] += 1
    for row in range(rows):
        starts[row + 1] += starts[row]
    return starts


@njit(cache=True, nogil=True)
def _place_ends(indptr, index, distance, places, columns, lengths):  # type: ignore[no-untyped-def]
    """Write every edge into the rows of both of its ends; `places` is moved on in place."""
    rows = indptr.shape[0] - 1
    for row in range(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            other = index[entry]
            if _is_edge(row, other, distance[entry], rows):
                columns[places[row]], lengths[places[row]] = other, distance[entry]
                places[row] += 1
                columns[places[other]], lengths[places[other]] = row, distance[entry]
                places[other] += 1


@njit(cache=True, nogil=True)
def _push(keys, names, size, key, name):  # type: ignore[no-untyped-def]
    """Put an item into a binary heap of `size` others."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if keys[above] < key or (keys[above] == key and names[above] < name):
            break
        keys[place], names[place] = keys[above], names[above]
        place = above
    keys[place], names[place] = key, name


@njit(cache=True, nogil=True)
def _drop_first(keys, names, size):  # type: ignore[no-untyped-def]
    """Take the first item out of a binary heap of `size`.

    The gap sinks to the bottom, where the last item, most likely a late one, fills it.
    """
    last = size - 1
    place = 0
    while 2 * place + 2 < last:
        child = 2 * place + 1
        right = child + 1
        if keys[right] < keys[child] or (
            keys[right] == keys[child] and names[right] < names[child]
        ):
            child = right
        keys[place], names[place] = keys[child], names[child]
        place = child
    if 2 * place + 1 < last:
        keys[place], names[place] = keys[2 * place + 1], names[2 * place + 1]
        place = 2 * place + 1
    _push(keys, names, place, keys[last], names[last])


@njit(cache=True, nogil=True)
def _offer(row, source, d, classes, position, distance):  # type: ignore[no-untyped-def]
    """Keep a path if it is among the best two to different classes; return whether it is."""
    first, second = position[row, 0], position[row, 1]
    same = first >= 0 and classes[first] == classes[source]
    if first < 0 or d < distance[row, 0] or (d == distance[row, 0] and source < first):
        if not same:
            position[row, 1], distance[row, 1] = first, distance[row, 0]
        position[row, 0], distance[row, 0] = source, d
        return True
    if same:
        return False
    if second < 0 or d < distance[row, 1] or (d == distance[row, 1] and source < second):
        position[row, 1], distance[row, 1] = source, d
        return True
    return False


@njit(cache=True, nogil=True)
def _search(indptr, indices, lengths, sample, classes, position, distance):  # type: ignore[no-untyped-def]
    """Dijkstra from all labelled samples; every row keeps its best two paths, of distinct classes.

    The second best path to a row leads over the best or the second best of the row before it, so
    two per row suffice. Items of the heap are ordered by (distance, source, row), the latter two
    packed into one number; one that its row no longer keeps is skipped when it comes up.

    Parameters
    ----------
    indptr, indices, lengths
        The graph.
    sample, classes : array, shape (labelled,)
    position, distance : array, shape (n, 2)
        Filled; -1 and inf at first.
    """
    size = 0
    room = max(_ROOM, 2 * sample.shape[0])
    keys, names = np.empty(room), np.empty(room, np.int64)
    for source in range(sample.shape[0]):
        if _offer(sample[source], source, 0.0, classes, position, distance):
            _push(keys, names, size, 0.0, (source << 32) | sample[source])
            size += 1
    while size > 0:
        d, source, row = keys[0], names[0] >> 32, names[0] & 0xFFFFFFFF
        _drop_first(keys, names, size)
        size -= 1
        first = position[row, 0] == source and distance[row, 0] == d
        second = position[row, 1] == source and distance[row, 1] == d
        if not first and not second:
            continue
        for entry in range(indptr[row], indptr[row + 1]):
            other, along = indices[entry], d + lengths[entry]
            # Nearly all paths are too long: found without a look at classes.
            if along > distance[other, 1]:
                continue
            if _offer(other, source, along, classes, position, distance):
                if size == keys.shape[0]:
                    keys = np.concatenate((keys, np.empty_like(keys)))
                    names = np.concatenate((names, np.empty_like(names)))
                _push(keys, names, size, along, (source << 32) | other)
                size += 1
