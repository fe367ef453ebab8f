"""The spectrum stage: smallest eigenpairs of the Laplacian, null vectors first.

The null vectors (one for each connected component) are known, so they are never searched: they
enter the result as they are and every other vector is kept orthogonal to them.

With ``[graph.potential]`` it is the spectrum of L + V. A barrier leaves no null vector (the lowest
vector, which is nearly constant, is the first of ``spectrum.dimension``); an identification leaves
the constants of the unnormalised and the random-walk Laplacian. The graph itself stays as it is, and
so does what is read from it alone: labels that are spread over it, neighbours, geodesics.

Where neighbours were sought among landmarks alone it is their spectrum, extended to all samples:
`eigenscape.spectrum.landmarks`.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.base.mapped import save_array
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.job.options import SpectrumOptions
from eigenscape.spectrum.iteration.solvers import (
    choose_by_graph,
    choose_solver,
    find_pairs,
    largest,
    may_be_thin,
    precision,
)
from eigenscape.spectrum.iteration.state import Solution
from eigenscape.spectrum.iteration.tasks import Problem, fits
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels.filter import NullSpace
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.laplacian import usual_degree
from eigenscape.spectrum.kernels.operator import Operator
from eigenscape.spectrum.kernels.thin import Profile, profile, whole_structure
from eigenscape.spectrum.kernels.ties import join_components
from eigenscape.spectrum.landmarks import landmark_spectrum
from eigenscape.spectrum.potential import Potential, make_potential
from eigenscape.spectrum.scaled import (
    StoredGraph,
    row_components,
    sample_rows,
    store_laplacian,
    stored_graph,
)
from eigenscape.store.arrays import chunk_rows, open_memmap, write_rows


def spectrum_stage(context: Context) -> dict[str, Any]:
    """Write ``spectrum/value``, ``spectrum/residual`` (mode) and ``spectrum/vector``."""
    if context.job.neighbors.form == "landmarks":
        return landmark_spectrum(context)
    options = context.job.spectrum
    graph = context.run.record("graph")
    assert graph is not None, "the spectrum follows the graph"
    rows, connected = graph.summary["rows"], graph.summary["connected"]
    degree = np.asarray(context.memmap("graph/degree"))
    kind = context.job.graph.laplacian
    potential = make_potential(context, degree)
    solver, reason = _choose_solver(context, rows, tied=potential.ties is not None)
    unit = usual_degree(kind, degree)
    dtype = precision(
        solver, options.tolerance, largest(kind, degree, unit) + potential.pull / unit
    )
    problem = _set_up(context, rows, connected, dtype, potential, unit)
    null = problem.null_space()
    _check_dimension(options, rows, null.count)
    solution = find_pairs(
        problem, solver, options.dimension, options.tolerance, context.map, context.reporter.note
    )
    values, residuals = _write(context, problem, null, solution)
    return {
        "solver": solver,
        "reason": reason,
        "precision": "single" if dtype == "float32" else "double",
        "unit": unit,
        "values": [float(value) for value in values],
        "max_residual": float(residuals.max()),
        "converged": bool(solution.converged),
        "passes": solution.passes,
        "products": solution.products,
        "null_vectors": null.count,
        **({"potential": potential.summary} if potential.summary else {}),
    }


def _choose_solver(context: Context, rows: int, *, tied: bool) -> tuple[str, str]:
    """Return the solver and why, after a look at the graph where it may be thin.

    Clusters that are tied together make a dense matrix, which is not to be factorised.
    """
    options = context.job.spectrum
    if tied:
        if options.solver == "shift-invert":
            raise InputError(
                'spectrum.solver = "shift-invert": a potential that identifies samples has no sparse '
                'matrix to factorise. Set spectrum.solver to "auto".'
            )
        return choose_solver(options.solver, options.dimension, rows)
    neighbors = context.run.record("neighbors")
    measured = {} if neighbors is None else neighbors.summary
    dimension = measured.get("intrinsic_dimension", {}).get("value")
    asked = options.solver == "shift-invert"
    if not asked and not may_be_thin(options.solver, options.dimension, rows, dimension):
        return choose_solver(options.solver, options.dimension, rows)
    work = partial(_measure_profile, stored_graph(context))
    found = Profile(*context.map("profile", work, ["all"], label="profile of the graph")[0])
    return choose_by_graph(options.solver, options.dimension, rows, found, context.task_bytes)


def _measure_profile(graph: StoredGraph, _: str) -> tuple[int, float, int]:
    found = profile(whole_structure(graph.open()))
    return found.entries, found.operations, found.edges


def _check_dimension(options: SpectrumOptions, rows: int, components: int) -> None:
    most = rows - components
    if options.dimension > most:
        raise InputError(
            f"spectrum.dimension = {options.dimension}: the graph has {rows} samples in "
            f"{components} component(s), so there are at most {most} eigenvectors beside the "
            f"constant one(s). Set spectrum.dimension to {most} or less, or graph.components to "
            '"connect".'
        )


def _set_up(
    context: Context, rows: int, connected: bool, dtype: str, potential: Potential, unit: float
) -> Problem:
    """Scale the weights into a Laplacian in scratch, and add the potential."""
    directory = context.workspace.folder("operator")
    stored = store_laplacian(
        context, directory, context.job.graph.laplacian, dtype,
        potential=potential.barrier, ties=potential.ties, unit=unit,
    )  # fmt: skip
    component = None
    if not connected:
        labels = row_components(context)
        if potential.ties is not None:
            labels = join_components(labels, potential.ties)
        component = context.workspace.create_array(
            "spectrum/component", labels.shape, labels.dtype, whole=True, dims=("row",)
        )
        write_rows(component, 0, labels)
    in_memory = fits(rows, dtype, context.task_bytes)
    return Problem(stored, component, directory, in_memory=in_memory)


def _write(
    context: Context, problem: Problem, null: NullSpace, solution: Solution
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    samples = context.open("samples/pixel").shape[0]
    dimension = context.job.spectrum.dimension
    modes = null.count + dimension
    operator = problem.operator.open()
    zeros = np.zeros(null.count)
    values = np.concatenate([zeros, solution.values[:dimension]])
    nulls = operator.unit * _null_residuals(operator, null)
    residuals = np.concatenate([nulls, solution.residuals[:dimension]])
    for name, array in (("spectrum/value", values), ("spectrum/residual", residuals)):
        path = context.workspace.create_array(name, (modes,), np.float64, dims=("mode",))
        write_rows(path, 0, array)
    target = context.workspace.create_array(
        "spectrum/vector", (samples, modes), np.float32, dims=("sample", "mode")
    )
    save_array(problem.directory / "row.npy", sample_rows(context))
    # Worked out once: it takes a pass over all rows, which no task should repeat.
    save_array(problem.directory / "null.npy", null.entries)
    scale = None
    if context.job.graph.laplacian == "random-walk":
        scale = context.path("graph/degree")
    signs = _signs(solution, dimension)
    work = partial(_write_block, problem, null.count, solution.vectors, signs, scale, target)
    chunk = chunk_rows(samples, 4 * modes)
    ranges = sample_blocks(samples, chunk, context.task_bytes, 16 * modes)
    context.map("write", work, ranges, label="writing eigenvectors")
    return values, residuals


def _null_residuals(operator: Operator, null: NullSpace) -> NDArray[np.float64]:
    """Return |A v| of every null vector: they do not overlap, so one product serves all."""
    image = operator.times(null.entries)
    return np.sqrt(np.bincount(null.component, image**2, null.count))[: null.count]


def _signs(solution: Solution, dimension: int) -> NDArray[np.float64]:
    """Return the signs that make the entry of largest magnitude of every vector positive."""
    signs = np.ones(solution.vectors.columns)
    for group in range(-(-dimension // WIDTH)):
        vectors = solution.vectors.attach(group)
        for column in range(WIDTH):
            values = np.array(vectors[:, column])
            signs[group * WIDTH + column] = np.sign(values[np.abs(values).argmax()]) or 1
    return signs[:dimension]


def _write_block(
    problem: Problem,
    nulls: int,
    pairs: Vectors,
    signs: NDArray[np.float64],
    degree: str | None,
    target: str,
    block: Block,
) -> None:
    rows = np.load(problem.directory / "row.npy", mmap_mode="r")[slice(*block)]
    inside = rows >= 0
    rows = rows[inside]
    entries = np.load(problem.directory / "null.npy", mmap_mode="r")
    component = 0 if problem.component is None else open_memmap(problem.component)[rows]
    # Samples outside of the largest component have no coordinates.
    vectors = np.full((len(inside), nulls + len(signs)), np.nan, np.float32)
    known = np.zeros((len(rows), vectors.shape[1]))
    if nulls:
        known[np.arange(len(rows)), component] = entries[rows]
    for group in range(-(-len(signs) // WIDTH)):
        first, last = group * WIDTH, min((group + 1) * WIDTH, len(signs))
        part = pairs.attach(group)[rows][:, : last - first]
        known[:, nulls + first : nulls + last] = part * signs[first:last]
    if degree is not None:
        # D^-1/2 turns a vector of the normalised Laplacian into one of the random-walk Laplacian.
        known /= np.sqrt(open_memmap(degree)[rows])[:, None]
    vectors[inside] = known
    write_rows(target, block[0], vectors)
