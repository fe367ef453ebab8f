"""Chebyshev-filtered subspace iteration over vectors on disk.

::

    start     coarse levels, each solved roughly by the passes below, or random vectors
    filter    groups of columns, independent of each other: no communication
              (or parts of the rows of each group, which exchange halos: `layout`)
    project   row tiles: Y <- Y - V (V^T Y), where there are locked vectors V
    gram      blocks of columns: Y^T Y, Y^T A Y in double, summed in a fixed order
    rotate    row tiles: X <- Y C
    residual  groups of columns: |A x - theta x|

Groups that have converged are locked: they are filtered no more, the others are kept orthogonal to
them. Where more pairs are wanted than a block holds, random columns take the places of locked ones
and the block moves up the spectrum. Nothing is overwritten before its pass is noted, so that a killed
run goes on where it was.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eigenscape.context import Map
from eigenscape.spectrum.iteration.kernels import columns
from eigenscape.spectrum.iteration.layout import BY_COLUMNS, Layout
from eigenscape.spectrum.iteration.state import Solution, State
from eigenscape.spectrum.iteration.subspace import Subspace
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.kernels.gather import WIDTH

MOST_PASSES = 40
"""For every block of columns that the wanted pairs take."""

_LOCKED_SHARE = 0.25
"""Of the tolerance, at which vectors are locked: what is wrong in them is missing in the others."""

_MOST_TOLD = 12
"""Passes after which the tolerance alone decides, if rounding keeps the vectors from being told apart."""

_LEAST_GROWTH = 0.25
"""Of a block, that has to be free before random columns fill it up."""


def solve(
    problem: Problem,
    pairs: int,
    tolerance: float,
    map_blocks: Map,
    note: Callable[[str], None],
    layout: Layout = BY_COLUMNS,
) -> Solution:
    """Iterate until the wanted pairs have residuals below the tolerance.

    Parameters
    ----------
    problem
        The operator on disk.
    pairs
        Wanted pairs, null vectors not counted.
    tolerance
        Residual norm |A x - theta x| for |x| = 1; a smaller one is required where the
        eigenvalues are too small to be separated by it (`columns.residual_limits`).
    map_blocks
        Runs the tasks.
    note
        Called with the residual after each pass.
    layout
        Decides how the tasks of a product cut it.
    """
    subspace = Subspace.on(problem, map_blocks, layout)
    state = subspace.load()
    if state is None:
        state = _begin(subspace, pairs, tolerance, note)
    return _iterate(subspace, state, pairs, tolerance, note)


def _begin(subspace: Subspace, pairs: int, tolerance: float, note: Callable[[str], None]) -> State:
    """Return the state to begin with: where double precision is needed, what single comes to."""
    most, goal = columns.window(0, pairs)
    single = subspace.in_single() if goal == pairs else None
    if single is None:
        return subspace.begin(most, goal, whole=goal == pairs)
    state = single.load() or single.begin(most, goal, whole=True)
    solution = _iterate(
        single, state, pairs, columns.single_tolerance(tolerance, subspace.bound),
        lambda text: note(f"single precision, {text}"), patient=False,
    )  # fmt: skip
    return subspace.take_over(solution, goal)


def _iterate(
    subspace: Subspace,
    state: State,
    pairs: int,
    tolerance: float,
    note: Callable[[str], None],
    *,
    patient: bool = True,
) -> Solution:
    """Run passes until the wanted pairs have converged; see `solve`.

    Parameters
    ----------
    patient
        Whether to go on after a pass that gained little.
    """
    problem = subspace.problem
    _, goal = columns.window(0, pairs)
    most_passes = MOST_PASSES * -(-pairs // goal)
    while True:
        values, residuals = np.array(state.values), np.array(state.residuals)
        goal = state.goal
        limits = _limits(subspace, state, tolerance)
        excess = float((residuals[:goal] / limits).max())
        stalled = not (patient or state.gained)
        if goal == pairs and (excess <= 1 or stalled or state.passes >= most_passes):
            return Solution(
                problem.vectors(state.files), values, residuals,
                bool(residuals[:goal].max() <= tolerance), state.passes, state.products,
            )  # fmt: skip
        if state.passes >= most_passes:
            # All that is left to do is to have as many columns as are wanted.
            state = subspace.grow(state, max(len(values), -(-pairs // WIDTH) * WIDTH), pairs)
            continue
        state = _lock(state, limits)
        most, further = columns.window(state.locked * WIDTH, pairs)
        # What is to be locked has to be better than what ends the iteration.
        share = 1.0 if goal == pairs else _LOCKED_SHARE
        free = most - len(values) >= _LEAST_GROWTH * columns.MOST_COLUMNS
        if excess <= (1.0 if free or further == pairs else share):
            state = subspace.grow(state, most, further)
            continue
        plan = columns.plan_filter(
            values, residuals, goal, share * limits, subspace.low(state), subspace.high(state),
            state.most_cut, np.dtype(problem.operator.dtype), state.locked * WIDTH,
            halves=goal == pairs and subspace.halves(state),
        )  # fmt: skip
        state = subspace.advance(replace(state, settled=excess <= 1), plan, measured=True)
        residuals = np.array(state.residuals[:goal])
        note(
            f"pass {state.passes}: degree {plan.times * plan.degree}, "
            f"{len(state.values) - state.locked * WIDTH} columns, largest residual "
            f"{residuals.max():.1e} (tolerance {tolerance:.0e}), "
            f"{int((residuals <= tolerance).sum())} of {pairs} pairs converged"
        )


def _limits(subspace: Subspace, state: State, tolerance: float) -> NDArray[np.float64]:
    """Return the residual norm at which each pair that the block aims at has converged."""
    if state.passes >= _MOST_TOLD * -(-state.goal // columns.MOST_COLUMNS):
        return np.full(state.goal, tolerance)
    dtype = np.dtype(subspace.problem.operator.dtype)
    return columns.residual_limits(
        np.array(state.values), state.goal, tolerance, subspace.bound, dtype
    )


def _lock(state: State, limits: NDArray[np.float64]) -> State:
    """Lock the first groups, as far as all of their columns have converged with some to spare."""
    share = 1.0 if state.settled else _LOCKED_SHARE
    good = np.array(state.residuals[: state.goal]) <= share * limits
    first = len(good) if good.all() else int(np.argmin(good))
    return replace(state, locked=max(state.locked, first // WIDTH))
