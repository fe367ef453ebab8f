"""A multigrid cycle that comes close to the inverse of a Laplacian with weights on a few rows.

::

    rows     sweep forward, from 0                        sweep backward
               residual, summed over aggregates    correction of each aggregate
    quarter      sweep forward                       sweep backward
                   ...                                 ...
    few rows             sweeps back and forth

Aggregates are pairs of pairs: every row joins the neighbour to which its edge is strongest (Notay 2010, An
aggregation-based algebraic multigrid method). Those of `eigenscape.spectrum.iteration.coarse`, a root and all
its neighbours, give a start for eigenvectors; a cycle with them takes more iterations. A correction is
constant on an aggregate, so that a coarse operator is the Laplacian of a smaller graph, and the weights on
the rows of an aggregate are summed: these differ from column to column, while the graphs are shared by all.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.learn.propagate.kernels.conjugate import Allocate
from eigenscape.spectrum.kernels.gather import WIDTH, add_rows, add_rows_backward
from eigenscape.spectrum.kernels.operator import (
    Array,
    Operator,
    RowBlock,
    read_only,
    set_read_only,
)

_FEW_ROWS = 64
"""Rows below which a graph is not made smaller."""

_SWEEPS = 8
"""Sweeps back and forth on the smallest graph."""

_LEAST_SHRINKAGE = 0.8
"""Part of the rows to which a coarse graph has to fall, to be worth its time."""


Empty = Callable[[int, Any], Array]
"""Called with a length and a type, returns an array of it: in memory or mapped."""


@dataclass(frozen=True)
class CoarseGraph:
    """A graph of aggregates of the rows of a finer one, read-only.

    Attributes
    ----------
    label : array of int32, shape (rows of the finer graph,)
        Aggregate of each of them.
    indptr, indices, data : array
        Off-diagonal part, its sign turned, as CSR.
    diagonal : array, shape (n,)
    """

    label: NDArray[np.int32]
    indptr: Array
    indices: Array
    data: Array
    diagonal: Array

    def __post_init__(self) -> None:
        set_read_only(self, "label", "indptr", "indices", "data", "diagonal")


@dataclass(frozen=True)
class Level:
    """A graph and its weights.

    Attributes
    ----------
    blocks, diagonal
        As of `Operator`.
    rows : array of int, shape (l,)
        Ascending: rows with weights.
    marks : array, shape (l, WIDTH)
        Weights, added to the diagonal.
    label : array of int, shape (n,)
        Aggregate of each row; empty on the last level.
    B, X : array, shape (n, WIDTH)
        Right-hand sides and corrections; empty on the first level, whose arrays are given.
    """

    blocks: tuple[RowBlock, ...]
    diagonal: Array
    rows: NDArray[np.int64]
    marks: Array
    label: NDArray[np.int32]
    B: Array
    X: Array


@dataclass(frozen=True)
class Cycle:
    """A symmetric positive definite operator, about ``(L + diag(marks))^-power`` for each column.

    Attributes
    ----------
    levels
        From the finest to the smallest graph.
    power
        Number of cycles, one after the other.
    spare : array, shape (n, WIDTH), optional
        Finite; needed from power 2 on.
    free : array, shape (l, WIDTH), optional
        0 where a row with weights is to stay as it is, 1 elsewhere; all rows may change without.
    """

    levels: tuple[Level, ...]
    power: int = 1
    spare: Array | None = None
    free: Array | None = None

    def apply(self, R: Array, Z: Array) -> None:
        """Set Z to the image of R."""
        for left in range(self.power, 0, -1):
            image = Z if left % 2 else self.spare
            assert image is not None, "a power needs a spare array"
            self._descend(0, R, image)
            R = image
        if self.free is not None:
            Z[self.levels[0].rows] *= self.free

    def _descend(self, number: int, B: Array, X: Array) -> None:
        """Set X to about the solution on a level and all below it."""
        level = self.levels[number]
        X[:] = 0
        if number == len(self.levels) - 1:
            for _ in range(_SWEEPS):
                _sweep(level, B, X, forward=True)
                _sweep(level, B, X, forward=False)
            return
        coarse = self.levels[number + 1]
        for _ in range(self._visits if number else 1):
            _sweep(level, B, X, forward=True)
            coarse.B[:] = 0
            for block in level.blocks:
                _restrict(
                    block.indptr, block.indices, block.data, level.diagonal, block.first,
                    level.rows, level.marks, B, X, level.label, coarse.B,
                )  # fmt: skip
            self._descend(number + 1, coarse.B, coarse.X)
            _prolong(coarse.X, level.label, X)
            _sweep(level, B, X, forward=False)

    @property
    def _visits(self) -> int:
        """Number of visits of a coarse graph, which has a fifth of the entries of the finer one.

        Measured on Indian Pines with power 1: 18 iterations with two visits, 28 with one; with power 2, no
        fewer with two.
        """
        return 2 if self.power == 1 else 1


def coarse_graphs(operator: Operator, empty: Empty = np.empty) -> Iterator[CoarseGraph]:
    """Yield ever smaller graphs of a Laplacian, in double.

    Parameters
    ----------
    operator
        L = D - W, whose null vector is constant.
    empty
        Gives arrays with room for the entries of a graph, of which few or many are used.
    """
    graph, diagonal = _joined(operator, empty), operator.diagonal.astype(np.float64)
    while len(diagonal) > _FEW_ROWS:
        label, count = _aggregated(*graph)
        if count > _LEAST_SHRINKAGE * len(diagonal):
            return
        room = empty(len(graph[1]), np.int32), empty(len(graph[1]), np.float64)
        indptr, diagonal = _galerkin(*graph, diagonal, label, count, *room)
        indices, data = (array[: indptr[-1]] for array in room)
        coarse = CoarseGraph(label, indptr, indices, data, diagonal)
        yield coarse
        graph = coarse.indptr, coarse.indices, coarse.data


def levels_of(
    operator: Operator,
    graphs: Sequence[CoarseGraph],
    rows: NDArray[np.int64],
    marks: Array,
    allocate: Allocate,
) -> tuple[Level, ...]:
    """Return a Laplacian with weights on some rows, and the same of its coarse graphs.

    Parameters
    ----------
    operator
        L.
    graphs
        Of `coarse_graphs`; of the type of the operator, or of double.
    rows : array of int, shape (l,)
        Ascending.
    marks : array, shape (l, WIDTH)
        At least 0.
    allocate
        Gives two arrays for each graph.
    """
    kind, nothing = operator.diagonal.dtype, np.empty((0, WIDTH), operator.diagonal.dtype)
    blocks, diagonal, B, X = tuple(operator.blocks), operator.diagonal, nothing, nothing
    levels: list[Level] = []
    for graph in graphs:
        levels.append(Level(blocks, diagonal, rows, marks, graph.label, B, X))
        # Of one type on all levels, as kernels are compiled for each.
        rows, place = np.unique(graph.label[rows].astype(np.int64), return_inverse=True)
        sums = allocate(len(rows))
        np.add.at(sums, place, marks)
        data = graph.data.astype(kind, copy=False)
        blocks = (RowBlock(0, graph.indptr, graph.indices, data),)
        marks, diagonal = sums, read_only(graph.diagonal.astype(kind, copy=False))
        B, X = allocate(len(diagonal)), allocate(len(diagonal))
    return (*levels, Level(blocks, diagonal, rows, marks, np.empty(0, np.int32), B, X))


def _joined(operator: Operator, empty: Empty) -> tuple[Array, Array, Array]:
    """Return the off-diagonal part as one CSR: sums do not depend on how rows are cut into blocks."""
    if len(operator.blocks) == 1:
        (block,) = operator.blocks
        return block.indptr, block.indices, block.data
    ends = np.cumsum([0] + [int(block.indptr[-1]) for block in operator.blocks])
    indptr = np.zeros(operator.rows + 1, np.int64)
    indices, data = empty(ends[-1], np.int32), empty(ends[-1], operator.diagonal.dtype)
    for block, first, last in zip(operator.blocks, ends[:-1], ends[1:], strict=True):
        indptr[block.first + 1 : block.first + len(block.indptr)] = first + block.indptr[1:]
        indices[first:last] = block.indices[: last - first]
        data[first:last] = block.data[: last - first]
    return read_only(indptr), read_only(indices), read_only(data)


def _aggregated(indptr: Array, indices: Array, data: Array) -> tuple[NDArray[np.int32], int]:
    """Return an aggregate for each row, a pair of pairs, and their number."""
    pair, count = _match(indptr, indices, data)
    pair_of_pairs, count = _match_pairs(indptr, indices, data, pair, count)
    return pair_of_pairs[pair], count


def _sweep(level: Level, B: Array, X: Array, *, forward: bool) -> None:
    """One Gauss-Seidel sweep over the rows of a level."""
    for block in level.blocks if forward else reversed(level.blocks):
        _relax(
            block.indptr, block.indices, block.data, level.diagonal, block.first, level.rows,
            level.marks, B, X, forward,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _match(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Return a pair for each row and their number; a row without a free neighbour joins its strongest one."""
    rows = len(indptr) - 1
    label = np.full(rows, -1, np.int32)
    count = 0
    for row in range(rows):
        if label[row] >= 0:
            continue
        free, taken, best, most = -1, -1, 0.0, 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            if other == row:
                continue
            if label[other] < 0 and data[entry] > best:
                free, best = other, data[entry]
            if label[other] >= 0 and data[entry] > most:
                taken, most = other, data[entry]
        count = _join(row, free, taken, label, count)
    return label, count


@njit(cache=True, nogil=True)
def _join(own, free, taken, label, count):  # type: ignore[no-untyped-def]
    """Label a row with a free one, or as one that is taken, or alone; return the number of labels."""
    if free < 0 and taken >= 0:
        label[own] = label[taken]
        return count
    label[own] = count
    if free >= 0:
        label[free] = count
    return count + 1


@njit(cache=True, nogil=True)
def _members(label, count):  # type: ignore[no-untyped-def]
    """Return the rows of each aggregate one after the other, and where each begins."""
    begin = np.zeros(count + 1, np.int64)
    for row in range(len(label)):
        begin[label[row] + 1] += 1
    for aggregate in range(count):
        begin[aggregate + 1] += begin[aggregate]
    members, place = np.empty(len(label), np.int32), begin[:-1].copy()
    for row in range(len(label)):
        members[place[label[row]]] = row
        place[label[row]] += 1
    return members, begin


@njit(cache=True, nogil=True)
def _add_edges(indptr, indices, data, rows, label, own, sums, seen, others, filled):  # type: ignore[no-untyped-def]
    """Sum the edges of the rows of an aggregate by the aggregate at their other end.

    Sets sums at those aggregates, and others to them from `filled` on; returns where others ends, and the
    sum of the edges within.
    """
    inside = 0.0
    for row in rows:
        for entry in range(indptr[row], indptr[row + 1]):
            other = label[indices[entry]]
            if other == own:
                inside += data[entry]
            elif seen[other] != own:
                seen[other] = own
                others[filled] = other
                sums[other] = data[entry]
                filled += 1
            else:
                sums[other] += data[entry]
    return filled, inside


@njit(cache=True, nogil=True)
def _match_pairs(indptr, indices, data, pair, count):  # type: ignore[no-untyped-def]
    """Match pairs as `_match` does rows, by the sum of the edges between two."""
    members, begin = _members(pair, count)
    sums, seen = np.zeros(count), np.full(count, -1, np.int32)
    nearby, label = np.empty(count, np.int32), np.full(count, -1, np.int32)
    matched = 0
    for own in range(count):
        if label[own] >= 0:
            continue
        rows = members[begin[own] : begin[own + 1]]
        filled, _ = _add_edges(indptr, indices, data, rows, pair, own, sums, seen, nearby, 0)
        free, taken, best, most = -1, -1, 0.0, 0.0
        for number in range(filled):
            other = nearby[number]
            if label[other] < 0 and sums[other] > best:
                free, best = other, sums[other]
            if label[other] >= 0 and sums[other] > most:
                taken, most = other, sums[other]
        matched = _join(own, free, taken, label, matched)
    return label, matched


@njit(cache=True, nogil=True)
def _galerkin(indptr, indices, data, diagonal, label, count, across, values):  # type: ignore[no-untyped-def]
    """Set across and values to the graph between aggregates; return where rows begin, and its diagonal."""
    members, begin = _members(label, count)
    sums, seen = np.zeros(count), np.full(count, -1, np.int32)
    starts, own = np.zeros(count + 1, np.int64), np.zeros(count)
    filled = 0
    for aggregate in range(count):
        rows, total = members[begin[aggregate] : begin[aggregate + 1]], 0.0
        for row in rows:
            total += diagonal[row]
        filled, inside = _add_edges(
            indptr, indices, data, rows, label, aggregate, sums, seen, across, filled
        )
        for entry in range(starts[aggregate], filled):
            values[entry] = sums[across[entry]]
        starts[aggregate + 1] = filled
        own[aggregate] = total - inside
        if own[aggregate] < 1e-6 * total:
            own[aggregate] = 0.0  # a whole component: what is left is rounding
    return starts, own


@njit(cache=True, nogil=True)
def _relax(indptr, indices, data, diagonal, first, rows, marks, B, X, forward):  # type: ignore[no-untyped-def]
    """Solve each row of a block for its own unknowns, in their order or the other way."""
    sums, last, count = np.empty(WIDTH, X.dtype), len(indices) - 1, len(indptr) - 1
    step = 1 if forward else -1
    row = 0 if forward else count - 1
    special = np.searchsorted(rows, first) if forward else np.searchsorted(rows, first + count) - 1
    for _ in range(count):
        here = first + row
        if forward:
            add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        else:
            add_rows_backward(indices, data, indptr[row], indptr[row + 1], X, sums)
        if 0 <= special < len(rows) and rows[special] == here:
            for column in range(WIDTH):
                whole = diagonal[here] + marks[special, column]
                if whole > 0:
                    X[here, column] = (B[here, column] + sums[column]) / whole
            special += step
        elif diagonal[here] > 0:
            inverse = 1 / diagonal[here]
            for column in range(WIDTH):
                X[here, column] = (B[here, column] + sums[column]) * inverse
        row += step


@njit(cache=True, nogil=True)
def _restrict(indptr, indices, data, diagonal, first, rows, marks, B, X, label, coarse):  # type: ignore[no-untyped-def]
    """Add the residual B - (L + diag(marks)) X to the aggregates."""
    sums, last = np.empty(WIDTH, X.dtype), len(indices) - 1
    special = np.searchsorted(rows, first)
    for row in range(len(indptr) - 1):
        here = first + row
        above = label[here]
        add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        for column in range(WIDTH):
            coarse[above, column] += (
                B[here, column] + sums[column] - diagonal[here] * X[here, column]
            )
        if special < len(rows) and rows[special] == here:
            for column in range(WIDTH):
                coarse[above, column] -= marks[special, column] * X[here, column]
            special += 1


@njit(cache=True, nogil=True)
def _prolong(coarse, label, X):  # type: ignore[no-untyped-def]
    for row in range(len(X)):
        for column in range(WIDTH):
            X[row, column] += coarse[label[row], column]
