"""The iteration by rows: the parts of a problem, and the steps of a filter on all of them.

`layout.py` chooses the number of parts, `halos.py` prepares them, and `rows.py` holds the tasks.
"""

from collections.abc import Sequence
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
from eigenscape.spectrum.iteration.halos import Cut, fill_outbox, find_halo, halo_rows
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.rows import Stored
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.gather import WIDTH

_KEEP_STEPS = (8, 64)
"""Least and most steps between two times that the vectors themselves are written: at 1 GB a second that takes
as long as two steps."""


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
        name = problem.name
        work: Any = partial(rows.null_squares, problem)
        squares = run(f"squares-{name}", work, ["all"], label="null vectors")[0]
        if squares is None:
            return None
        cut = Cut.of(problem.operator.rows, parts, problem.directory)
        cut.folder.mkdir(exist_ok=True)
        numbers, step = list(range(cut.parts)), f"{name}-{cut.parts}"
        work = partial(find_halo, problem.operator, cut)
        found = run(f"halo-{step}", work, numbers, label="halos")
        sent = run(f"outbox-{step}", partial(fill_outbox, cut), numbers, label="halos")
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
    ) -> bool:
        """Write p(A) X; return whether it is usable: see `eigenscape.spectrum.iteration.tasks.Filter`.

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
            return bool(np.load(done))
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
        usable = all(self.run(f"{step}-{self.cut.parts}", finish, self._items(groups), label=label))
        for path in self.problem.directory.glob(f"{Path(stem).name}-*"):
            path.unlink(missing_ok=True)
        save_array(done, np.array(usable))
        return usable

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
        halos = [halo_rows(folder, part) for part in range(parts)]
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
