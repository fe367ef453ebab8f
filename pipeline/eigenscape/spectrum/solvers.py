"""Which solver, in which precision, and one way to call them all."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum import chebyshev, oracles
from eigenscape.spectrum.columns import MOST_COLUMNS, column_count
from eigenscape.spectrum.gather import WIDTH
from eigenscape.spectrum.state import Map, Solution
from eigenscape.spectrum.tasks import Problem
from eigenscape.spectrum.vectors import Vectors

DENSE_ROWS = 1500
"""Order up to which LAPACK is faster than any iteration."""

INERTIA_ROWS = 3000
"""Order up to which the eigenvalues below the last one are counted: a second or two."""

_SINGLE_TOLERANCE = 1e-6
_LEAST_GAP = 1e-4


def choose_solver(solver: str, pairs: int, rows: int) -> tuple[str, str]:
    """Return the solver that will run on a graph of `rows` rows, and why."""
    if solver != "chebyshev":
        return solver, "as asked for"
    if rows <= DENSE_ROWS:
        return "dense", f"LAPACK on the full matrix: {rows} samples are few"
    columns = column_count(pairs)
    if 3 * columns > rows:
        return (
            "dense",
            f"LAPACK on the full matrix: {pairs} eigenvectors of {rows} samples are many",
        )
    block = f"at most {columns} columns"
    if columns > MOST_COLUMNS:
        block = f"{columns} columns, {MOST_COLUMNS} at a time,"
    return "chebyshev", f"{block} in groups of {WIDTH}, from a coarse graph if it serves"


def precision(solver: str, tolerance: float, pull: float = 0.0) -> str:
    """Return the floating type that a solver works in.

    Parameters
    ----------
    solver, tolerance
        Of the job.
    pull
        Largest eigenvalue of the ties: so many times they multiply what rounding does to a vector
        at their members, so that strong ones need double.
    """
    rounding = pull * float(np.finfo(np.float32).eps)
    single = solver == "chebyshev" and tolerance >= max(_SINGLE_TOLERANCE, rounding)
    return "float32" if single else "float64"


def find_pairs(
    problem: Problem,
    solver: str,
    pairs: int,
    tolerance: float,
    map_blocks: Map,
    note: Callable[[str], None],
) -> Solution:
    """Return the lowest eigenpairs above the null vectors, by any solver.

    See `eigenscape.spectrum.chebyshev.solve` for the parameters.
    """
    if solver != "chebyshev":
        return _solve_whole(problem, solver, pairs, tolerance, map_blocks)
    solution = chebyshev.solve(problem, pairs, tolerance, map_blocks, note)
    if solution.converged and problem.operator.rows <= INERTIA_ROWS:
        work = partial(_count_missed, problem, solution.values[: pairs + 1])
        missed = map_blocks("inertia", work, ["all"], label="counting eigenvalues")[0]
        if missed:
            note(f"{missed} eigenvalue(s) below the last one were missed: solving by LAPACK")
            return _solve_whole(problem, "dense", pairs, tolerance, map_blocks)
    return solution


def _solve_whole(
    problem: Problem, solver: str, pairs: int, tolerance: float, map_blocks: Map
) -> Solution:
    vectors = problem.named("pairs", range(math.ceil(pairs / WIDTH)))
    work = partial(_solve_task, problem, vectors, pairs, tolerance)
    values, residuals = map_blocks("solve", work, [solver], label=f"{solver} solver")[0]
    done = max(residuals) <= tolerance
    return Solution(vectors, np.array(values), np.array(residuals), done, 0, 0)


def _solve_task(
    problem: Problem, vectors: Vectors, pairs: int, tolerance: float, solver: str
) -> tuple[list[float], list[float]]:
    operator, null = problem.operator.open(), problem.null_space()
    if solver == "dense":
        found = oracles.dense_pairs(operator, null, pairs)
    elif solver == "lanczos":
        found = oracles.lanczos_pairs(operator, null, pairs, tolerance)
    else:
        found = oracles.lobpcg_pairs(operator, null, pairs, tolerance)
    padded = np.zeros((operator.rows, vectors.columns))
    padded[:, :pairs] = found[1]
    vectors.write(slice(None), padded)
    residuals = oracles.residual_norms(operator, found)
    return found[0].tolist(), residuals.tolist()


def _count_missed(problem: Problem, values: NDArray[np.float64], _: str) -> int:
    """Return how many eigenvalues below the found ones are missing among these.

    They are counted at the widest gap that the upper half of them leaves; where there is none, all
    belong to one eigenvalue, and nothing can be told.
    """
    operator, nulls = problem.operator.open(), problem.null_space().count
    half = len(values) // 2
    gaps = np.diff(values[half:])
    if not len(gaps) or gaps.max() < _LEAST_GAP * operator.bound:
        return 0
    at = half + int(np.argmax(gaps))
    below = oracles.count_below(operator, float(values[at] + values[at + 1]) / 2)
    return below - nulls - (at + 1)
