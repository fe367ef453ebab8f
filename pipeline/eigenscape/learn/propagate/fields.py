"""Classifiers that spread labels over the graph itself: one field for every class of every fit.

Columns are classes of fits, one fit after the other, in groups of `WIDTH`: each group is a task. Of
the first fit all rows are kept, for the map; of the others those of the labelled samples, unless the
job smooths, which takes all rows of all fits.

Labels of large groups of identical samples may count together (`FieldMethod.pools`): the sample that
represents a group in the graph gets their mean, and all samples of the group get its values.

Single precision is enough for most. A graph that almost falls apart is out of its reach: groups that
do not reach the tolerance are solved again in double. Of a graph of up to `EXACT_ROWS` rows the
groups that make the map are solved in double, and so far that no class depends on where the
iteration starts: a job starts from its eigenvectors, and an estimator has none.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.files.mapped import (
    attach_memmap,
    clear_scratch,
    create_memmap,
    note_rows,
    save_array,
)
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.shares import counted
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.labels.priors import wanted_shares
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.kernels.decisions import choose, keep_class
from eigenscape.learn.decide.kernels.leads import usual_lead
from eigenscape.learn.propagate.deflation import LowestPairs, lowest_pairs
from eigenscape.learn.propagate.hierarchy import StoredGraphs
from eigenscape.learn.propagate.identical import Identical, find_identical
from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.conjugate import Allocate
from eigenscape.learn.propagate.method import FieldMethod, Group
from eigenscape.learn.propagate.scratchfields import fits_in, scratch_fields
from eigenscape.learn.propagate.sizes import EXACT_ROWS, making_bytes
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, Operator
from eigenscape.spectrum.scaled import StoredGraph, sample_rows, store_laplacian, stored_graph
from eigenscape.spectrum.stored import StoredOperator, open_stored

TOLERANCE = 1e-4
"""Relative residual that every group has to reach."""

_EXACT_TOLERANCE = 1e-9

_ROUGH_TOLERANCE = 1e-3
"""The same where no map is made: accuracies move by less than draws differ by."""

_LARGE_TOLERANCE = 5e-4
"""What may be left of larger graphs than `EXACT_ROWS` where multigrid cycles in single precision get no
further, as with squares of a Laplacian: in double they would take twice the memory and time."""

_DOUBTFUL = 5e-3
"""Relative residual above which classes may be wrong: ten times the largest that is accepted."""


@dataclass(frozen=True)
class Fields:
    """Label propagation on a stored Laplacian.

    Attributes
    ----------
    options
        Method and its parameters.
    labelled
        The labelled samples.
    operator
        L = D - W.
    component
        Path of the component of each row, None for a connected graph.
    folder
        Where the fields go.
    graphs
        Smaller graphs of the operator; None for a method without multigrid cycles.
    lowest
        Eigenpairs of this graph; None without, and with a potential: theirs are of another operator.
    in_memory
        Whether a task may hold its arrays in memory; they are mapped from scratch files otherwise.
    identical
        Groups of identical samples whose labels are pooled; None without.
    exact
        Groups that are solved so far that no class depends on where the iteration starts.
    residual
        The largest one that was left, once they are solved.
    doubled
        Groups that are solved in double; under names of their own, as others may have been in single
        precision before.
    """

    options: FieldMethod
    labelled: Labelled
    operator: StoredOperator
    component: str | None
    folder: Path
    graphs: StoredGraphs | None
    lowest: LowestPairs | None
    in_memory: bool
    identical: Identical | None = None
    exact: tuple[int, ...] = ()
    residual: float = 0.0
    doubled: tuple[int, ...] = ()

    @property
    def bytes_per_sample(self) -> float:
        """Rows of a group, picked out."""
        return 8 * WIDTH

    @property
    def warning(self) -> str:
        """A warning if the solution is far from its tolerance; "" if not."""
        if self.residual <= _DOUBTFUL:
            return ""
        return (
            f"the fields of the classes have not converged: their largest relative residual is "
            f"{self.residual:.1e}, {TOLERANCE:.0e} is wanted. Classes and confidence may be wrong: set "
            'neighbors.k to more, or learn.method to "eigenfunctions" or "k-nn"'
        )

    @property
    def kept(self) -> int:
        """Columns of which all rows are kept."""
        count = self.labelled.count
        if not (self.labelled.mapped or self.options.smoothing):
            return 0
        return count * len(self.labelled.train) if self.options.smoothing else count

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """Columns of each group; a column is a number of fit times classes, plus a class."""
        count, fits = self.labelled.count, len(self.labelled.train)
        columns = np.arange(fits * count)
        if self.options.whole_fits:
            # Thresholds compare the classes of one fit: as many fits as have room, all whole.
            step = max(1, WIDTH // count) * count
            return [columns[first : first + step] for first in range(0, len(columns), step)]
        return [columns[first : first + WIDTH] for first in range(0, len(columns), WIDTH)]

    def aim(self, number: int) -> float:
        """Return the relative residual that a group has to reach."""
        if number in self.exact:
            return _EXACT_TOLERANCE
        return TOLERANCE if self.labelled.mapped else _ROUGH_TOLERANCE

    def solve(self, number: int) -> dict[str, Any]:
        """Compute the fields of a group; return how well they fulfil their equations."""
        columns = self.groups[number]
        operator = self.operator.open()
        row = self._rows_of(self.labelled.sample)
        with scratch_fields(self.folder, self.operator.dtype, in_memory=self.in_memory) as allocate:
            labels = self._labels(row, columns, allocate)
            X, said = self._propagate(operator, labels, allocate, columns, self.aim(number))
            self._mark_alone(X, row, columns)
            self._share(X)
            found = self._mapped("labelled", number, "r+")
            for block in blocks(len(row), ROW_TILE):
                own = row[slice(*block)]
                part = np.full((len(own), len(columns)), np.nan, np.float32)
                part[own >= 0] = X[own[own >= 0], : len(columns)]
                found[slice(*block)] = part
            note_rows(found)
            save_array(self._file("mass", number, ".npy"), self._masses(X, row, columns))
            if columns[0] < self.kept:
                field = self._mapped("field", number, "r+")
                field[:] = X[:, : len(columns)]
                note_rows(field)
        return said

    def _mark_alone(self, X: Array, row: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        """Give all rows to the one class that a fit knows within the graph: all potentials are 0 then."""
        if not self.options.potentials:
            return
        fits, classes = np.divmod(columns, self.labelled.count)
        for fit in np.unique(fits):
            known = np.flatnonzero(self._counts(int(fit), row))
            if len(known) == 1:
                X[:, np.flatnonzero((fits == fit) & (classes == known[0]))] = 1

    def _counts(self, fit: int, row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the training samples of each class that are in the graph."""
        inside = self.labelled.train[fit] & (row >= 0)
        return np.bincount(self.labelled.classes[inside], minlength=self.labelled.count)

    def _labels(
        self, row: NDArray[np.int64], columns: NDArray[np.int64], allocate: Allocate
    ) -> ColumnLabels:
        """Return the labels of a group of columns: of few rows, even where every sample has a label."""
        fits, classes = np.divmod(columns, self.labelled.count)
        inside = self.labelled.train[np.unique(fits)].any(axis=0) & (row >= 0)
        pool, represented = None, np.zeros(0, np.int64)
        if self.identical is not None:
            pool = self.identical.pool(self.labelled.sample)
            inside &= ~pool.moved
            represented = self._rows_of(pool.representative)
        own = np.flatnonzero(inside)
        rows = np.append(row[own], represented)
        order = np.argsort(rows)
        place = np.argsort(order)
        values = allocate(len(rows))
        values[:] = np.nan
        for column, (fit, number) in enumerate(zip(fits, classes, strict=True)):
            known = self.labelled.train[fit, own]
            values[place[: len(own)][known], column] = self.labelled.classes[own[known]] == number
        if pool is None:
            return ColumnLabels(rows[order], values)
        numbers, means_at = allocate(len(rows)), place[len(own) :]
        numbers[:] = 1
        for fit in np.unique(fits):
            here = np.flatnonzero(fits == fit)
            mean, count = pool.means(self.labelled, int(fit))
            values[np.ix_(means_at, here)] = mean[:, classes[here]]
            numbers[np.ix_(means_at, here)] = count[:, None]
        return ColumnLabels(rows[order], values, numbers)

    def _share(self, X: Array) -> None:
        """Give all samples of a group of identical ones the values of the one that represents them."""
        if self.identical is None or not self.identical.same_edges:
            return
        samples, first = self.identical.stand_ins()
        for block in blocks(len(samples), ROW_TILE):
            piece = slice(*block)
            to, source = self._rows_of(samples[piece]), self._rows_of(first[piece])
            inside = (to >= 0) & (source >= 0)
            X[to[inside]] = X[source[inside]]

    def _rows_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of some samples, -1 for those outside the graph."""
        return np.asarray(np.load(self.folder / "row.npy", mmap_mode="r")[samples])

    def _propagate(
        self,
        operator: Operator,
        labels: ColumnLabels,
        allocate: Allocate,
        columns: NDArray[np.int64],
        tolerance: float,
    ) -> tuple[Array, dict[str, Any]]:
        component = None if self.component is None else np.asarray(open_stored(self.component))
        start = None if self.lowest is None else self.lowest.solve
        graphs = None if self.graphs is None else self.graphs.open()
        group = Group(
            operator, labels, allocate, len(columns), self.labelled.count,
            partial(self._wanted, columns), component, start, tolerance, graphs,
        )  # fmt: skip
        return self.options.spread(group)

    def _masses(
        self, X: Array, row: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the sum of each column over the rows that its fit did not learn from."""
        sums = X.sum(axis=0, dtype=np.float64)[: len(columns)]
        for place, column in enumerate(columns):
            known = row[self.labelled.train[int(column) // self.labelled.count]]
            sums[place] -= X[known[known >= 0], place].sum(dtype=np.float64)
        return np.asarray(sums)

    def implied(self, number: int) -> NDArray[np.float64] | None:
        """See `eigenscape.learn.method.Prepared`: the mass of each class of a harmonic function.

        Poisson learning has scaled its potentials, and given sizes to its classes.
        """
        if not self.options.masses:
            return None
        masses = np.empty(self.labelled.count)
        for group, place, own in self._places(number):
            masses[own] = np.load(self._file("mass", group, ".npy"))[place]
        total = masses.sum()
        # Where all samples are labelled, no other has a share in the masses.
        return np.maximum(masses, 0) / total if total > 0 else np.zeros_like(masses)

    def _wanted(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share that the class of each column is to have."""
        fits, classes = np.divmod(columns, self.labelled.count)
        row = self._rows_of(self.labelled.sample)
        shares = np.empty(len(columns))
        for fit in np.unique(fits):
            wanted = wanted_shares(self.options.wanted_prior, self.labelled, int(fit))
            known = self._counts(int(fit), row) > 0
            if not known.all() and wanted[known].sum() > 0:
                # The graph may be one component of several, with labels of some classes alone.
                wanted = np.where(known, wanted, 0) / wanted[known].sum()
            shares[fits == fit] = wanted[classes[fits == fit]]
        return shares

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        scores = np.empty((len(self.labelled.sample), self.labelled.count), np.float32)
        for group, place, own in self._places(number):
            scores[:, own] = self._mapped("labelled", group)[:, place]
        if not self.options.potentials:
            return scores
        save_array(self.folder / f"lead-{number}.npy", np.array(usual_lead(scores)))
        return self._as_shares(scores, number)

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        rows = np.load(self.folder / "row.npy", mmap_mode="r")[slice(*block)]
        inside = rows >= 0
        scores = np.full((len(rows), self.labelled.count), np.nan, np.float32)
        for group, place, own in self._places(number):
            scores[inside, own] = self._mapped("field", group)[rows[inside], place]
        return self._as_shares(scores, number) if self.options.potentials else scores

    def _as_shares(self, scores: NDArray[np.float32], number: int) -> NDArray[np.float32]:
        """Return potentials in units of twice their usual lead, about the share of one class of all."""
        usual = np.float32(np.load(self.folder / f"lead-{number}.npy"))
        shares = np.float32(1 / self.labelled.count) + scores / (2 * usual)
        return keep_class(shares, choose(scores))

    def _places(self, fit: int) -> list[tuple[int, int, int]]:
        """Return group, place in it and class of every column of a fit."""
        first = fit * self.labelled.count
        return [
            (number, place, int(column) - first)
            for number, columns in enumerate(self.groups)
            for place, column in enumerate(columns)
            if first <= column < first + self.labelled.count
        ]

    def _file(self, part: str, group: int, ending: str = "") -> Path:
        doubled = "-double" if group in self.doubled else ""
        return self.folder / f"{part}-{group}{doubled}{ending}"

    def _mapped(self, part: str, number: int, mode: str = "r") -> NDArray[np.float32]:
        """Map the columns of a group: of all rows ("field") or of the labelled samples ("labelled")."""
        path = self._file(part, number)
        rows = self.operator.rows if part == "field" else len(self.labelled.sample)
        shape = (rows, len(self.groups[number]))
        if mode != "r":
            create_memmap(path, shape, np.float32)
        return attach_memmap(path, shape, np.float32, mode)


def prepare_fields(context: Context, labelled: Labelled) -> Fields:
    """Store the Laplacian and compute all fields."""
    graph = context.run.record("graph")
    assert graph is not None, "learn follows the graph"
    folder = context.workspace.folder("learn")
    clear_scratch(folder)
    weights, order = stored_graph(context.run), context.memmap("graph/sample")
    operator = store_laplacian(weights, folder, "unnormalized", "float32")
    save_array(folder / "row.npy", sample_rows(order, context.open("samples/pixel").shape[0]))
    component = None
    if not graph.summary["connected"]:
        component = str(folder / "component.npy")
        save_array(folder / "component.npy", np.asarray(context.memmap("graph/component")[order]))
    lowest = lowest_pairs(context, folder / "row.npy")
    method = context.job.learn
    assert isinstance(method, FieldMethod), "its classes are fields"
    fits = fits_in(context.task_bytes, operator, len(labelled.sample), method.arrays)
    graphs = _graphs(context, method, operator, folder, "coarse")
    identical = find_identical(context) if method.pools else None
    if identical is not None and method.potentials and not identical.same_edges:
        # Sources add up: those of copies, which stay where they are, would count twice.
        identical = None
    fields = Fields(method, labelled, operator, component, folder, graphs, lowest, fits, identical)
    solved, doubled = _solve_groups(context, fields, weights)
    worst = max(report["residual"] for report in solved)
    if not np.isfinite(worst):
        raise InputError(
            f'learn.method = "{method.method}": the fields of the classes left the range of numbers on this '
            'graph. Set learn.method to "eigenfunctions" or "k-nn", or neighbors.k to more.'
        )
    context.reporter.note(
        f"{method.method}: {counted(len(fields.groups), 'group')} of columns, {len(doubled)} in double, at "
        f"most {max(report['iterations'] for report in solved)} products each, largest relative "
        f"residual {worst:.1e}"
    )
    fields = replace(fields, residual=worst, doubled=doubled)
    if fields.warning:
        context.reporter.note(f"warning: {fields.warning}")
    return fields


def _solve_groups(
    context: Context, fields: Fields, weights: StoredGraph
) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """Solve all groups; return what is said of each solution, and which are in double."""
    rows, labelled = fields.operator.rows, fields.labelled
    exact = [
        number for number, columns in enumerate(fields.groups)
        if rows <= EXACT_ROWS and labelled.mapped and columns[0] < labelled.count
    ]  # fmt: skip
    fields = replace(fields, exact=tuple(exact))
    doubled = _in_double(context, fields, weights, exact) if exact else fields
    # Groups in double come first, as they take longest.
    numbers = list(range(len(fields.groups)))
    solved = context.map(
        "solve", partial(_solve, fields, doubled), numbers, label="spreading labels"
    )
    found = dict(enumerate(solved))
    # Where no map is made, what converges slowly is good enough as it is.
    large = fields.graphs is not None and rows > EXACT_ROWS
    enough = _LARGE_TOLERANCE if large else TOLERANCE
    again = [
        number for number, said in found.items()
        if number not in exact and labelled.mapped and said["residual"] > enough
    ]  # fmt: skip
    if again:
        doubled = doubled if exact else _in_double(context, fields, weights, again)
        work = partial(Fields.solve, replace(doubled, doubled=(*exact, *again)))
        solved = context.map("exact", work, again, label="spreading labels in double")
        found |= zip(again, solved, strict=True)
    return list(found.values()), (*exact, *again)


def _solve(single: Fields, double: Fields, number: int) -> dict[str, Any]:
    return (double if number in double.doubled else single).solve(number)


def _in_double(
    context: Context, fields: Fields, weights: StoredGraph, doubled: list[int]
) -> Fields:
    """Store the Laplacian in double, and return fields that are solved with it in some groups."""
    folder = context.workspace.folder("learn/exact")
    operator = store_laplacian(weights, folder, "unnormalized", "float64")
    method, samples = fields.options, len(fields.labelled.sample)
    # No plan can know that single precision will not do: on large graphs it counts on that, and the
    # arrays of double are mapped.
    fits = operator.rows <= EXACT_ROWS and fits_in(
        context.task_bytes, operator, samples, method.arrays
    )
    graphs = _graphs(context, method, operator, folder, "exact-coarse")
    return replace(fields, operator=operator, graphs=graphs, in_memory=fits, doubled=tuple(doubled))


def _graphs(
    context: Context, method: FieldMethod, operator: StoredOperator, folder: Path, step: str
) -> StoredGraphs | None:
    """Write the smaller graphs of an operator, for a method that takes multigrid cycles."""
    if not method.takes_cycles:
        return None
    number = np.dtype(operator.dtype).itemsize
    in_memory = making_bytes(operator.entries, number) <= context.task_bytes
    graphs = StoredGraphs(operator, folder, in_memory)
    (count,) = context.map(step, graphs.make, [0], label="smaller graphs")
    return replace(graphs, count=count)
