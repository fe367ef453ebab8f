"""Decisions of the iteration, by arithmetic alone: number of columns, filter, pieces."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.iteration.kernels.filter import (
    FilterPlan,
    amplified_counts,
    clean_degree,
    degree_for,
    left_by_guards,
    safe_correction_degree,
    safe_degree,
)
from eigenscape.spectrum.kernels.gather import WIDTH

MOST_COLUMNS = 2048
"""Columns of the block that moves up the spectrum, where more than it holds are wanted."""

PROBES = 8
"""Columns that start at random beside a coarse start, for the vectors that it misses."""

PANEL_BYTES = 4096
"""Bytes of a row of a panel: of the columns that are multiplied at a time where there are many."""

_GRAM_BLOCK, _MOST_SMALL_BLOCKS = 256, 4
_LEAST_GUARDS = 8
_TILE_BYTES = 2**23
_TILE_ROWS = min(2048, ROW_TILE)
_LEAST_DEGREE = 8
_MOST_DEGREE = 1000
_START_DEGREE = 12
_START_REDUCTION = 1e2
_SPARE = 4
_SAME_VALUE = 1e-6
_SAME_END = 1e-3
_ANGLE = 0.05
_ROUNDING = 10
_RELIABLE = 0.05
_REDUCTION = 1e5
_RITZ_PRODUCTS = 0.8
_LOOSE = 0.125
_HALF_REDUCTION = 3e2
_CORRECTED = 1e3


def column_count(pairs: int) -> int:
    """Return how many columns to start with for `pairs` wanted ones: at most that many are used.

    The additional columns let the filter separate the last wanted pair from the next ones.
    """
    return _whole_groups(pairs + _guards(pairs))


def _guards(pairs: int) -> int:
    return max(24, math.ceil(9 * math.sqrt(pairs)))


def window(locked: int, pairs: int) -> tuple[int, int]:
    """Return how many columns there are beside some locked ones, and how many pairs they aim at.

    Parameters
    ----------
    locked
        Columns that are final; they are counted in both results.
    pairs
        Wanted pairs.
    """
    whole, most = column_count(pairs), locked + MOST_COLUMNS
    if whole <= most:
        return whole, pairs
    return most, min(pairs, (most - _guards(MOST_COLUMNS)) // WIDTH * WIDTH)


def extrapolate(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return guesses for `count` eigenvalues that follow the known ones.

    By a power of their number, as in Weyl's law: the exponent, 2 / d on a d-dimensional manifold,
    is taken from the last quarter.
    """
    known = len(values)
    before = known - known // 4
    logs = np.log(np.maximum(values[[before - 1, -1]], np.finfo(np.float64).tiny))
    exponent = (logs[1] - logs[0]) / np.log(known / before) if before < known else 0.0
    guesses: NDArray[np.float64] = values[-1] * (1 + np.arange(1, count + 1) / known) ** exponent
    return guesses


def choose_columns(
    values: NDArray[np.float64], pairs: int, bound: float, rows_per_entry: float
) -> int:
    """Return the number of columns at which the iteration should cost least.

    More columns put the cut higher, so that a lower degree does; but each costs its products and
    its part of the Rayleigh-Ritz steps.

    Parameters
    ----------
    values : array, shape (columns,)
        Approximate eigenvalues.
    pairs
        Wanted pairs.
    bound
        Upper bound of the spectrum.
    rows_per_entry
        Rows of the operator for each of its entries.
    """
    last = float(values[pairs - 1])

    def cost(count: int) -> float:
        cut = max(float(values[guard_count(count, pairs) - 1]), last * (1 + 1e-9))
        # A coarse graph can have values beyond the bound of the fine one.
        cut = min(cut, 0.9 * bound)
        # Dense algebra, in products: 5 n m^2 operations at the speed of BLAS.
        ritz = _RITZ_PRODUCTS * rows_per_entry * count
        return count * (degree_for(_REDUCTION, last, cut, bound) + 2 * ritz)

    # In pairs of groups, so that two threads have the same to do.
    least = min(_whole_groups(pairs + PROBES + _LEAST_GUARDS), len(values))
    counts: set[int] = {least, *range(max(least, 2 * WIDTH), len(values) + 1, 2 * WIDTH)}
    return min(sorted(counts), key=cost)


def known_values(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return Ritz values with the last known one in place of those of lost directions.

    None where no direction is left.
    """
    known = np.isfinite(values)
    return np.where(known, values, values[known][-1]) if known.any() else None


def residual_limits(
    values: NDArray[np.float64],
    goal: int,
    tolerance: float,
    bound: float,
    dtype: np.dtype[Any],
) -> NDArray[np.float64]:
    """Return the residual norm at which each wanted pair has converged, shape (goal,).

    The tolerance; and less where eigenvalues are so small that it would not tell the wanted vectors
    from those beyond the block. A residual r leaves an angle of about r / (distance to the end of the
    block) between a vector and the space of the lowest ones (Davis, Kahan 1970), and an angle of
    `_ANGLE` is enough. No less than rounding allows; values that are all alike need no telling apart.

    Parameters
    ----------
    values : array, shape (columns,)
        Ritz values, those of guards included.
    goal
        Wanted pairs.
    tolerance
        Asked for.
    bound
        Upper bound of the spectrum.
    dtype
        Floating type of the products.
    """
    known = known_values(values[: max(goal, len(values) - PROBES)])
    if known is None:
        return np.full(goal, tolerance)
    distance = known[-1] - known[:goal]
    told = distance > _SAME_END * abs(known[-1])
    least = _ROUNDING * float(np.finfo(dtype).eps) * bound
    limits = np.where(told, np.maximum(_ANGLE * distance, least), np.inf)
    return np.minimum(limits, tolerance)


def single_tolerance(tolerance: float, bound: float) -> float:
    """Return the residual to reach in single precision where double is needed for the tolerance.

    From there on one pass of corrections reaches the tolerance, if rounding lets single precision come so
    far.

    Parameters
    ----------
    tolerance
        Asked for.
    bound
        Upper bound of the spectrum.
    """
    least = _ROUNDING * float(np.finfo(np.float32).eps) * bound
    return max(_CORRECTED * tolerance, least)


def _whole_groups(columns: int) -> int:
    """Return the columns of a whole number of pairs of groups, of one for very few."""
    step = WIDTH if columns <= WIDTH else 2 * WIDTH
    return -(-columns // step) * step


def plan_filter(
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
    pairs: int,
    limits: NDArray[np.float64],
    low: float,
    bound: float,
    most_cut: float,
    dtype: np.dtype[Any],
    locked: int = 0,
    *,
    halves: bool = False,
) -> FilterPlan:
    """Return the filter that should end the iteration in this pass, as far as rounding allows.

    Parameters
    ----------
    values, residuals : array, shape (columns,)
        After the last pass; residuals are infinite where there was none.
    pairs
        Wanted ones.
    limits : array, shape (pairs,)
        Residual norm that each of them is to reach.
    low, bound
        Where the spectrum begins and ends.
    most_cut
        Where the damping may begin at most.
    dtype
        Floating type of the products.
    locked
        Columns that are final; `low` is where the spectrum of the others begins.
    halves
        Whether it may work in half precision, on what vectors lack whose residuals are known.
    """
    known = np.isfinite(residuals[:pairs]).all()
    # A block that moves up has columns that are still random: it needs all guards that it has.
    guards = max(pairs + 1, len(values) - PROBES) if locked else guard_count(len(values), pairs)
    cut = cut_above(values[:guards], low, bound)
    shown = known_values(values)
    if shown is None:
        shown = np.full(len(values), min(cut, most_cut))
    last, doubt = float(shown[pairs - 1]), float(residuals[pairs - 1])
    if last - doubt < most_cut or doubt > _RELIABLE * (bound - low):
        # Unless the last wanted value is known, and above it: the guess was wrong then.
        cut = min(cut, most_cut)
    # Where the lowest value is known, `cut_above` keeps the cut a millionth of the spectrum above it.
    apart = 2 * (bound - low) if low else cut
    if known and cut - last <= _SAME_VALUE * apart:
        # An eigenvalue of higher multiplicity than the block has columns: at the cut itself
        # it cannot be separated from what lies above.
        cut += 0.1 * (bound - cut)
    plan = FilterPlan(1, cut, bound, low, halves=halves and bool(known))
    safe = safe_correction_degree(plan, last) if plan.halves else safe_degree(plan, dtype)
    if not known:
        # Values of random vectors are guesses; the first filter must not squeeze these into the
        # lowest directions alone.
        guess = shown[0] == shown[-1] or locked > 0
        wanted = degree_for(_START_REDUCTION, low, cut, bound) if guess else _START_DEGREE
    else:
        todo = np.flatnonzero(residuals[:pairs] > limits)
        reductions = _SPARE * residuals[todo] / limits[todo]
        if plan.halves:
            reductions = np.minimum(reductions, _HALF_REDUCTION)
        degrees = map(partial(degree_for, cut=cut, bound=bound), reductions, shown[todo])
        wanted = max([_LEAST_DEGREE, *degrees])
    degree = min(wanted, safe, _MOST_DEGREE)
    times = 1
    if locked:
        # Null vectors are kept out in the same way; they are exact but for rounding.
        below, left = np.append(values[:locked], 0.0), np.append(residuals[:locked], 0.0)
        clean = clean_degree(plan, dtype, below, left)
        if degree > clean:
            # What rounding leaves in a projection must not outgrow the columns from one to the next.
            clean = min(clean, safe_degree(replace(plan, low=0.0), dtype))
        times = math.ceil(degree / clean)
    # Corrections need Ritz vectors and their residuals, which there are before the first time alone.
    halves = plan.halves and times == 1
    plan = replace(plan, degree=math.ceil(degree / times), times=times, halves=halves)
    if halves:
        lacking = residuals[:pairs] > limits
        lacking[:locked] = False
        plan = replace(plan, groups=_lacking_groups(plan, values, residuals, lacking, guards))
    between = amplified_counts(plan, dtype, values[:locked], residuals[:locked])
    return replace(plan, between=between)


def _lacking_groups(
    plan: FilterPlan,
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
    lacking: NDArray[np.bool_],
    guards: int,
) -> tuple[int, ...] | None:
    """Return the groups that a filter of corrections has to act on; None for all.

    Those with wanted pairs that have not converged, if the guards below the cut are known so well that
    Rayleigh-Ritz steps tell the wanted pairs from them.
    """
    pairs = len(lacking)
    known = slice(-(-pairs // WIDTH) * WIDTH, guards)
    if not np.isfinite([values[known], residuals[known]]).all():
        return None
    left = left_by_guards(plan, float(values[pairs - 1]), values[known], residuals[known])
    if (left > 1 / _HALF_REDUCTION).any():
        return None
    return tuple(sorted({int(column) // WIDTH for column in np.flatnonzero(lacking)})) or None


def plan_short(
    values: NDArray[np.float64], degree: int, low: float, bound: float, dtype: np.dtype[Any]
) -> FilterPlan:
    """Return a filter of a given degree, as far as rounding allows: for coarse levels."""
    plan = FilterPlan(degree, cut_above(values, low, bound), bound, low)
    return replace(plan, degree=min(degree, safe_degree(plan, dtype)))


def guard_count(columns: int, pairs: int) -> int:
    """Return how many columns lie below the cut of a filter, more than the wanted pairs.

    The last Ritz values of a block are too large, as nothing beyond it helps them down: a cut there lets
    the filter amplify eigenvectors that no column stands for.
    """
    return max(pairs + 1, columns - PROBES - math.ceil((columns - PROBES - pairs) * _LOOSE))


def cut_above(values: NDArray[np.float64], low: float, bound: float) -> float:
    """Return where a filter's damping begins: the last known Ritz value, kept off both ends."""
    known, span = known_values(values), bound - low
    last = bound if known is None else float(known[-1])
    return min(max(last, low + 1e-6 * span), low + 0.9 * span)


def tile_rows(columns: int) -> int:
    """Return the rows of a tile of a rotation: fixed by the number of columns alone."""
    return max(1, _TILE_BYTES // (16 * columns) // _TILE_ROWS) * _TILE_ROWS


def rotation_rows(rows: int, tile: int) -> int:
    """Return the rows that one task rotates: whole tiles, in at most 64 tasks."""
    return tile * max(1, -(-rows // (64 * tile)))


def gram_block(columns: int, dtype: np.dtype[Any]) -> int:
    """Return the columns of a block of the Gram matrices X^T Y.

    Every block of X is read once for each block of Y. Of many columns, where the reading took half of the
    time, the blocks are larger.

    Parameters
    ----------
    columns
        Of X or Y, whichever has more.
    dtype
        Floating type in which rows are multiplied.
    """
    few = columns <= _MOST_SMALL_BLOCKS * _GRAM_BLOCK
    return _GRAM_BLOCK if few else PANEL_BYTES // dtype.itemsize


def gram_rows(rows: int, columns: int, block: int) -> list[tuple[int, int]]:
    """Return the row ranges in which Gram matrices are summed: about 16 tasks, one if they are large.

    Parameters
    ----------
    rows, columns
        Of the vectors.
    block
        Columns of a block of the matrices.
    """
    across = -(-columns // block)
    count = max(1, 16 // (across * (across + 1) // 2))
    step = -(-rows // count // _TILE_ROWS) * _TILE_ROWS if count > 1 else rows
    return blocks(rows, max(step, _TILE_ROWS))
