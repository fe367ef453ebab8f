"""Chebyshev-filtered subspace iteration over vectors on disk.

::

    start     coarse levels, each solved roughly by the passes below, or random vectors
    filter    groups of columns, independent of each other: no communication
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

from eigenscape.spectrum import columns
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.level import Level
from eigenscape.spectrum.state import Map, Solution, State
from eigenscape.spectrum.tasks import Problem

MOST_PASSES = 40
"""For every block of columns that the wanted pairs take."""

_LOCKED_SHARE = 0.25
"""Of the tolerance, at which vectors are locked: what is wrong in them is missing in the others."""

_LEAST_GROWTH = 0.25
"""Of a block, that has to be free before random columns fill it up."""


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
    level = Level.on(problem, map_blocks)
    most, goal = columns.window(0, pairs)
    most_passes = MOST_PASSES * -(-pairs // goal)
    state = level.load() or level.begin(most, goal, whole=goal == pairs)
    while True:
        values, residuals = np.array(state.values), np.array(state.residuals)
        goal = state.goal
        worst = float(residuals[:goal].max())
        if goal == pairs and (worst <= tolerance or state.passes >= most_passes):
            return Solution(
                problem.vectors(state.files), values, residuals, worst <= tolerance,
                state.passes, state.products,
            )  # fmt: skip
        if state.passes >= most_passes:
            # All that is left to do is to have as many columns as are wanted.
            state = level.grow(state, max(len(values), -(-pairs // WIDTH) * WIDTH), pairs)
            continue
        state = _lock(state, tolerance)
        most, further = columns.window(state.locked * WIDTH, pairs)
        # What is to be locked has to be better than what ends the iteration.
        wanted = tolerance if goal == pairs else _LOCKED_SHARE * tolerance
        free = most - len(values) >= _LEAST_GROWTH * columns.MOST_COLUMNS
        if worst <= (tolerance if free or further == pairs else wanted):
            state = level.grow(state, most, further)
            continue
        plan = columns.plan_filter(
            values, residuals, goal, wanted, level.low(state), level.high(state),
            state.most_cut, np.dtype(problem.operator.dtype), state.locked * WIDTH,
        )  # fmt: skip
        state = level.advance(replace(state, settled=worst <= tolerance), plan, measured=True)
        residuals = np.array(state.residuals[:goal])
        note(
            f"pass {state.passes}: degree {plan.times * plan.degree}, "
            f"{len(state.values) - state.locked * WIDTH} columns, largest residual "
            f"{residuals.max():.1e} (tolerance {tolerance:.0e}), "
            f"{int((residuals <= tolerance).sum())} of {pairs} pairs converged"
        )


def _lock(state: State, tolerance: float) -> State:
    """Lock the first groups, as far as all of their columns have converged with some to spare."""
    share = 1.0 if state.settled else _LOCKED_SHARE
    good = np.array(state.residuals[: state.goal]) <= share * tolerance
    first = len(good) if good.all() else int(np.argmin(good))
    return replace(state, locked=max(state.locked, first // WIDTH))
