"""The layout of a filter: groups of columns, or parts of the rows of each group.

Columns are independent of each other, so that a task per group has nothing to wait for; but each maps all
rows, and there are no more tasks than groups. Parts of the rows are as many as there are tasks to run, and
each maps its own rows and its halo; they wait for each other after every step. The result is the same to
the bit, so the choice is one of time and memory alone, and may change from pass to pass.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import save_array, save_scratch, scratch_stem
from eigenscape.base.memory import format_bytes
from eigenscape.clusters import Order
from eigenscape.context import Map
from eigenscape.spectrum.iteration import rows
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.rows import Cut, Stored
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.gather import WIDTH

_ENTRY_S = 3.7e-9
"""Seconds of an entry of the matrix in a product with a group, on one thread: 40 ms for the 10.9 million of
`tests/bench/spectrum.py`, measured."""

_MORE = 1.5
"""Times that a product by rows takes, mail and vectors that are written included: processor time of two
workers, measured as 1.3 (640,976 rows, degree 75) to 1.6 (four times the rows, degree 20)."""

_TASK_S = 0.015
"""Seconds of a task on a worker process beside its work: 7 ms of the worker and 8 ms of driver and
scheduler, as measured. A task on a thread takes less than 1 ms."""

_GAIN = 0.8
"""Share of the time by columns below which the time by rows must be for rows to be chosen."""

_HALO_SHARE = 0.5
"""Assumed share of the rows in halos; on the Smith scene, the halos of 16 parts are a third."""

_TASKS_AT_ONCE = 2
"""Tasks of each part under way: a worker has one while the other waits for its neighbours."""

_LEAST_S = 0.1
"""Seconds that a task takes at least, if there are groups enough."""

_KEEP_STEPS = (8, 64)
"""Least and most steps between two times that the vectors themselves are written: at 1 GB a second that takes
as long as two steps."""


@dataclass(frozen=True)
class Layout:
    """The choice between the two layouts of a filter.

    Attributes
    ----------
    asked
        Layout of the job: "auto", "columns" or "rows".
    slots
        Number of tasks that run at a time.
    budget
        Bytes of anonymous memory that one task may take.
    note
        Called with the halo and the bytes of a step where rows are chosen.
    """

    asked: str = "columns"
    slots: int = 1
    budget: int = 2**30
    note: Callable[[str], None] = lambda text: None

    def parts(self, problem: Problem, groups: int) -> int:
        """Return the number of parts of the rows, 0 for the layout by columns.

        Parameters
        ----------
        problem
            The operator on disk.
        groups
            Number of groups of 32 columns.
        """
        operator = problem.operator
        if operator.ties is not None:
            return 0
        return self.choose(operator.rows, operator.entries, operator.dtype, groups)

    def choose(self, rows: int, entries: int, dtype: str, groups: int) -> int:
        """Return the number of parts of the rows, 0 for the layout by columns, for an operator without ties.

        Parameters
        ----------
        rows, entries, dtype
            Number of rows, number of entries and type of the operator.
        groups
            Number of groups of 32 columns.
        """
        if self.asked == "columns":
            return 0
        size = WIDTH * np.dtype(dtype).itemsize
        held, most = 2 * size * rows * (1 + _HALO_SHARE), len(tiles.tiles(rows))
        parts = min(max(self.slots, math.ceil(held / max(self.budget, 1))), most)
        if self.asked == "rows":
            return min(max(parts, 2), most)
        if self.slots == 1 or parts < 2:
            return 0
        product = _ENTRY_S * entries
        by_columns = -(-groups // self.slots) * product
        _, width = self.under_way(entries, parts, groups)
        turns = -(-parts // self.slots)
        by_rows = turns * (groups * _MORE * product / parts + -(-groups // width) * _TASK_S)
        mapped = entries * (4 + np.dtype(dtype).itemsize) + 3 * rows * size
        fits = mapped <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return parts if by_rows < _GAIN * by_columns or not fits else 0

    def footprint(self, rows: int, entries: int, dtype: str, groups: int) -> tuple[float, float]:
        """Return the bytes of memory of one of as many tasks as run at a time, and of scratch; see `choose`.

        0 for columns. Halos are taken as half of the rows.
        """
        parts = self.choose(rows, entries, dtype, groups)
        if not parts:
            return 0.0, 0.0
        vector = WIDTH * np.dtype(dtype).itemsize * rows * (1 + _HALO_SHARE)
        at_once, width = self.under_way(entries, parts, groups)
        together = min(groups, at_once * width)
        # Two vectors of each group; on disk twice, with the mail since, and columns numbered anew.
        memory = min(2 * vector * together / self.slots, float(self.budget))
        return memory, 4.0 * entries + 16 * rows + 8 * vector * together

    def under_way(self, entries: int, parts: int, groups: int) -> tuple[int, int]:
        """Return how many tasks of a part are under way, and the groups of each, memory left aside."""
        part = _ENTRY_S * max(entries, 1) / parts
        at_once = min(_TASKS_AT_ONCE, max(1, int(groups * part / _LEAST_S)))
        return at_once, min(-(-groups // at_once), max(1, math.ceil(_LEAST_S / part)))


BY_COLUMNS = Layout()
"""The layout by columns, as a default."""


@dataclass(frozen=True)
class RowParts:
    """The parts of one problem, and the steps of the iteration by them.

    Attributes
    ----------
    problem, run
        See `eigenscape.spectrum.iteration.subspace.Subspace`.
    cut
        The parts.
    near
        Of each part, those whose mail it takes or that take its own; and itself.
    halos
        Rows in the halo of each.
    squares : array, shape (components,)
        Squared lengths of the null vectors; empty where there are none.
    layout
        Memory and slots.
    """

    problem: Problem
    run: Map
    cut: Cut
    near: tuple[tuple[int, ...], ...]
    halos: tuple[int, ...]
    squares: NDArray[np.float64]
    layout: Layout

    @classmethod
    def prepare(cls, problem: Problem, run: Map, layout: Layout, parts: int) -> "RowParts | None":
        """Find the halos of all parts; None where the graph has too many components."""
        level = problem.level
        work: Any = partial(rows.null_squares, problem)
        squares = run(f"squares-{level}", work, ["all"], label="null vectors")[0]
        if squares is None:
            return None
        cut = Cut.of(problem.operator.rows, parts, problem.directory)
        cut.folder.mkdir(exist_ok=True)
        numbers, step = list(range(cut.parts)), f"{level}-{cut.parts}"
        work = partial(rows.find_halo, problem.operator, cut)
        found = run(f"halo-{step}", work, numbers, label="halos")
        sent = run(f"outbox-{step}", partial(rows.fill_outbox, cut), numbers, label="halos")
        near = [{part, *each["owners"]} for part, each in enumerate(found)]
        for part, each in enumerate(found):
            for owner in each["owners"]:
                near[owner].add(part)
        halos = tuple(each["halo"] for each in found)
        ready = cls(
            problem, run, cut, tuple(tuple(sorted(each)) for each in near), halos,
            np.array(squares), layout,
        )  # fmt: skip
        assert sum(sent) == sum(halos), "what is sent is what is named"
        measured = _measure(problem, sum(halos), cut.parts)
        layout.note(
            f"{cut.parts} parts of the rows: halos of {measured['halo_rows']} rows, "
            f"{measured['halo_share']:.1%} of all; {format_bytes(measured['step_bytes'])} written and "
            f"read in a step of {WIDTH} columns"
        )
        return ready

    def _items(self, groups: int) -> list[tuple[int, int]]:
        return [(part, group) for group in range(groups) for part in range(self.cut.parts)]

    def filter(
        self, step: str, vectors: Vectors, filtered: Vectors, plan: FilterPlan, label: str
    ) -> None:
        """Write p(A) X; see `eigenscape.spectrum.iteration.tasks.Filter`.

        Parameters
        ----------
        step
            Name of the step.
        vectors, filtered
            X, and where the result goes.
        plan
            p.
        label
            Text of the progress bar.
        """
        done = Path(f"{filtered.files[0]}-done.npy")
        if done.exists():
            return
        stem, stored, groups = (
            str(scratch_stem(self.problem.directory)),
            self._stored,
            vectors.groups,
        )
        at_once, width, every = self._keeping(groups)
        shares = None
        if len(self.squares):
            shares = f"{stem}-before"
            sums = rows.Sums(stored, self.cut, vectors)
            work = self.run(f"{step}-sums", sums, self._items(groups), label=label, keep=False)
            self._save_shares(shares, work)
        steps = rows.Steps(stored, self.cut, vectors, plan, stem, shares, every)
        items, order = self._wave(plan.degree, groups, at_once, width)
        try:
            results = self.run(f"{step}-steps", steps, items, label=label, keep=False, order=order)
        finally:
            rows.forget(stem)
        if len(self.squares):
            shares = f"{stem}-after"
            last = {
                (part, group): sums
                for (_, part, first, end), result in zip(items, results, strict=True)
                if result is not None
                for group, sums in zip(range(first, end), result, strict=True)
            }
            self._save_shares(shares, [last[item] for item in self._items(groups)])
        finish = rows.Finish(steps, filtered, shares)
        self.run(f"{step}-{self.cut.parts}", finish, self._items(groups), label=label)
        for path in self.problem.directory.glob(f"{Path(stem).name}-*"):
            path.unlink(missing_ok=True)
        save_array(done, np.zeros(0))

    def image(self, step: str, vectors: Vectors, image: Vectors, label: str) -> None:
        """Write A X."""
        work = rows.Image(self._stored, self.cut, vectors, image)
        self.run(f"{step}-{self.cut.parts}", work, self._items(vectors.groups), label=label)

    def residuals(
        self, step: str, vectors: Vectors, values: NDArray[np.float64], label: str
    ) -> list[list[float]]:
        """Return |A x - theta x| of every column, group by group; infinite where theta is."""
        work = rows.Residuals(self._stored, self.cut, vectors, values)
        items = self._items(vectors.groups)
        found = self.run(step, work, items, label=label, keep=False)
        norms = []
        for group in range(vectors.groups):
            theta = values[group * WIDTH : (group + 1) * WIDTH]
            parts = found[group * self.cut.parts : (group + 1) * self.cut.parts]
            squares = tiles.add_tiles(sums for part in parts for sums in part)
            norms.append(np.where(np.isfinite(theta), np.sqrt(squares), np.inf).tolist())
        return norms

    @property
    def _stored(self) -> Stored:
        return Stored.of(self.problem)

    def _keeping(self, groups: int) -> tuple[int, int, int]:
        """Return how many tasks of a part are under way, the groups of each, and `Steps.every`."""
        operator, cut = self.problem.operator, self.cut
        size = WIDTH * np.dtype(operator.dtype).itemsize
        most = max(cut.bounds[p + 1] - cut.bounds[p] + self.halos[p] for p in range(cut.parts))
        held = 2 * size * most * -(-cut.parts // self.layout.slots)
        # The mail that waits takes as much as the vectors that it follows.
        steps = 2 * operator.rows // max(1, sum(self.halos))
        every = min(max(steps, _KEEP_STEPS[0]), _KEEP_STEPS[1])
        fitting = self.layout.budget // held
        if not fitting:
            return 1, 1, 1
        at_once, width = self.layout.under_way(operator.entries, cut.parts, groups)
        at_once = min(at_once, fitting)
        return at_once, min(width, fitting // at_once), every

    def _save_shares(self, stem: str, sums: Sequence[list[tiles.NullSum]]) -> None:
        """Write what each group holds of the null vectors, from the sums of `_items`."""
        for group in range(len(sums) // self.cut.parts):
            parts = sums[group * self.cut.parts : (group + 1) * self.cut.parts]
            whole = tiles.null_shares((each for part in parts for each in part), self.squares)
            save_scratch(f"{stem}-{group}", whole)

    def _wave(
        self, degree: int, groups: int, at_once: int, width: int
    ) -> tuple[list[rows.StepItem], Order]:
        """Return all steps of a filter, and what each waits for.

        A step of a part waits for the steps before of the parts near it alone, so that no worker waits
        for the slowest of all; groups wait for those before them, so that few are under way.
        """
        items, after = list[rows.StepItem](), list[list[int]]()
        place = dict[tuple[int, int, int], int]()
        numbers, ranges = range(self.cut.parts), blocks(groups, width)
        for begin in range(0, len(ranges), at_once):
            together = range(begin, min(begin + at_once, len(ranges)))
            for step in range(degree + 1):
                for number in together:
                    for part in numbers:
                        waits: list[int] = []
                        if step:
                            waits = [place[step - 1, other, number] for other in self.near[part]]
                        elif begin:
                            waits = [place[degree, other, number - at_once] for other in numbers]
                        place[step, part, number] = len(items)
                        items.append((step, part, *ranges[number]))
                        after.append(waits)
        return items, Order(after, [item[1] for item in items])


def describe_rows(problem: Problem) -> list[dict[str, Any]]:
    """Return the parts that the rows of a problem were cut into, if they were, from what lies on disk.

    Returns
    -------
    list of dict
        `parts`; `halo_rows`, of all parts together; `halo_share`, of all rows; and `step_bytes`, which a
        step of 32 columns writes and reads for them.
    """
    found = []
    for folder in problem.directory.glob("rows-*"):
        parts = int(folder.name.removeprefix("rows-"))
        halos = [rows.halo_rows(folder, part) for part in range(parts)]
        if None not in halos:
            found.append(_measure(problem, sum(halo or 0 for halo in halos), parts))
    return sorted(found, key=lambda each: each["parts"])


def _measure(problem: Problem, halo: int, parts: int) -> dict[str, Any]:
    size = WIDTH * np.dtype(problem.operator.dtype).itemsize
    return {
        "parts": parts,
        "halo_rows": halo,
        "halo_share": round(halo / problem.operator.rows, 4),
        "step_bytes": 2 * halo * size,
    }
