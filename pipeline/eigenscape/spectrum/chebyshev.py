"""Chebyshev-filtered subspace iteration over vectors on disk.

::

    start     coarse levels -> pass 0
    filter    groups of columns, independent of each other: no communication
    gram      row tiles: Y^T Y, Y^T A Y in double, summed in a fixed order
    rotate    row tiles: X <- Y C and the residual A X - X theta

The vectors lie in one raw file per group of columns, so a task holds one group (filter) or one
tile of rows (gram, rotate). Nothing is overwritten before its pass is noted, so that a killed run
goes on where it was.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.arrays import attach_memmap, create_memmap, open_memmap
from eigenscape.files import write_json
from eigenscape.memory import ROW_TILE
from eigenscape.spectrum import kernels
from eigenscape.spectrum.coarse import coarse_start, cut_above
from eigenscape.spectrum.filter import (
    Array,
    NullSpace,
    Rotation,
    chebyshev_filter,
    degree_for,
    rayleigh_ritz,
    safe_degree,
)
from eigenscape.spectrum.operator import StoredOperator, upper_bound
from eigenscape.stage import Block, blocks

MOST_PASSES = 40
_TILE_BYTES = 2**26
_START_DEGREE = 12
_LEAST_DEGREE = 8
_MOST_DEGREE = 200
_SAME_VALUE = 1e-6


class Map(Protocol):
    """`eigenscape.stage.Context.map`, or a loop in its place."""

    def __call__(
        self,
        step: str,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        label: str | None = None,
        keep: bool = True,
    ) -> list[Any]: ...


@dataclass(frozen=True)
class Problem:
    """What the tasks of one solve share.

    Attributes
    ----------
    operator
        The Laplacian on disk.
    component
        Path of the component of each row, None for a connected graph.
    directory
        Where the vectors lie.
    columns
        Vectors in the block, guards included: a multiple of the group width.
    """

    operator: StoredOperator
    component: str | None
    directory: Path
    columns: int

    @property
    def groups(self) -> int:
        return self.columns // kernels.WIDTH

    def null_space(self) -> NullSpace:
        null = attach_memmap(self.operator.null, (self.operator.rows,), np.float64)
        return NullSpace(null, None if self.component is None else open_memmap(self.component))

    def create(self, name: str) -> None:
        for group in range(self.groups):
            create_memmap(
                self.directory / f"{name}-{group}",
                (self.operator.rows, kernels.WIDTH),
                self.operator.dtype,
            )

    def attach(self, name: str, group: int, mode: str = "r") -> Array:
        return attach_memmap(
            self.directory / f"{name}-{group}",
            (self.operator.rows, kernels.WIDTH),
            self.operator.dtype,
            mode,
        )

    def read(self, name: str, rows: slice) -> NDArray[np.float64]:
        """Return some rows of all columns, in double."""
        return np.concatenate(
            [self.attach(name, group)[rows].astype(np.float64) for group in range(self.groups)],
            axis=1,
        )

    def write(self, name: str, rows: slice, values: NDArray[np.float64]) -> None:
        for group in range(self.groups):
            columns = slice(group * kernels.WIDTH, (group + 1) * kernels.WIDTH)
            self.attach(name, group, "r+")[rows] = values[:, columns]

    def remove(self, name: str) -> None:
        for group in range(self.groups):
            (self.directory / f"{name}-{group}").unlink(missing_ok=True)


@dataclass(frozen=True)
class Solution:
    """Where a solve ended.

    Attributes
    ----------
    name
        Name of the vectors' files in the problem's directory.
    values, residuals : array, shape (columns,)
        Ritz values, ascending, and residual norms; the null vectors are not among them.
    converged
        Whether the wanted pairs reached the tolerance.
    passes, products
        Filter passes, and products with a group of columns.
    """

    name: str
    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    converged: bool
    passes: int
    products: int


def column_count(pairs: int) -> int:
    """Return how many columns to iterate on for `pairs` wanted ones.

    The guards let the filter tell the last wanted pair from what follows. More of them need a
    lower degree: for 55 pairs of 640,976 samples 64 columns took 43 s, 80 44 s, 96 35 s, 128 37 s.
    """
    guards = math.ceil(5 * math.sqrt(pairs))
    return -(-(pairs + guards) // kernels.WIDTH) * kernels.WIDTH


def tile_rows(columns: int) -> int:
    """Return the rows of a Rayleigh-Ritz tile: fixed by the number of columns alone."""
    return max(1, _TILE_BYTES // (3 * 8 * columns) // ROW_TILE) * ROW_TILE


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
        Operator and block size.
    pairs
        Wanted pairs, null vectors not counted.
    tolerance
        Residual norm |A x - theta x| for |x| = 1.
    map_blocks
        Runs the tasks.
    note
        Hears the residual after each pass.
    """
    bound = upper_bound(problem.operator.open())
    state_file = problem.directory / "state.json"
    if state_file.exists():
        state = json.loads(state_file.read_text())
        values, residuals = (np.array(state[key], np.float64) for key in ("values", "residuals"))
    else:
        problem.create("pass-0")
        start = map_blocks("start", partial(_start, problem, bound), ["all"], label="coarse start")
        state = {"passes": 0, "products": 0}
        values, residuals = np.array(start[0], np.float64), np.full(problem.columns, np.inf)
    while True:
        number = state["passes"]
        worst = float(residuals[:pairs].max())
        if worst <= tolerance or number == MOST_PASSES:
            name = f"pass-{number}"
            return Solution(name, values, residuals, worst <= tolerance, number, state["products"])
        cut = cut_above(values, bound)
        if number and cut - values[pairs - 1] <= _SAME_VALUE * cut:
            # An eigenvalue of higher multiplicity than the block has columns: at the cut itself
            # nothing tells it from what lies above.
            cut += 0.1 * (bound - cut)
        degree = _choose_degree(
            values, residuals, pairs, tolerance, cut, bound, problem.operator.dtype
        )
        rotation, residuals = _pass(problem, number, degree, cut, bound, map_blocks)
        values = rotation.values
        state = {
            "passes": number + 1,
            "products": state["products"] + problem.groups * (degree + 1),
            "values": values.tolist(),
            "residuals": residuals.tolist(),
        }
        write_json(state_file, state)
        for name in (f"pass-{number}", "filtered", "image"):
            problem.remove(name)
        note(
            f"pass {number + 1}: degree {degree}, largest residual "
            f"{residuals[:pairs].max():.1e} (tolerance {tolerance:.0e}), "
            f"{int((residuals[:pairs] <= tolerance).sum())} of {pairs} pairs converged"
        )


def _choose_degree(
    values: NDArray[np.float64],
    residuals: NDArray[np.float64],
    pairs: int,
    tolerance: float,
    cut: float,
    bound: float,
    dtype: str,
) -> int:
    """Return the degree that should end the iteration in this pass, as far as rounding allows."""
    safe = safe_degree(cut, bound, np.dtype(dtype))
    if not np.isfinite(residuals[:pairs]).all():
        return min(_START_DEGREE, safe)
    todo = np.flatnonzero(residuals[:pairs] > tolerance)
    wanted = max(
        degree_for(4 * residuals[i] / tolerance, float(values[i]), cut, bound) for i in todo
    )
    return min(max(wanted, _LEAST_DEGREE), safe, _MOST_DEGREE)


def _pass(
    problem: Problem, number: int, degree: int, cut: float, bound: float, map_blocks: Map
) -> tuple[Rotation, NDArray[np.float64]]:
    """Filter, Rayleigh-Ritz, residuals: from ``pass-<number>`` to ``pass-<number + 1>``."""
    for name in ("filtered", "image", f"pass-{number + 1}"):
        problem.create(name)
    label = f"filter {number + 1}, degree {degree}"
    work = partial(_filter, problem, number, degree, cut, bound)
    map_blocks(f"filter-{number}", work, list(range(problem.groups)), label=label)
    ranges = blocks(problem.operator.rows, tile_rows(problem.columns))
    parts = map_blocks(
        f"gram-{number}", partial(_gram, problem), ranges, label="Rayleigh-Ritz", keep=False
    )
    rotation = rayleigh_ritz(*(np.sum([part[i] for part in parts], axis=0) for i in range(2)))
    squares = map_blocks(
        f"rotate-{number}", partial(_rotate, problem, number, rotation), ranges, label="rotating"
    )
    return rotation, np.sqrt(np.sum(np.array(squares), axis=0))


def _start(problem: Problem, bound: float, _: str) -> list[float]:
    operator = problem.operator.open()
    start = coarse_start(operator, problem.columns)
    for group in range(problem.groups):
        if start is None:
            rng = np.random.default_rng([5, group])
            problem.attach("pass-0", group, "r+")[:] = rng.standard_normal(
                (operator.rows, kernels.WIDTH)
            )
        else:
            columns = slice(group * kernels.WIDTH, (group + 1) * kernels.WIDTH)
            problem.attach("pass-0", group, "r+")[:] = start.columns(columns)
    return [0.25 * bound] if start is None else [float(value) for value in start.values]


def _filter(
    problem: Problem, number: int, degree: int, cut: float, bound: float, group: int
) -> None:
    operator = problem.operator.open()
    null = problem.null_space()
    X = np.array(problem.attach(f"pass-{number}", group))
    null.remove_from(X)
    Y = chebyshev_filter(operator, X, degree, cut, bound)
    null.remove_from(Y)
    problem.attach("filtered", group, "r+")[:] = Y
    problem.attach("image", group, "r+")[:] = operator.times(Y)


def _gram(problem: Problem, block: Block) -> tuple[NDArray[np.float64], ...]:
    rows = slice(*block)
    Y, AY = problem.read("filtered", rows), problem.read("image", rows)
    return Y.T @ Y, Y.T @ AY


def _rotate(problem: Problem, number: int, rotation: Rotation, block: Block) -> list[float]:
    rows = slice(*block)
    X = problem.read("filtered", rows) @ rotation.C
    AX = problem.read("image", rows) @ rotation.C
    rank = rotation.rank
    values = np.where(np.isfinite(rotation.values), rotation.values, 0)
    squares = ((AX - X * values) ** 2).sum(axis=0)
    if rank < problem.columns:
        # Lost directions are replaced by random ones, drawn by row tile.
        rng = np.random.default_rng([6, number, block[0]])
        X[:, rank:] = rng.standard_normal((len(X), problem.columns - rank))
        squares[rank:] = np.inf
    problem.write(f"pass-{number + 1}", rows, X)
    return [float(square) for square in squares]
