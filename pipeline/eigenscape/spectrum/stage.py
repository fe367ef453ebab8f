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

from eigenscape.base.blocks import Block, blocks, sample_blocks
from eigenscape.base.files.mapped import save_array
from eigenscape.base.memory import ROW_TILE
from eigenscape.base.shares import counted
from eigenscape.context import Context
from eigenscape.errors import InputError
from eigenscape.job.options import SpectrumOptions
from eigenscape.scenes.ingest.ingested import IngestedScene
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.iteration.layout import Layout
from eigenscape.spectrum.iteration.rowparts import describe_rows
from eigenscape.spectrum.iteration.solvers import choose, find_pairs
from eigenscape.spectrum.iteration.state import Solution
from eigenscape.spectrum.iteration.tasks import Problem, groups_held
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Operator
from eigenscape.spectrum.kernels.thin import Profile, profile, whole_structure
from eigenscape.spectrum.kernels.ties import join_components
from eigenscape.spectrum.landmarks import landmark_spectrum
from eigenscape.spectrum.potential import Potential, SceneSamples, make_potential
from eigenscape.spectrum.scaled import StoredGraph, sample_rows, store_laplacian, stored_graph
from eigenscape.store.arrays import chunk_rows, open_memmap, write_rows
from eigenscape.store.manifest import Record


def spectrum_stage(context: Context) -> dict[str, Any]:
    """Write ``spectrum/value``, ``spectrum/residual`` (mode) and ``spectrum/vector``."""
    if context.job.neighbors.most_landmarks is not None:
        return landmark_spectrum(context)
    options, kind = context.job.spectrum, context.job.graph.laplacian
    record = context.run.record("graph")
    assert record is not None, "the spectrum follows the graph"
    rows, connected = record.summary["rows"], record.summary["connected"]
    degree = np.asarray(context.memmap("graph/degree"))
    graph, potential = stored_graph(context.run), _potential(context, degree)

    def measure() -> Profile:
        work = partial(_measure_profile, graph)
        return Profile(*context.map("profile", work, ["all"], label="profile of the graph")[0])

    choice = choose(
        options.solver, options.dimension, options.tolerance, kind, degree, pull=potential.pull,
        dimension=_intrinsic_dimension(context.run.record("neighbors")), measure=measure,
        budget=context.task_bytes,
    )  # fmt: skip
    directory = context.workspace.folder("operator")
    stored = store_laplacian(
        graph, directory, kind, choice.dtype, potential=potential.barrier, ties=potential.ties,
        unit=choice.unit,
    )  # fmt: skip
    component = None if connected else _store_components(context, potential)
    held = groups_held(rows, choice.dtype, context.task_bytes)
    problem = Problem(stored, component, directory, held=held)
    layout = Layout(
        context.job.limits.layout, context.executor.width, context.task_bytes,
        note=context.reporter.note,
    )  # fmt: skip
    null = problem.null_space()
    _check_dimension(options, rows, null.count)
    solution = find_pairs(
        problem,
        choice.solver,
        options.dimension,
        options.tolerance,
        context.map,
        context.reporter.note,
        layout,
    )
    values, residuals = _write(context, problem, null, solution)
    return {
        "solver": choice.solver,
        "reason": choice.reason,
        "precision": choice.precision,
        "unit": choice.unit,
        "values": [float(value) for value in values],
        "max_residual": float(residuals.max()),
        "converged": bool(solution.converged),
        "passes": solution.passes,
        "products": solution.products,
        "null_vectors": null.count,
        **({"row_parts": cut} if (cut := describe_rows(problem)) else {}),
        **({"potential": potential.summary} if potential.summary else {}),
    }


def _potential(context: Context, degree: NDArray[np.float64]) -> Potential:
    """Return the potential of the job, in the rows of its graph."""
    job, record = context.job, context.run.record("ingest")
    if job.graph.potential is None:
        return Potential()
    assert record is not None, "the spectrum follows ingest"
    scene = IngestedScene.from_summary(record.summary, job.scene, job.resolve)
    given = context.open("labels/given") if scene.labelled else None
    samples = SceneSamples(
        context.open("samples/pixel"),
        context.open(scene.places),
        given,
        context.memmap("graph/sample"),
        scene,
    )
    return make_potential(
        job.graph.potential, job.learn, samples, degree, job.graph.laplacian, context.reporter.note
    )


def _intrinsic_dimension(neighbors: Record | None) -> float | None:
    """Return the dimension that the search has measured, None where it has not."""
    measured = {} if neighbors is None else neighbors.summary
    dimension: float | None = measured.get("intrinsic_dimension", {}).get("value")
    return dimension


def _measure_profile(graph: StoredGraph, _: str) -> tuple[int, float, int]:
    costs = profile(whole_structure(graph.open()))
    return costs.entries, costs.operations, costs.edges


def _check_dimension(options: SpectrumOptions, rows: int, components: int) -> None:
    limit = rows - components
    if options.dimension > limit:
        refused = (
            f"spectrum.dimension = {options.dimension}: the graph has {rows} samples in "
            f"{counted(components, 'component')}, so at most {limit} eigenvectors are not constant. "
            f"Set spectrum.dimension to {limit} or less"
        )
        raise InputError(f'{refused}, or graph.components to "connect".', f"{refused}.")


def _store_components(context: Context, potential: Potential) -> str:
    """Write the component of every row; return the path of the array."""
    labels = np.asarray(context.memmap("graph/component")[context.memmap("graph/sample")])
    if potential.ties is not None:
        labels = join_components(labels, potential.ties)
    return context.workspace.write_array("spectrum/component", labels, whole=True, dims=("row",))


def _write(
    context: Context, problem: Problem, null: NullSpace, solution: Solution
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    samples = context.open("samples/pixel").shape[0]
    dimension = context.job.spectrum.dimension
    modes = null.count + dimension
    operator = problem.operator.open()
    zeros = np.zeros(null.count)
    values = np.concatenate([zeros, solution.values[:dimension]], dtype=np.float64)
    nulls = operator.unit * _null_residuals(operator, null)
    residuals = np.concatenate([nulls, solution.residuals[:dimension]], dtype=np.float64)
    for name, array in (("spectrum/value", values), ("spectrum/residual", residuals)):
        context.workspace.write_array(name, array, dims=("mode",))
    target = context.workspace.create_array(
        "spectrum/vector", (samples, modes), np.float32, dims=("sample", "mode")
    )
    order = context.memmap("graph/sample")
    save_array(problem.directory / "row.npy", sample_rows(order, samples))
    # Worked out once: it takes a pass over all rows, which no task should repeat.
    save_array(problem.directory / "null.npy", null.entries)
    scale = None
    if FORMS[context.job.graph.laplacian].turned:
        scale = context.path("graph/degree")
    groups = list(range(-(-dimension // WIDTH)))
    signed = context.map("signs", partial(_signs, solution), groups, label="signs")
    signs = np.concatenate(signed)[:dimension]
    work = partial(_write_block, problem, null.count, solution.vectors, signs, scale, target)
    chunk = chunk_rows(samples, 4 * modes)
    ranges = sample_blocks(samples, chunk, context.task_bytes, 16 * modes)
    context.map("write", work, ranges, label="writing eigenvectors")
    return values, residuals


def _null_residuals(operator: Operator, null: NullSpace) -> NDArray[np.float64]:
    """Return |A v| of every null vector: they do not overlap, so one product serves all."""
    image = operator.times(null.entries)
    return np.sqrt(np.bincount(null.component, image**2, null.count))[: null.count]


def _signs(solution: Solution, group: int) -> list[float]:
    """Return the signs that make the entry of largest magnitude of a group's columns positive."""
    vectors = solution.vectors.attach(group)
    largest, signs = np.zeros(WIDTH), np.ones(WIDTH)
    for rows in (slice(*block) for block in blocks(len(vectors), ROW_TILE)):
        part = np.asarray(vectors[rows])
        extremes = part[np.abs(part).argmax(axis=0), np.arange(WIDTH)]
        # The first of several, as in one pass over the column.
        above = np.abs(extremes) > largest
        largest[above], signs[above] = np.abs(extremes[above]), np.sign(extremes[above])
    return [float(sign) for sign in signs]


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
    coordinates = np.zeros((len(rows), vectors.shape[1]))
    if nulls:
        coordinates[np.arange(len(rows)), component] = entries[rows]
    for group in range(-(-len(signs) // WIDTH)):
        first, last = group * WIDTH, min((group + 1) * WIDTH, len(signs))
        part = pairs.attach(group)[rows][:, : last - first]
        coordinates[:, nulls + first : nulls + last] = part * signs[first:last]
    if degree is not None:
        # D^-1/2 turns a vector of the normalised Laplacian into one of the random-walk Laplacian.
        coordinates /= np.sqrt(open_memmap(degree)[rows])[:, None]
    vectors[inside] = coordinates
    write_rows(target, block[0], vectors)
