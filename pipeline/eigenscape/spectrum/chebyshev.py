"""Chebyshev-filtered subspace iteration over vectors on disk.

::

    start     coarse levels, each solved roughly by the passes below, or random vectors
    filter    groups of columns, independent of each other: no communication
    gram      blocks of columns: Y^T Y, Y^T A Y in double, summed in a fixed order
    rotate    row tiles: X <- [V Y] C
    residual  groups of columns: |A x - theta x|

Groups that have converged are locked: they are filtered no more, the others are kept orthogonal to
them. Nothing is overwritten before its pass is noted, so that a killed run goes on where it was.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.arrays import save_array
from eigenscape.files import write_json
from eigenscape.spectrum import columns, tasks
from eigenscape.spectrum.coarse import coarse_component
from eigenscape.spectrum.filter import FilterPlan
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.operator import StoredOperator
from eigenscape.spectrum.ritz import rayleigh_ritz
from eigenscape.spectrum.state import Map, Solution, State
from eigenscape.spectrum.tasks import Problem
from eigenscape.stage import blocks

MOST_PASSES = 40
DENSE_ROWS = 1200
"""Order up to which a coarse problem is solved by LAPACK."""

_COARSE_DEGREES = (12, 36)
"""Filters of a coarse level: more of it gains nothing, as its vectors are approximate anyway."""

_LEAST_GAIN = 3.0
"""Times that a pass with balanced rows has to reduce the residual, for the next to be one too."""

_LOCKED_SHARE = 0.25
"""Of the tolerance, at which vectors are locked: what is wrong in them is missing in the others."""


@dataclass(frozen=True)
class _Solver:
    """One level of one solve: the problem, where its spectrum ends, and what runs the tasks.

    Attributes
    ----------
    problem
        The operator on disk.
    run
        Runs the tasks.
    bound
        Upper bound of the spectrum.
    short_bound
        The same for the operator of a filter if the diagonal is stiff, None if it is not.
    """

    problem: Problem
    run: Map
    bound: float
    short_bound: float | None

    @classmethod
    def on(cls, problem: Problem, run: Map) -> "_Solver":
        work = partial(tasks.measure, problem)
        bound, short_bound = run(f"bound-{problem.level}", work, ["all"], label="bounds")[0]
        return cls(problem, run, bound, short_bound)

    @property
    def file(self) -> Path:
        return self.problem.directory / "state.json"

    def load(self) -> State | None:
        return State.read(self.file) if self.file.exists() else None

    def note(self, state: State, before: State | None = None) -> State:
        """Make a state the one to go on from, and only then delete what it does not need."""
        write_json(self.file, asdict(state))
        if before is not None:
            for path in {*before.files} - {*state.files}:
                Path(path).unlink(missing_ok=True)
        for name in ("filtered", "image"):
            self.problem.named(name, range(len(state.files)), create=False).remove()
        return state

    def begin(self, most: int, pairs: int | None = None) -> State:
        """Return the vectors to start from: those of a coarse problem, or random ones.

        Parameters
        ----------
        most
            Columns to start with, if nothing speaks for fewer.
        pairs
            Wanted pairs; None on a coarse level, where all columns are.
        """
        problem, level = self.problem, self.problem.level
        work: Any = partial(tasks.coarsen, problem, most)
        stored = self.run(f"coarsen-{level}", work, ["all"], label="coarsening")[0]
        if stored is None:
            start = problem.named("pass-0", range(most // WIDTH))
            cut = self.run(
                f"cut-{level}", partial(tasks.find_cut, problem, self.bound), [most], label="cut"
            )
            values, rough, most_cut = np.full(most, cut[0][0]), None, cut[0][1]
        else:
            directory = problem.directory / "coarse"
            below = Problem(
                StoredOperator.from_json(stored),
                coarse_component(problem.component, directory),
                directory,
                level + 1,
                problem.in_memory,
            )
            state = _Solver.on(below, self.run).solve_roughly(most)
            values, rough = np.array(state.values), below.vectors(state.files)
            most_cut = self.bound
            if pairs is not None:
                density = problem.operator.rows / problem.operator.entries
                values = values[: columns.choose_columns(values, pairs, self.bound, density)]
            start = problem.named("pass-0", range(len(values) // WIDTH))
        work = partial(tasks.start, problem, start, rough)
        self.run(f"start-{level}", work, list(range(start.groups)), label="start")
        return self.note(State(start.files, tuple(values), (np.inf,) * len(values), most_cut))

    def solve_roughly(self, most: int) -> State:
        """Return rough eigenpairs of a coarse problem, by LAPACK or a few short filters."""
        problem = self.problem
        if problem.operator.rows <= max(DENSE_ROWS, 2 * most):
            vectors = problem.named("dense", range(most // WIDTH))
            work = partial(tasks.solve_densely, problem, vectors)
            step = f"dense-{problem.level}"
            values = self.run(step, work, ["all"], label="coarsest level")[0]
            return State(vectors.files, tuple(values), (0.0,) * most, self.bound)
        state = self.load() or self.begin(most)
        for degree in _COARSE_DEGREES[state.passes :]:
            plan = columns.plan_short(
                np.array(state.values), degree, self.low(state), self.bound,
                np.dtype(problem.operator.dtype),
            )  # fmt: skip
            state = self.advance(state, plan)
        return state

    def balances(self, state: State) -> bool:
        """Whether the next filter sets stiff rows by the others."""
        return self.short_bound is not None and state.balanced

    def low(self, state: State) -> float:
        """Return where the spectrum begins: 0, or the lowest Ritz value if it is known to be more."""
        known = np.isfinite(state.residuals[0]) and not self.problem.operator.singular
        return max(0.0, min(state.values)) if known else 0.0

    def advance(self, state: State, plan: FilterPlan, pairs: int | None = None) -> State:
        """Filter, Rayleigh-Ritz, residuals: from the vectors of one pass to those of the next.

        Parameters
        ----------
        pairs
            Wanted pairs; None on a coarse level, where residuals are not worth their products.
        """
        balanced = pairs is not None and self.balances(state)
        problem, number, locked = self.problem, state.passes, state.locked
        step = f"{problem.level}-{number}"
        vectors = problem.vectors(state.files)
        active = range(locked, vectors.groups)
        filtered, image = (problem.named(name, active) for name in ("filtered", "image"))
        values = np.array(state.values)
        fixed = locked * WIDTH
        groups = list(range(len(active)))
        work: Any = tasks.Filter(
            problem, vectors[locked:], filtered, image, plan, values[fixed:], balanced
        )
        self.run(f"filter-{step}", work, groups, label=f"filter, degree {plan.degree}")
        gram = tasks.Gram(vectors[:locked], filtered, image)
        items = gram.items(columns.gram_rows(problem.operator.rows, vectors.columns))
        sums = self.run("gram", gram, items, label="Rayleigh-Ritz", keep=False)
        G, H, overlap = gram.assemble(items, sums)
        rotation = rayleigh_ritz(G, H, overlap, values[:fixed])
        save_array(problem.directory / "rotation.npy", rotation.C)
        following = problem.named(f"pass-{number + 1}", active)
        tile = columns.tile_rows(vectors.columns)
        work = tasks.Rotate(
            vectors[:locked] + filtered, following, str(problem.directory / "rotation.npy"),
            rotation.rank, number, tile,
        )  # fmt: skip
        ranges = blocks(problem.operator.rows, columns.rotation_rows(problem.operator.rows, tile))
        self.run(f"rotate-{step}", work, ranges, label="rotating")
        norms: list[list[float]] = [[0.0] * WIDTH] * len(groups)
        if pairs is not None:
            work = tasks.Residuals(problem, following, rotation.values, balanced)
            norms = self.run(f"residual-{step}", work, groups, label="residuals")
        residuals = state.residuals[:fixed] + tuple(norm for group in norms for norm in group)
        gained = max(residuals[:pairs]) * _LEAST_GAIN < max(state.residuals[:pairs])
        after = State(
            files=state.files[:locked] + following.files,
            values=state.values[:fixed] + tuple(map(float, rotation.values)),
            residuals=residuals,
            most_cut=state.most_cut,
            locked=locked,
            balanced=state.balanced and (gained or not balanced),
            passes=number + 1,
            products=state.products + len(groups) * (plan.degree + 1 + (pairs is not None)),
        )
        return self.note(after, state)


def solve(
    problem: Problem,
    pairs: int,
    tolerance: float,
    map_blocks: Map,
    note: Callable[[str], None],
) -> Solution:
    """Iterate until the wanted pairs have residuals below the tolerance.

    Parameters
    ----------
    problem
        The operator on disk.
    pairs
        Wanted pairs, null vectors not counted.
    tolerance
        Residual norm |A x - theta x| for |x| = 1.
    map_blocks
        Runs the tasks.
    note
        Hears the residual after each pass.
    """
    solver = _Solver.on(problem, map_blocks)
    state = solver.load() or solver.begin(columns.column_count(pairs), pairs)
    while True:
        values, residuals = np.array(state.values), np.array(state.residuals)
        worst = float(residuals[:pairs].max())
        if worst <= tolerance or state.passes == MOST_PASSES:
            return Solution(
                problem.vectors(state.files), values, residuals, worst <= tolerance,
                state.passes, state.products,
            )  # fmt: skip
        bound = solver.short_bound if solver.balances(state) else None
        plan = columns.plan_filter(
            values, residuals, pairs, tolerance, solver.low(state), bound or solver.bound,
            state.most_cut, np.dtype(problem.operator.dtype),
        )  # fmt: skip
        state = solver.advance(_lock(state, pairs, tolerance), plan, pairs)
        residuals = np.array(state.residuals[:pairs])
        note(
            f"pass {state.passes}: degree {plan.degree}, "
            f"{len(state.values) - state.locked * WIDTH} columns, largest residual "
            f"{residuals.max():.1e} (tolerance {tolerance:.0e}), "
            f"{int((residuals <= tolerance).sum())} of {pairs} pairs converged"
        )


def _lock(state: State, pairs: int, tolerance: float) -> State:
    """Lock the first groups, as far as all of their columns have converged with some to spare."""
    good = np.array(state.residuals[:pairs]) <= _LOCKED_SHARE * tolerance
    first = len(good) if good.all() else int(np.argmin(good))
    return replace(state, locked=max(state.locked, first // WIDTH))
