"""The solvers by name, the choice of one and of its precision, and one way to call all of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import format_excess
from eigenscape.base.shares import counted
from eigenscape.context import Map
from eigenscape.errors import InputError, MemoryLimitError
from eigenscape.spectrum.iteration import chebyshev
from eigenscape.spectrum.iteration.kernels.columns import MOST_COLUMNS, column_count
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.iteration.layout import BY_COLUMNS, Layout
from eigenscape.spectrum.iteration.state import Solution
from eigenscape.spectrum.iteration.tasks import Problem
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels import oracles, thin
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.laplacian import usual_degree
from eigenscape.spectrum.kernels.operator import Operator

DENSE_ROWS = 1500
"""Order up to which LAPACK is faster than any iteration."""

INERTIA_ROWS = 3000
"""Order up to which the eigenvalues below the last one are counted: a second or two."""

_QUICK_ROWS = 50_000
"""Number of rows up to which measuring the profile of the graph takes a fraction of a second."""

_THIN_DIMENSION = 1.5
"""Intrinsic dimension below which the profile of a larger graph is measured."""

_SINGLE_TOLERANCE = 1e-6
_ROUNDING = 1e-5


@dataclass(frozen=True)
class WholeSolver:
    """A solver that takes the whole matrix into the memory of one task, in double.

    Attributes
    ----------
    solve
        Function that returns the lowest pairs of an operator above its null space, for a tolerance.
    bytes
        Function that returns its memory for the rows, the modes and the entries of a matrix.
    extra
        Optional package that it needs: module, package, and the extra that brings it.
    """

    solve: Callable[[Operator, NullSpace, int, float], oracles.Pairs]
    bytes: Callable[[int, int, float], float]
    extra: tuple[str, str, str] | None = None


WHOLE: Mapping[str, WholeSolver] = {
    "dense": WholeSolver(oracles.dense_pairs, oracles.dense_bytes),
    "shift-invert": WholeSolver(thin.shifted_pairs, thin.shifted_bytes),
    "lanczos": WholeSolver(oracles.lanczos_pairs, oracles.lanczos_bytes),
    "lobpcg": WholeSolver(oracles.lobpcg_pairs, oracles.lobpcg_bytes, ("pyamg", "pyamg", "amg")),
}
"""Solvers by name, beside "chebyshev", which iterates on vectors in files."""


@dataclass(frozen=True)
class Choice:
    """A solver for the eigenpairs of one graph, and the numbers that it works in.

    Attributes
    ----------
    solver, reason
        Name of the solver, and why it was chosen.
    dtype
        "float32" or "float64".
    unit
        Degree that the Laplacian is divided by: see `usual_degree`.
    """

    solver: str
    reason: str
    dtype: str
    unit: float

    @property
    def precision(self) -> str:
        """Either "single" or "double"."""
        return "single" if self.dtype == "float32" else "double"


def choose(
    asked: str,
    pairs: int,
    tolerance: float,
    kind: str,
    degree: NDArray[np.float64],
    *,
    pull: float = 0.0,
    edges: float = 0.0,
    dimension: float | None = None,
    measure: Callable[[], thin.Profile] | None = None,
    budget: int = 0,
) -> Choice:
    """Choose the solver of a graph's eigenproblem and its precision.

    Parameters
    ----------
    asked, pairs, tolerance
        Solver, eigenvectors and tolerance that are asked for.
    kind, degree
        See `eigenscape.spectrum.kernels.laplacian.laplacian`.
    pull
        Largest eigenvalue of the ties, 0 without them. Ties make a dense matrix, which is not to be
        factorised.
    edges
        Upper bound of the eigenvalues that further edges add, 0 without them.
    dimension
        Intrinsic dimension of the samples, None where it is not known.
    measure
        Function that measures the profile of the graph; it is called only if shift-invert may pay. None:
        never.
    budget
        Bytes that a factorisation may take, if shift-invert is asked for.

    Raises
    ------
    InputError
        Shift-invert is asked for, and there are ties.
    MemoryLimitError
        Shift-invert is asked for, and the factors may not fit.
    """
    rows = len(degree)
    if pull and asked == "shift-invert":
        raise InputError(
            'spectrum.solver = "shift-invert": a potential that identifies samples has no sparse '
            'matrix to factorise. Set spectrum.solver to "auto".'
        )
    worth = asked == "shift-invert" or may_be_thin(asked, pairs, rows, dimension)
    if measure is not None and worth and not pull:
        solver, reason = choose_by_graph(asked, pairs, rows, measure(), budget)
    else:
        solver, reason = choose_solver(asked, pairs, rows)
    unit = usual_degree(kind, degree)
    rounding = (pull + edges) / unit
    if not FORMS[kind].normalized:
        rounding += 4 * float(degree.max()) / unit
    return Choice(solver, reason, precision(solver, tolerance, rounding), unit)


def choose_solver(solver: str, pairs: int, rows: int) -> tuple[str, str]:
    """Return the solver that will run on a graph of `rows` rows, and why; see `choose_by_graph` too."""
    if solver in WHOLE:
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


def may_be_thin(solver: str, pairs: int, rows: int, dimension: float | None) -> bool:
    """Return whether the graph should be measured for `choose_by_graph`.

    Parameters
    ----------
    solver, pairs, rows
        See `choose_solver`.
    dimension
        Intrinsic dimension of the samples, None where it is not known.
    """
    if solver != "auto" or choose_solver(solver, pairs, rows)[0] == "dense":
        return False
    return rows <= _QUICK_ROWS or (dimension is not None and dimension <= _THIN_DIMENSION)


def choose_by_graph(
    solver: str, pairs: int, rows: int, costs: thin.Profile, budget: int
) -> tuple[str, str]:
    """Return the solver for a graph whose profile is known, and why.

    Parameters
    ----------
    solver, pairs, rows
        See `choose_solver`.
    costs
        Costs of a factorisation.
    budget
        Bytes that it may take if it is asked for.

    Raises
    ------
    MemoryLimitError
        Shift-invert is asked for, and the factors may not fit.
    """
    if solver == "shift-invert":
        if costs.bytes > budget:
            needed, left = format_excess(costs.bytes, budget)
            raise MemoryLimitError(
                f"spectrum.solver = 'shift-invert': the factors of a graph of {rows} samples can take "
                f"{needed}, and limits.memory leaves {left} for them. "
                "Set spectrum.solver to 'auto', or limits.memory to more."
            )
        return solver, "as asked for"
    if not costs.is_thin(column_count(pairs)):
        return choose_solver(solver, pairs, rows)
    return (
        "shift-invert",
        f"the factors of this graph's Laplacian are small: at most {costs.entries} entries",
    )


def precision(solver: str, tolerance: float, amplification: float = 0.0) -> str:
    """Return the floating type that a solver works in.

    Parameters
    ----------
    solver, tolerance
        Of the job.
    amplification
        Factor of the rounding errors in a product: the largest eigenvalue of ties and of further edges, or
        four times the largest degree in units of the usual one.
    """
    rounding = amplification * float(np.finfo(np.float32).eps)
    single = solver not in WHOLE and tolerance >= max(_SINGLE_TOLERANCE, rounding)
    return "float32" if single else "float64"


def find_pairs(
    problem: Problem,
    solver: str,
    pairs: int,
    tolerance: float,
    map_blocks: Map,
    note: Callable[[str], None],
    layout: Layout = BY_COLUMNS,
) -> Solution:
    """Return the lowest eigenpairs above the null vectors, by any solver.

    Parameters
    ----------
    problem, pairs, tolerance, map_blocks, note, layout
        As in `chebyshev.solve`; the tolerance is in the unit of the operator.
    solver
        Name of the solver, as from `choose`.

    Returns
    -------
    Solution
        Values and residuals are those of the Laplacian.
    """
    if solver in WHOLE:
        solution = _solve_whole(problem, solver, pairs, tolerance, map_blocks)
    else:
        solution = _iterate(problem, pairs, tolerance, map_blocks, note, layout)
    unit = problem.operator.unit
    # Below 0 there is only rounding.
    values = unit * np.maximum(solution.values, 0)
    return replace(solution, values=values, residuals=unit * solution.residuals)


def _iterate(
    problem: Problem,
    pairs: int,
    tolerance: float,
    map_blocks: Map,
    note: Callable[[str], None],
    layout: Layout,
) -> Solution:
    solution = chebyshev.solve(problem, pairs, tolerance, map_blocks, note, layout)
    if problem.operator.rows > INERTIA_ROWS:
        return solution
    if not solution.converged:
        # Eigenvalues that crowd, as those of a nearly complete graph do, which no filter separates.
        worst = float(solution.residuals[:pairs].max())
        note(f"residuals are up to {worst:.1e} after {solution.passes} passes: solving by LAPACK")
        return _solve_whole(problem, "dense", pairs, tolerance, map_blocks)
    # A value is off by its residual at most, to which single precision adds its rounding.
    limit = 4 * float(solution.residuals[:pairs].max()) + _ROUNDING * problem.operator.bound
    work = partial(_count_missed, problem, solution.values[:pairs], limit)
    missed = map_blocks("inertia", work, ["all"], label="counting eigenvalues")[0]
    if missed > 0:
        note(f"missed {counted(missed, 'eigenvalue')} below the last one: solving by LAPACK")
        return _solve_whole(problem, "dense", pairs, tolerance, map_blocks)
    return solution


def _solve_whole(
    problem: Problem, solver: str, pairs: int, tolerance: float, map_blocks: Map
) -> Solution:
    vectors = problem.named("pairs", range(math.ceil(pairs / WIDTH)))
    work = partial(_solve_task, problem, vectors, pairs, tolerance)
    values, residuals = map_blocks("solve", work, [solver], label=f"{solver} solver")[0]
    done = bool(np.max(residuals) <= tolerance)  # not so if one is no number
    return Solution(vectors, np.array(values), np.array(residuals), done, 0, 0)


def _solve_task(
    problem: Problem, vectors: Vectors, pairs: int, tolerance: float, solver: str
) -> tuple[list[float], list[float]]:
    operator, null = problem.operator.open(), problem.null_space()
    solved = WHOLE[solver].solve(operator, null, pairs, tolerance)
    padded = np.zeros((operator.rows, vectors.columns))
    padded[:, :pairs] = solved[1]
    vectors.write(slice(None), padded)
    residuals = oracles.residual_norms(operator, solved)
    return solved[0].tolist(), residuals.tolist()


def _count_missed(problem: Problem, values: NDArray[np.float64], limit: float, _: str) -> int:
    """Return how many eigenvalues below the last of the found ones are missing among these.

    See `oracles.place_below_last` for the values and the limit.
    """
    operator, nulls = problem.operator.open(), problem.null_space().count
    place = oracles.place_below_last(values, limit)
    if place is None:
        return 0
    at, top = place
    return oracles.count_below(operator, top - limit / 2) - nulls - at
