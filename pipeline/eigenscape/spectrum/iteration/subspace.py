"""The subspace of one level of the iteration: the start of its vectors, and a pass over them."""

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import clear_scratch, save_array
from eigenscape.base.files.whole import remove, write_json
from eigenscape.context import Map
from eigenscape.errors import ScratchError
from eigenscape.spectrum.iteration import algebra, tasks
from eigenscape.spectrum.iteration.coarse import coarse_component
from eigenscape.spectrum.iteration.kernels import columns
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.kernels.ritz import rank, rayleigh_ritz
from eigenscape.spectrum.iteration.layout import BY_COLUMNS, Layout
from eigenscape.spectrum.iteration.rowparts import RowParts
from eigenscape.spectrum.iteration.state import Pass, Solution, State
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels.gather import CONVERTS_HALVES, WIDTH
from eigenscape.spectrum.stored import StoredOperator

DENSE_ROWS = 1200
"""Order up to which a coarse problem is solved by LAPACK."""

_COARSE_DEGREES = (12, 36)
"""Filters of a coarse level: more of it gains nothing, as its vectors are approximate anyway."""

_OF_A_PASS = (
    "pass", "filtered", "projected", "image", "rotation", "rotated", "fresh", "overlap",
)  # fmt: skip
"""Files of one pass, whose number is in their names: another machine may still hold those of the last
pass, and a task that was given up may still write to them."""

_LEAST_GAIN = 3.0
"""Times that a pass with balanced rows or in half precision has to reduce the residual for the next to be one
too, and a pass in single for another before double precision begins."""


@dataclass(frozen=True)
class Subspace:
    """The subspace of one level: its problem, the end of its spectrum, and the function that runs tasks.

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
    layout
        Decides how the tasks of a product cut it.
    """

    problem: Problem
    run: Map
    bound: float
    short_bound: float | None
    layout: Layout = BY_COLUMNS
    _parts: dict[int, RowParts | None] = field(default_factory=dict, repr=False)

    @classmethod
    def on(cls, problem: Problem, run: Map, layout: Layout = BY_COLUMNS) -> "Subspace":
        """Return a level, its spectrum bounded."""
        work = partial(tasks.measure, problem)
        bound, short_bound = run(f"bound-{problem.name}", work, ["all"], label="bounds")[0]
        return cls(problem, run, bound, short_bound, layout)

    def row_parts(self, groups: int) -> RowParts | None:
        """Return the parts of the rows by which some groups are multiplied; None for the column layout."""
        parts = self.layout.parts(self.problem, groups)
        if parts and parts not in self._parts:
            self._parts[parts] = RowParts.prepare(self.problem, self.run, self.layout, parts)
        return self._parts[parts] if parts else None

    @property
    def file(self) -> Path:
        """Where the state is noted."""
        return self.problem.directory / "state.json"

    def load(self) -> State | None:
        """Return the state to go on from, None if there is none yet; a pass that was begun is completed."""
        if not self.file.exists():
            return None
        state = self._refuse_damage(State.read(self.file))
        return state if state.begun is None else self._complete(state, state.begun)

    def note(self, state: State, before: State | None = None) -> State:
        """Make a state the one to go on from, and only then delete what it does not need.

        Raises
        ------
        ScratchError
            Its values are no numbers, or all infinite.
        """
        self._refuse_damage(state)
        write_json(self.file, asdict(state))
        needed = {*state.files}
        if state.begun is not None and state.begun.rotation is not None:
            needed.add(state.begun.rotation)
        spent = set() if before is None else {*before.files}
        for name in _OF_A_PASS:
            spent |= {str(file) for file in self.problem.directory.glob(f"{name}-*")}
        remove(*sorted(spent - needed))
        clear_scratch(self.problem.directory)
        return state

    def _refuse_damage(self, state: State) -> State:
        values = np.array(state.values)
        if np.isnan(values).any() or not np.isfinite(values).any():
            raise ScratchError(
                f"{self.problem.directory}: the eigenvalues found there are not numbers, so its files are "
                "not what was written to them: they were damaged, or one machine reads what was there "
                "before another wrote (`eigenscape cluster check` tries that)."
            )
        return state

    def begin(self, most: int, goal: int, *, whole: bool) -> State:
        """Return the vectors to start from: those of a coarse problem, or random ones.

        Parameters
        ----------
        most
            Columns to start with, unless fewer are enough.
        goal
            Pairs that these columns aim at; on a coarse level all of them.
        whole
            Whether no further pairs are wanted, so that fewer columns may serve.
        """
        problem, name = self.problem, self.problem.name
        work: Any = partial(tasks.coarsen, problem, most)
        stored = self.run(f"coarsen-{name}", work, ["all"], label="coarsening")[0]
        if stored is None:
            start = problem.named("pass-0", range(most // WIDTH))
            cut = self.run(
                f"cut-{name}", partial(tasks.find_cut, problem, self.bound), [most], label="cut"
            )
            values, rough, most_cut = np.full(most, cut[0][0]), None, cut[0][1]
        else:
            directory = problem.directory / "coarse"
            below = Problem(
                StoredOperator.from_json(stored),
                coarse_component(problem.component, directory),
                directory,
                problem.level + 1,
                problem.held,
                problem.prefix,
            )
            state = Subspace.on(below, self.run, self.layout).solve_roughly(most)
            # Columns that carry no direction of their own are random ones by now.
            known = columns.known_values(np.array(state.values))
            values = np.full(len(state.values), self.bound) if known is None else known
            rough = below.vectors(state.files)
            most_cut = self.bound
            if whole:
                density = problem.operator.rows / problem.operator.entries
                values = values[: columns.choose_columns(values, goal, self.bound, density)]
            start = problem.named("pass-0", range(len(values) // WIDTH))
        work = partial(tasks.start, problem, start, rough)
        self.run(f"start-{name}", work, list(range(start.groups)), label="start")
        unknown = (np.inf,) * len(values)
        state = self.note(State(start.files, tuple(values), unknown, most_cut, goal))
        if rough is not None:
            rough.remove()
        return state

    def in_single(self) -> "Subspace | None":
        """Return the same problem in single precision; None where this is no other or gains nothing.

        Its rounding errors are too large beside stiff rows and ties.
        """
        problem = self.problem
        if problem.operator.dtype == "float32" or self.short_bound is not None:
            return None
        directory = problem.directory / "single"
        work = partial(tasks.round_operator, problem, directory)
        stored = self.run("single", work, ["all"], label="single precision")[0]
        rounded = replace(
            problem,
            operator=StoredOperator.from_json(stored),
            directory=directory,
            prefix="single-",
        )
        return Subspace(rounded, self.run, self.bound, None, self.layout)

    def take_over(self, solution: Solution, goal: int) -> State:
        """Return the state that begins with the vectors of a solution in single precision."""
        problem, rough = self.problem, solution.vectors
        vectors = problem.named(f"pass-{solution.passes}", range(rough.groups))
        work = partial(tasks.widen, rough, vectors)
        self.run("widen", work, list(range(rough.groups)), label="double precision")
        state = State(
            vectors.files, tuple(map(float, solution.values)),
            tuple(map(float, solution.residuals)), self.bound, goal,
            passes=solution.passes, products=solution.products,
        )  # fmt: skip
        self.note(state)
        rough.remove()
        return state

    def grow(self, state: State, most: int, goal: int) -> State:
        """Put random columns beside those there are, up to `most`, to look for further pairs."""
        problem, step = self.problem, f"{self.problem.name}-{state.passes}"
        further = range(len(state.files), most // WIDTH)
        fresh = problem.named(f"fresh-{state.passes}", further)
        self.run(
            f"grow-{step}", partial(tasks.grow, fresh, further.start), list(range(fresh.groups))
        )
        if state.locked and fresh.groups:
            locked = problem.vectors(state.files)[: state.locked]
            grown = problem.named(f"grown-{state.passes}", further)
            fresh = self.project(f"grow-{step}", locked, fresh, grown)
        guess = columns.extrapolate(np.array(state.values[: state.goal]), most - state.goal)
        after = replace(
            state,
            files=state.files + fresh.files,
            values=state.values + tuple(map(float, guess[len(state.values) - state.goal :])),
            residuals=state.residuals + (np.inf,) * fresh.columns,
            most_cut=float(guess[-1]),
            goal=goal,
            settled=False,
        )
        return self.note(after, state)

    def project(self, step: str, locked: Vectors, vectors: Vectors, result: Vectors) -> Vectors:
        """Return the result: vectors without what they hold of the locked ones."""
        rows = self.problem.operator.rows
        file = self.problem.directory / f"overlap-{step}.npy"
        if not file.exists():
            gram = algebra.Gram(locked, (vectors,), vectors.dtype)
            items = gram.items(gram.ranges)
            parts = self.run(f"overlap-{step}", gram, items, label="projecting", keep=False)
            save_array(file, gram.assemble(items, parts)[0].astype(vectors.dtype))
        work = algebra.Project(locked, vectors, result, str(file))
        ranges = blocks(rows, columns.rotation_rows(rows, columns.tile_rows(vectors.columns)))
        self.run(f"project-{step}", work, ranges, label="projecting")
        vectors.remove()
        return result

    def solve_roughly(self, most: int) -> State:
        """Return rough eigenpairs of a coarse problem, by LAPACK or a few short filters."""
        problem = self.problem
        if problem.operator.rows <= max(DENSE_ROWS, 2 * most):
            vectors = problem.named("dense", range(most // WIDTH))
            work = partial(tasks.solve_densely, problem, vectors)
            step = f"dense-{problem.name}"
            values = self.run(step, work, ["all"], label="coarsest level")[0]
            dense = State(vectors.files, tuple(values), (0.0,) * most, self.bound, most)
            return self._refuse_damage(dense)
        state = self.load() or self.begin(most, most, whole=False)
        for degree in _COARSE_DEGREES[state.passes :]:
            plan = columns.plan_short(
                np.array(state.values), degree, self.low(state), self.high(state, measured=False),
                np.dtype(problem.operator.dtype),
            )  # fmt: skip
            state = self.advance(state, plan)
        return state

    def balances(self, state: State) -> bool:
        """Whether the next filter sets stiff rows by the others."""
        return self.short_bound is not None and state.balanced

    def halves(self, state: State) -> bool:
        """Whether the next filter may work in half precision: where single would not do.

        A pass of it brings residuals down a hundred times at most. Where single precision is
        enough, or a block moves up the spectrum, the further passes cost more than it gains.
        """
        operator = self.problem.operator
        if self.balances(state) or operator.ties is not None or operator.dtype != "float64":
            return False
        return CONVERTS_HALVES and state.halves and not state.overflowed

    def high(self, state: State, *, measured: bool = True) -> float:
        """Return where the spectrum of the next filter's operator ends; see `advance` for `measured`.

        The estimate of a bound can fail: if a Ritz value lies above, or a filter has overflowed, it is
        what theory gives.
        """
        if measured and self.balances(state):
            assert self.short_bound is not None, "balanced"
            return self.short_bound
        values = np.array(state.values)
        above = (values[np.isfinite(values)] > self.bound).any()
        return self.problem.operator.bound if above or state.overflowed else self.bound

    def low(self, state: State) -> float:
        """Return where the spectrum of the columns that are not locked begins.

        That is 0, or the lowest Ritz value if it is known to be more: 0 again once a filter has overflowed,
        as a direction that no column stood for may lie lower.
        """
        if state.overflowed:
            return 0.0
        known = np.isfinite(state.residuals[0]) and not self.problem.operator.singular
        active = state.values[state.locked * WIDTH :]
        return max(0.0, min(active)) if known or state.locked else 0.0

    def advance(self, state: State, plan: FilterPlan, *, measured: bool = False) -> State:
        """Filter, Rayleigh-Ritz, residuals: from the vectors of one pass to those of the next.

        Parameters
        ----------
        state
            Vectors and values of the last pass.
        plan
            Degree, cut and groups of the filter.
        measured
            Whether to take residuals: on coarse levels they are not worth their products.
        """
        balanced = measured and self.balances(state)
        filtered, usable = self._filter(state, plan, balanced)
        products = state.products + filtered.groups * plan.times * plan.degree
        if not usable:
            after = replace(state, passes=state.passes + 1, products=products)
            return self._retreat(after, balanced)
        # From here on the vectors before the filter are not needed, nor is the space that they take.
        begun = Pass(measured, balanced, plan.halves)
        files = list(state.files)
        for group, file in zip(_filtered_groups(state, plan), filtered.files, strict=True):
            files[group] = file
        after = replace(state, files=tuple(files), products=products, begun=begun)
        return self._complete(self.note(after, state), begun)

    def _filter(self, state: State, plan: FilterPlan, balanced: bool) -> tuple[Vectors, bool]:
        """Return the filtered columns that are not locked, and whether they hold numbers to go on with."""
        problem, number, locked = self.problem, state.passes, state.locked
        step = f"{problem.name}-{number}"
        vectors = problem.vectors(state.files)
        active = _filtered_groups(state, plan)
        groups = list(range(len(active)))
        values, known = (
            np.array(numbers).reshape(-1, WIDTH)[active].ravel()
            for numbers in (state.values, state.residuals)
        )
        filtered = problem.vectors(tuple(state.files[group] for group in active))
        parts = self.row_parts(len(groups))
        usable = False
        for time in range(plan.times):
            source, filtered = filtered, problem.unmade(f"filtered-{number}-{time}", active)
            label, name = f"filter, degree {plan.degree}", f"filter-{step}-{time}"
            if parts is not None and not balanced and not plan.halves:
                usable = parts.filter(name, source, filtered.create(), plan, label)
            else:
                work = tasks.Filter(problem, source, filtered, plan, values, known, balanced)
                usable = all(self.run(name, work, groups, label=label))
            if time:
                source.remove()
            if not usable:
                break
            ends = time == plan.times - 1
            if taken := locked if ends else -(-plan.between[time] // WIDTH):
                projected = problem.named(f"projected-{number}-{time}", active)
                part = f"{step}-{time}"
                filtered = self.project(part, vectors[:taken], filtered, projected)
        return filtered, usable

    def _complete(self, state: State, begun: Pass) -> State:
        """Return the state after a pass whose filter is done: Ritz vectors, and their residuals."""
        problem, number, locked = self.problem, state.passes, state.locked
        step, fixed = f"{problem.name}-{number}", locked * WIDTH
        filtered, active = problem.vectors(state.files)[locked:], range(locked, len(state.files))
        if begun.rotation is None:
            state = self._rayleigh_ritz(state, begun, filtered)
            assert state.begun is not None, "the rotation is noted in it"
            begun = state.begun
        assert begun.rotation is not None, "it is known by now"
        values = np.array(state.values[fixed:])
        following = problem.named(f"pass-{number + 1}", active)
        rotated = problem.named(f"rotated-{number}", active) if begun.balanced else following
        tile = columns.tile_rows(filtered.columns)
        work = algebra.Rotate(filtered, rotated, begun.rotation, rank(values), number, tile)
        ranges = blocks(problem.operator.rows, columns.rotation_rows(problem.operator.rows, tile))
        self.run(f"rotate-{step}", work, ranges, label="rotating")
        norms = (0.0,) * rotated.columns
        if begun.measured:
            even = following if begun.balanced else None
            norms = self._measure(f"residual-{step}", rotated, values, even)
        residuals = state.residuals[:fixed] + norms
        gained = max(residuals[: state.goal]) * _LEAST_GAIN < max(state.residuals[: state.goal])
        after = replace(
            state,
            files=state.files[:locked] + following.files,
            residuals=residuals,
            balanced=state.balanced and (gained or not begun.balanced),
            halves=state.halves and (gained or not begun.halves),
            gained=gained,
            passes=number + 1,
            products=state.products + filtered.groups * begun.measured,
            begun=None,
        )
        return self.note(after, state)

    def _rayleigh_ritz(self, state: State, begun: Pass, filtered: Vectors) -> State:
        """Return the state with the Ritz values of the filtered columns; their rotation is on disk."""
        problem, number, fixed = self.problem, state.passes, state.locked * WIDTH
        step, label = f"image-{problem.name}-{number}", "Rayleigh-Ritz"
        image = problem.named(f"image-{number}", range(state.locked, len(state.files)))
        parts = self.row_parts(filtered.groups)
        if parts is not None:
            parts.image(step, filtered, image, label)
        else:
            work = tasks.Image(problem, filtered, image)
            self.run(step, work, list(range(filtered.groups)), label=label)
        gram = algebra.Gram(filtered, (filtered, image))
        items = gram.items(gram.ranges)
        G, H = gram.assemble(items, self.run("gram", gram, items, label=label, keep=False))
        if not (np.isfinite(G).all() and np.isfinite(H).all()):
            raise self._damaged()
        rotation = rayleigh_ritz(G, H)
        file = str(problem.directory / f"rotation-{number}.npy")
        save_array(file, rotation.C)
        after = replace(
            state,
            values=state.values[:fixed] + tuple(map(float, rotation.values)),
            products=state.products + filtered.groups,
            begun=replace(begun, rotation=file),
        )
        return self.note(after, state)

    def _measure(
        self, step: str, vectors: Vectors, values: NDArray[np.float64], even: Vectors | None
    ) -> tuple[float, ...]:
        """Return the residual of each Ritz vector; with stiff rows, write the balanced vectors to `even`."""
        parts = self.row_parts(vectors.groups)
        if parts is not None and even is None:
            norms = parts.residuals(step, vectors, values, "residuals")
        else:
            work = tasks.Residuals(self.problem, vectors, values, even)
            norms = self.run(step, work, list(range(vectors.groups)), label="residuals")
        return tuple(norm for group in norms for norm in group)

    def _retreat(self, state: State, balanced: bool) -> State:
        """Go on from the vectors before a filter that overflowed, by one that is safer.

        Stiff rows that do not follow the others as they should, or an estimate within the spectrum of where
        it begins or ends, make a filter grow without limit. From 0 up to the bound of theory none does.

        Raises
        ------
        ScratchError
            Neither was the reason, so the vectors on disk are not what was written there.
        """
        if balanced:
            return self.note(replace(state, balanced=False), state)
        if not state.overflowed:
            return self.note(replace(state, overflowed=True), state)
        raise self._damaged()

    def _damaged(self) -> ScratchError:
        return ScratchError(
            f"{self.problem.directory}: the vectors of the eigensolver are not finite, though its "
            "filter cannot overflow: files were damaged, or another machine reads them as they were "
            "before (`eigenscape cluster check` tries that)."
        )


def _filtered_groups(state: State, plan: FilterPlan) -> list[int]:
    """Return the groups that a filter acts on: all that are not locked, or those of the plan."""
    return [*(range(state.locked, len(state.files)) if plan.groups is None else plan.groups)]
