"""The plan of a job before it runs: sizes, tasks and the projected peak of every stage."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from eigenscape.base import html
from eigenscape.base.blocks import task_bytes
from eigenscape.base.footprint import enough
from eigenscape.base.memory import format_bytes, format_excess
from eigenscape.base.process.cores import usable_cores
from eigenscape.base.shares import counted
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError, MemoryLimitError
from eigenscape.features.method import feature_method
from eigenscape.features.spectral.preparation import find_preparation
from eigenscape.graph.stage import MOST_COMPONENTS
from eigenscape.job.jobfile import Job
from eigenscape.neighbors.method import Table, neighbor_method
from eigenscape.neighbors.search.reach import MOST_BRIDGED
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.formats.tables.sparse import SparseScene
from eigenscape.scenes.geometry.companions import locate
from eigenscape.scenes.geometry.writing import lookup_bytes
from eigenscape.scenes.ingest.content import check_counts, check_train, check_two_classes
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.preview import preview_labels
from eigenscape.scenes.types import Scene
from eigenscape.scenes.views.subset import subset_of
from eigenscape.spectrum.footprint import filter_sizes
from eigenscape.spectrum.iteration.solvers import choose_solver, may_be_thin
from eigenscape.spectrum.kernels.thin import FACTOR_BYTES
from eigenscape.spectrum.potential import (
    check_potential,
    check_potential_classes,
    check_potential_files,
)
from eigenscape.workflow.extras import require_extras
from eigenscape.workflow.footprint import Sizes, StagePlan, driver_bytes

_PER_COMPONENT = 4.0
"""Samples of a component where each has one neighbour: 3.2 in the plane, up to 4 in many dimensions.
Measured: 40,399 components of 160,000 samples."""


@dataclass(frozen=True)
class Plan:
    """The tasks, memory and disk of a job. The number of samples is an upper bound: all pixels.

    Attributes
    ----------
    samples, bands, dimension
        Largest number of samples, number of good bands, number of features.
    stages
        Tasks, memory and disk of each stage.
    notes
        Decisions and their reasons.
    run
        The run directory.
    reused
        Whether each stage is already finished, by name.
    threads
        Number of threads of this process; None on a cluster, whose file sets the threads of a worker.
    fewer
        Reason why `threads` is smaller than in the job, or an empty text.
    """

    samples: int
    bands: int
    dimension: int
    stages: tuple[StagePlan, ...]
    notes: tuple[str, ...] = ()
    run: str = ""
    reused: Mapping[str, bool] = field(default_factory=dict)
    threads: int | None = None
    fewer: str = ""

    @property
    def peak_bytes(self) -> int:
        """Return the projected peak of anonymous memory of each process, in bytes."""
        return max(stage.peak_bytes for stage in self.stages)

    @property
    def peaks(self) -> dict[str, int]:
        """Return the projected peak of each stage in bytes, by name."""
        return {stage.name: stage.peak_bytes for stage in self.stages}

    def check(self, limit: int) -> None:
        """Raise an error if the plan does not fit into a memory limit.

        Parameters
        ----------
        limit
            The limit in bytes.

        Raises
        ------
        MemoryLimitError
            A stage needs more; the message gives the sizes and the fix.
        """
        worst = max(self.stages, key=lambda stage: stage.peak_bytes)
        if worst.peak_bytes > limit:
            one = self.threads == 1
            needed, allowed = format_excess(worst.peak_bytes, limit)
            refused = (
                f"limits.memory = {allowed}: the stage {worst.name} is projected to need "
                f"{needed}{' with one thread' if one else ''} for {self.samples} "
                "samples. Set limits.memory to"
            )
            least = enough(worst.peak_bytes)
            rest = f"or more{'' if one else ', or reduce limits.threads'}."
            raise MemoryLimitError(f"{refused} {least} {rest}", f'{refused} "{least}" {rest}')

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "run": self.run,
            "samples": self.samples,
            "bands": self.bands,
            "dimension": self.dimension,
            "peak_bytes": self.peak_bytes,
            "stages": [
                {**vars(stage), "reused": self.reused.get(stage.name, False)}
                for stage in self.stages
            ],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        rows = [
            (
                stage.name, "finished" if self.reused.get(stage.name) else counted(stage.tasks, "task"),
                format_bytes(stage.peak_bytes), format_bytes(stage.disk_bytes),
                format_bytes(stage.scratch_bytes),
            )
            for stage in self.stages
        ]  # fmt: skip
        about = {
            "samples": f"up to {self.samples:,}", "bands": self.bands, "features": self.dimension,
            "threads": self.threads, "peak": format_bytes(self.peak_bytes),
        }  # fmt: skip
        heads = ("stage", "work", "peak of memory", "disk", "scratch")
        return html.card(
            "Plan", Path(self.run).name, html.facts(about), html.table(heads, rows),
            html.folded(f"{len(self.notes)} notes", html.lines(self.notes)),
        )  # fmt: skip


class Projection(Protocol):
    """Plans a job whose scene is open, see `project_plan`; with `threads` in place of those of the job."""

    def __call__(self, held: int = 0, *, named: bool = True, threads: int | None = None) -> Plan:
        """Return the plan."""
        ...


def project_plan(job: Job, on: ClusterOptions, held: int = 0, *, named: bool = True) -> Plan:
    """Open the metadata of the scene and return the plan of the job.

    Parameters
    ----------
    job, on
        The job, and the cluster to run it on.
    held
        Memory of the libraries that the process has loaded before the first stage, in bytes.
    named
        Whether a method that cannot fit is refused by its key. Where the job does not give the key, what the
        method takes counts in the peaks alone.
    """
    return open_projection(job, on)(held, named=named)


def open_projection(job: Job, on: ClusterOptions) -> Projection:
    """Open the metadata of the scene; return what plans the job by them, without opening them again."""
    require_extras(job, on)
    scene = open_scene(job.scene, job.resolve)
    neighbor_method(job).check_graph(job.graph)
    check_potential(job.graph.potential, job.learn, scene.grid, subset_of(scene))
    check_pixels(job, scene)
    check_counts(job, scene.grid.size, f"{scene.grid.size} {scene.grid.things}")
    prepared = _check_spectral(job, scene)
    about_labels, counts, names = preview_labels(job, scene)
    if not job.learn.unsupervised:
        check_two_classes(counts or {}, names)
        _check_enough(job.learn.train, counts or {})
    check_potential_classes(job.graph.potential, counts or ())
    check_potential_files(job.graph.potential, scene, job.resolve, locate(scene, job.scene))

    def project(held: int = 0, *, named: bool = True, threads: int | None = None) -> Plan:
        limits = job.limits.model_copy(update={"threads": threads or job.limits.threads})
        limited = job.model_copy(update={"limits": limits})

        def stages_of(sizes: Sizes) -> tuple[StagePlan, ...]:
            sizes = replace(sizes, labelled=counts or None, held=held)
            return (
                sizes.ingest(scene),
                sizes.features(named=named),
                sizes.neighbors(),
                sizes.graph(),
                sizes.spectrum(),
                sizes.learn(),
                sizes.export(),
            )

        planned = fed_plan(limited, scene, on, stages_of)
        check_pairs(limited, planned.samples)
        check_factors(limited, planned.samples, planned.dimension)
        sparse = isinstance(scene, SparseScene) and feature_method(job).stays_sparse(planned.bands)
        sizes = sizes_of(limited, scene, planned.threads or on.process_threads())
        further = _notes(replace(sizes, processes=_processes(limited, on)), sparse=sparse)
        fewer = (planned.fewer,) if planned.fewer else ()
        if counts and job.advice:
            further.append(job.advice)
        if on.kind != "threads":
            own = format_bytes(driver_bytes(planned.samples))
            further.append(f"driver: this process takes up to {own}, in addition to its workers")
        return replace(
            planned,
            notes=(*describe_scene(scene), *about_labels, *prepared, *further, *fewer),
        )

    return project


def project_beside(project: Projection, limit: int, held: int) -> tuple[Plan, str]:
    """Return the plan with as many threads as there is room for beside what a choice of methods has loaded.

    It counts no more of that than leaves room for one thread: a job that fits by itself is not refused, since
    the same command would run it in a new process.

    Parameters
    ----------
    project
        Of a job that fits.
    limit
        Bytes of its ``limits.memory``.
    held
        As in `project_plan`.

    Returns
    -------
    plan
        The plan.
    excess
        A note that the limit may be exceeded, or an empty text.
    """
    room = max(0, limit - project(threads=1).peak_bytes)
    planned = project(min(held, room))
    if held <= room:
        return planned, ""
    return planned, (
        f"limits.memory = {format_bytes(limit)} may be exceeded by up to {format_bytes(held - room)}: of the "
        f"choice of methods, libraries and compiled kernels of {format_bytes(held)} stay in this process"
    )


def fed_plan(
    job: Job,
    scene: Scene,
    on: ClusterOptions,
    stages_of: Callable[[Sizes], tuple[StagePlan, ...]],
) -> Plan:
    """Return the plan with the largest number of threads that the memory limit and the job allow.

    On a cluster, the cluster file sets the number of threads of a worker process.

    Parameters
    ----------
    job, scene, on
        Job, scene and cluster to plan.
    stages_of
        Returns the needs of the stages.
    """
    asked, limit = _tasks_per_process(job.limits.threads, on), job.limits.memory_bytes
    refused = None
    for tasks in range(asked, 0, -1):
        sizes = replace(sizes_of(job, scene, tasks), processes=_processes(job, on))
        planned = Plan(sizes.n, sizes.bands, sizes.d, stages_of(sizes))
        if on.kind != "threads":
            return planned
        if planned.peak_bytes <= limit:
            break
        refused = max(planned.stages, key=lambda stage: stage.peak_bytes)
    if tasks == asked:
        return replace(planned, threads=tasks)
    assert refused is not None, "with one more it did not fit"
    more = tasks + (planned.peak_bytes <= limit)
    needed, allowed = format_excess(refused.peak_bytes, limit)
    fewer = (
        f"{counted(tasks, 'thread')} of {asked}: limits.memory = "
        f"{allowed} is too small for more (with {more} the stage {refused.name} would need {needed})"
    )
    return replace(planned, threads=tasks, fewer=fewer)


def project_again(job: Job, samples: int, bands: int, tasks: int, neighbors: float) -> Plan:
    """Return the plan of the stages after a search by radius, with an estimated number of neighbours.

    Parameters
    ----------
    job
        The job.
    samples, bands
        Of the scene.
    tasks
        Tasks that share the memory of a process.
    neighbors
        Neighbours within the radius, on average.
    """
    many = job.neighbors.model_copy(update={"k": max(1, math.ceil(neighbors))})
    columns = feature_method(job).columns(bands)
    budget = task_bytes(job.limits.memory_bytes, tasks)
    sizes = Sizes(
        job.model_copy(update={"neighbors": many}), samples, bands, columns, tasks, budget, None
    )
    stages = (sizes.graph(), sizes.spectrum(), sizes.learn())
    return Plan(samples, bands, columns, stages, threads=tasks)


def check_pixels(job: Job, scene: Scene) -> None:
    """Refuse options of pixels for a table of samples.

    Raises
    ------
    InputError
        With the key that needs pixels, and the fix.
    """
    if not scene.grid.is_table:
        return
    reasons = {
        "[features.spatial]": job.features.spatial is not None
        and "filters features among neighbouring pixels. Leave it out, or give a raster",
        "[graph.spatial]": job.graph.spatial is not None
        and "joins neighbouring pixels. Leave it out, or give a raster",
        f"learn.smoothing = {job.learn.smoothing:g}": job.learn.smoothing > 0
        and "smooths between neighbouring pixels. Leave it out, or give a raster",
        'learn.split = "blocked"': job.learn.split == "blocked"
        and 'draws squares of pixels. Set learn.split to "random", "uniform" or "balanced"',
        f'features.method = "{job.features.method}"': feature_method(job).needs_pixels,
    }
    for key, reason in reasons.items():
        if reason:
            raise InputError(
                f"{key}: {scene.files[0]} is a table of {scene.grid.height} samples, and the key "
                f"{reason}."
            )


def check_pairs(job: Job, samples: int) -> None:
    """Raise an error for k = 1 if the graph would have too many components for ``graph.components``.

    With one neighbour per sample, a component has about `_PER_COMPONENT` samples.

    Parameters
    ----------
    job
        The job.
    samples
        Of the scene, at most.

    Raises
    ------
    InputError
        With the number of components, and the fix.
    """
    neighbors, graph = job.neighbors, job.graph
    if neighbors.least_neighbors != 1 or graph.spatial is not None:
        return
    solved = min(samples, neighbors.most_landmarks or samples)
    # Fewer samples than in the file may be valid.
    most = {"connect": MOST_BRIDGED, "each": MOST_COMPONENTS, "largest": 0}[graph.components]
    if solved / _PER_COMPONENT > most and (job.scene.mask is None or not most):
        limit = f", and the limit is {most:,}" if most else f" of about {_PER_COMPONENT:g} samples"
        raise InputError(
            f'neighbors.k = 1, graph.components = "{graph.components}": the graph of each sample\'s '
            f"nearest one has about {solved / _PER_COMPONENT:,.0f} components{limit}. Set neighbors.k "
            "to 2 or more."
        )


def check_factors(job: Job, samples: int, columns: int) -> None:
    """Refuse shift-invert where the factors of the graph of a cloud cannot fit.

    In the order of Cuthill and McKee a row of a graph of n samples in the plane reaches over about
    sqrt(n) others, in more dimensions over more. The graph itself is measured before it is factorised.

    Parameters
    ----------
    job
        The job.
    samples, columns
        Of the scene at most, and of its features.

    Raises
    ------
    MemoryLimitError
        With the size of the factors, and the fix.
    """
    limit = job.limits.memory_bytes
    solved = min(samples, job.neighbors.most_landmarks or samples)
    factors = FACTOR_BYTES * solved**1.5
    if job.spectrum.solver == "shift-invert" and columns > 1 and factors > limit:
        needed, allowed = format_excess(factors, limit)
        raise MemoryLimitError(
            f'spectrum.solver = "shift-invert": the factors of a graph of {solved} samples take '
            f"{needed} and more, and limits.memory = {allowed}. Set "
            'spectrum.solver to "auto", which takes it where the factors turn out to be small, or '
            "limits.memory to more."
        )


def _check_enough(train: Any, counts: Mapping[int, int]) -> None:
    """Refuse more training pixels than there are labelled ones, valid or not."""
    if counts and isinstance(train, int) and train >= sum(counts.values()):
        check_train(train, counts)


def _check_spectral(job: Job, scene: Scene) -> list[str]:
    """Return notes on the prepared spectra; raise an error if ``[features.spectral]`` cannot be used."""
    method = feature_method(job)
    sparse = isinstance(scene, SparseScene)
    found = find_preparation(method.spectral, scene.bands, sparse=sparse)
    if found is not None and not method.prepares:
        raise InputError(
            f'[features.spectral]: features.method = "{method.method}" reads the samples as they are. Leave '
            "the table out, or set features.method to one of this package's."
        )
    return [] if found is None else found.notes()


def sizes_of(job: Job, scene: Scene, tasks: int) -> Sizes:
    """Return the arithmetic of a job on a scene, of which all pixels may be valid."""
    bands = scene.bands.count
    located = locate(scene, job.scene)
    return Sizes(
        job, scene.grid.size, bands, feature_method(job).columns(bands), tasks,
        task_bytes(job.limits.memory_bytes, tasks),
        scene.entries if isinstance(scene, SparseScene) else None,
        0 if located is None else located.grid.size,
        (0, 0, 0) if located is None else lookup_bytes(located, scene.grid.size),
    )  # fmt: skip


def _processes(job: Job, on: ClusterOptions) -> int:
    return on.process_count(job.limits.threads) or 1


def _tasks_per_process(threads: int | None, on: ClusterOptions) -> int:
    if on.in_process:
        return threads or usable_cores()
    return on.process_threads()


def _notes(sizes: Sizes, *, sparse: bool) -> list[str]:
    job, samples, bands = sizes.job, sizes.n, sizes.bands
    notes = feature_method(job).notes(samples, bands)
    columns = feature_method(job).columns(bands)
    # What its memory depends on no note says.
    notes += neighbor_method(job).notes(Table(samples, columns, 0, sparse, 0))
    solved = min(samples, job.neighbors.most_landmarks or samples)
    solver, reason = choose_solver(job.spectrum.solver, job.spectrum.dimension, solved)
    thin = may_be_thin(job.spectrum.solver, job.spectrum.dimension, solved, None)
    later = "; shift-invert, if the factors of the graph turn out to be small" if thin else ""
    notes.append(f"eigensolver: {solver} ({reason}){later}")
    if solver == "chebyshev":
        notes.append(_describe_layout(sizes))
    if not _kernels_are_compiled():
        notes.append(
            "first run: kernels are compiled once, which takes about half a minute and up to 90 MiB in "
            "addition to the projected peaks"
        )
    return notes


def _describe_layout(sizes: Sizes) -> str:
    """Return how tasks share the eigensolver's filter."""
    filtered, slots = filter_sizes(sizes), sizes.tasks * sizes.processes
    if not filtered.parts:
        return (
            f"filter: by columns, {filtered.groups} groups for {counted(slots, 'task')} at a time"
        )
    return (
        f"filter: by rows, {filtered.parts} parts for {counted(slots, 'task')} at a time "
        f"({filtered.groups} groups of columns); the run prints how many rows of other parts each part reads"
    )


def _kernels_are_compiled() -> bool:
    """Return whether numba has cached any kernel of this package."""
    package = Path(__file__).parents[1]
    elsewhere = os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_path("numba")
    found = (package.rglob("*.nbi"), Path(elsewhere).glob("kernels_*/*.nbi"))
    return any(True for files in found for _ in files)
