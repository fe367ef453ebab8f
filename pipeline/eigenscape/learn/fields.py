"""Classifiers that spread labels over the graph itself: one field for every class of every fit.

Columns are classes of fits, one fit after the other, in groups of `WIDTH`: each group is a task. Of
the first fit all rows are kept, for the map; of the others those of the labelled samples.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, create_memmap, open_memmap, save_array
from eigenscape.learn import propagation
from eigenscape.learn.eigenfunctions import leading
from eigenscape.learn.labelled import Labelled
from eigenscape.learn.targets import Labels
from eigenscape.learn.volumes import poisson_mbo
from eigenscape.options import LearnOptions
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.operator import Array, Operator, StoredOperator, open_stored
from eigenscape.spectrum.scaled import store_laplacian
from eigenscape.stage import Block, Context

METHODS = ("interpolated", "tikhonov", "poisson", "poisson-mbo")

MOST_ARRAYS = 5
"""Arrays of a group that a method holds at once."""


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
    in_memory
        Whether a task may hold its arrays in memory; they are mapped from scratch files otherwise.
    """

    options: LearnOptions
    labelled: Labelled
    operator: StoredOperator
    component: str | None
    folder: Path
    in_memory: bool

    @property
    def bytes_per_sample(self) -> float:
        """Scores of every class."""
        return 24 * self.labelled.count

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """Columns of each group; a column is a number of fit times classes, plus a class."""
        count, fits = self.labelled.count, len(self.labelled.train)
        columns = np.arange(fits * count)
        if self.options.method == "poisson-mbo":
            # Thresholds compare the classes of one fit.
            return list(columns.reshape(fits, count))
        return [columns[first : first + WIDTH] for first in range(0, len(columns), WIDTH)]

    def solve(self, number: int) -> dict[str, Any]:
        """Compute the fields of a group; return how well they fulfil their equations."""
        columns = self.groups[number]
        operator = self.operator.open()
        row = np.load(self.folder / "row.npy", mmap_mode="r")[self.labelled.sample]
        inside = np.flatnonzero(row >= 0)
        inside = inside[np.argsort(row[inside])]
        values = np.full((len(inside), WIDTH), np.nan)
        for place, column in enumerate(columns):
            fit, own = divmod(int(column), self.labelled.count)
            train = self.labelled.train[fit, inside]
            values[train, place] = self.labelled.classes[inside[train]] == own
        bench = _Bench(self.folder, number, self.operator.dtype, self.in_memory)
        try:
            X, said = self._propagate(operator, Labels(row[inside], values), bench)
            found = np.full((len(row), len(columns)), np.nan, np.float32)
            found[inside] = X[row[inside], : len(columns)]
            save_array(self.folder / f"labelled-{number}.npy", found)
            if columns[0] < self.labelled.count:
                field = self._field(number, "r+")
                field[:] = X[:, : len(columns)]
        finally:
            bench.clear()
        return said

    def _propagate(
        self, operator: Operator, labels: Labels, bench: "_Bench"
    ) -> tuple[Array, dict[str, Any]]:
        options = self.options
        component = None if self.component is None else np.asarray(open_stored(self.component))
        if options.method == "poisson-mbo":
            classes = self.labelled.count
            shares = np.nansum(labels.values[:, :classes], axis=0)
            sizes = _round_shares(shares / shares.sum(), operator.rows)
            found = poisson_mbo(operator, labels, sizes, bench, component=component).classes
            X = bench(operator.rows)
            X[np.arange(operator.rows), found] = 1
            return X, {"iterations": 0, "residual": 0.0}
        if options.method == "interpolated":
            result = propagation.interpolate(operator, labels, bench)
        elif options.method == "tikhonov":
            result = propagation.regularize(
                operator, labels, bench, gamma=options.gamma, power=options.power
            )
        else:
            result = propagation.poisson(operator, labels, bench, component=component)
        return result.X, {
            "iterations": result.solved.iterations,
            "residual": float(result.solved.residuals.max()),
        }

    def fit(self, number: int) -> NDArray[np.intp]:
        """See `eigenscape.learn.methods.Method`."""
        called, lead = leading(self._scores(number))
        if number == 0:
            known = lead[called >= 0]
            save_array(self.folder / "lead.npy", np.array(np.median(known) if len(known) else 1.0))
        return called

    def classify(self, block: Block) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """See `eigenscape.learn.methods.Method`.

        Confidence is the lead of the best class for values between 0 and 1; potentials, which have
        no scale of their own, are compared with the median lead on the labelled samples, which gets
        1/2.
        """
        rows = np.load(self.folder / "row.npy", mmap_mode="r")[slice(*block)]
        inside = rows >= 0
        scores = np.full((len(rows), self.labelled.count), np.nan, np.float32)
        for number, place, own in self._places(0):
            scores[inside, own] = self._field(number)[rows[inside], place]
        called, lead = leading(scores)
        if self.options.method in ("interpolated", "poisson-mbo"):
            return called, np.clip(lead, 0, 1)
        usual = np.float32(np.load(self.folder / "lead.npy"))
        total = lead + usual
        return called, np.divide(lead, total, out=np.zeros_like(lead), where=total > 0)

    def _scores(self, fit: int) -> NDArray[np.float32]:
        """Return the fields of a fit at the labelled samples, shape (labelled, classes)."""
        scores = np.empty((len(self.labelled.sample), self.labelled.count), np.float32)
        for number, place, own in self._places(fit):
            scores[:, own] = np.load(self.folder / f"labelled-{number}.npy", mmap_mode="r")[
                :, place
            ]
        return scores

    def _places(self, fit: int) -> list[tuple[int, int, int]]:
        """Return group, place in it and class of every column of a fit."""
        first = fit * self.labelled.count
        return [
            (number, place, int(column) - first)
            for number, columns in enumerate(self.groups)
            for place, column in enumerate(columns)
            if first <= column < first + self.labelled.count
        ]

    def _field(self, number: int, mode: str = "r") -> NDArray[np.float32]:
        path = self.folder / f"field-{number}"
        shape = (self.operator.rows, len(self.groups[number]))
        if mode != "r":
            create_memmap(path, shape, np.float32)
        return attach_memmap(path, shape, np.float32, mode)


class _Bench:
    """Gives zeros to work on, in memory or mapped from scratch files."""

    def __init__(self, folder: Path, group: int, dtype: str, in_memory: bool) -> None:
        self.folder, self.group, self.dtype, self.in_memory = folder, group, dtype, in_memory
        self.files: list[Path] = []

    def __call__(self, rows: int) -> Array:
        if self.in_memory:
            return np.zeros((rows, WIDTH), self.dtype)
        path = self.folder / f"work-{self.group}-{len(self.files)}"
        path.unlink(missing_ok=True)
        create_memmap(path, (rows, WIDTH), self.dtype)
        self.files.append(path)
        return attach_memmap(path, (rows, WIDTH), self.dtype, "r+")

    def clear(self) -> None:
        """Delete the scratch files."""
        for path in self.files:
            path.unlink(missing_ok=True)


def _round_shares(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return whole numbers in given shares of a total, to which they sum."""
    ends = np.round(np.cumsum(shares) * total).astype(np.int64)
    return np.diff(ends, prepend=0)


def prepare_fields(context: Context, labelled: Labelled) -> Fields:
    """Store the Laplacian and compute all fields."""
    graph = context.run.record("graph")
    assert graph is not None, "learn follows the graph"
    folder = context.workspace.folder("learn")
    operator = store_laplacian(context, folder, "unnormalized", "float32")
    order = context.memmap("graph/sample")
    row = np.full(context.open("samples/pixel").shape[0], -1, np.int64)
    row[order] = np.arange(len(order))
    save_array(folder / "row.npy", row)
    component = None
    if not graph.summary["connected"]:
        component = str(folder / "component.npy")
        save_array(folder / "component.npy", open_memmap(context.path("graph/component"))[order])
    fits_in = MOST_ARRAYS * operator.rows * WIDTH * 4 <= context.task_bytes
    fields = Fields(context.job.learn, labelled, operator, component, folder, fits_in)
    groups = list(range(len(fields.groups)))
    solved = context.map("solve", partial(Fields.solve, fields), groups, label="spreading labels")
    worst = max(said["residual"] for said in solved)
    context.reporter.note(
        f"{context.job.learn.method}: {len(groups)} group(s) of columns, at most "
        f"{max(said['iterations'] for said in solved)} products each, largest relative residual "
        f"{worst:.1e}"
    )
    return fields
