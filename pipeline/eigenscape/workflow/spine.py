"""The spine: the stages in the order in which data flows; plan, run, resume.

It does no numerical work itself. What a stage reads and what its result depends on stand in
`STAGES`; everything else follows from that table.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eigenscape.base.memory import format_bytes
from eigenscape.base.process.progress import LOG, LogLines, Reporter, default_reporter
from eigenscape.clusters import ClusterOptions, Executor, connect
from eigenscape.clusters.workers.client import place_of
from eigenscape.errors import MemoryLimitError
from eigenscape.job.jobfile import Job
from eigenscape.scenes.ingest.stage import check_sizes
from eigenscape.spectrum.potential import check_potential_classes
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings, beside
from eigenscape.workflow.choice.auto import plan_choice
from eigenscape.workflow.choice.kept import (
    HELD_BYTES,
    forget_trials,
    held_bytes,
    known_choice,
    make_choice,
    settled,
    trial_parent,
)
from eigenscape.workflow.directories import check_run_directory, run_directory
from eigenscape.workflow.finished.result import NeighborReport, Result
from eigenscape.workflow.objects import as_job
from eigenscape.workflow.plan import (
    Plan,
    open_projection,
    project_again,
    project_beside,
    project_plan,
)
from eigenscape.workflow.runner import Runner, fit_limits
from eigenscape.workflow.stages import STAGES, stage_keys


def run(
    job: Job | Mapping[str, Any] | str | Path,
    *,
    on: ClusterOptions | str | Path | None = None,
    client: Any = None,
    run_dir: str | Path | None = None,
    reporter: Reporter | None = None,
    executor: Executor | None = None,
    siblings: Siblings | None = None,
) -> Result:
    """Run a job, or continue an unfinished run of it; see `eigenscape.run_study` for a job with ``[study]``.

    Parameters
    ----------
    job
        The job: a `Job`, its tables as a mapping (`parse_job`), or the path of a job file (`load_job`).
    on
        Cluster on which to run the job: loaded cluster options (`eigenscape.clusters.load_cluster`), the path
        of a cluster file, or the address of a scheduler. By default, the threads of this process; then no
        process is started and no port is opened.
    client
        A `distributed.Client` whose workers run the job, or "current" for the client of this process or of
        the task on a Dask worker. The workers must see the run directory.
    run_dir
        Run directory; ``runs/<name>-<key>`` by default.
    reporter
        Called with the progress; by default a table in a notebook, elsewhere lines to the logger
        ``eigenscape``.
    executor
        An executor that is already connected; `on` then only describes it.
    siblings
        Runs whose finished stages may be taken over; by default the runs in the same parent directory.

    Returns
    -------
    Result
        The result. If the run was already finished, it is read from the run directory.

    Raises
    ------
    InputError
        The job or its files are unusable, or the job cannot run on the cluster.
    ClusterLostError
        The scheduler or all workers are lost. Finished stages are kept: the same call continues the run.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> result = eigenscape.run(job, run_dir="runs/first")
    >>> result.scores["overall_accuracy"] > 0.5
    True
    """
    job = as_job(job)
    reporter = reporter or default_reporter()
    on = place_of(on, client)
    keys = stage_keys(job)
    path = run_directory(job, keys, run_dir)
    check_run_directory(path, job)
    if job.open:
        with ExitStack() as stack:
            if executor is None and known_choice(keys, path) is None:
                limits = (job.limits.threads, job.limits.memory_bytes)
                executor = stack.enter_context(connect(on, *limits, reporter.note))
            return _run_chosen(job, keys, path, on, reporter, executor, siblings)
    return _run(job, keys, path, on, reporter, executor, siblings)


def _run_chosen(
    job: Job,
    keys: Mapping[str, str],
    path: Path,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None,
    siblings: Siblings | None,
) -> Result:
    """Choose the methods that a job leaves open, and run it with them."""
    known = known_choice(keys, path) is not None
    chosen, chosen_keys, notes = make_choice(
        job, keys, path, on=on, reporter=reporter, executor=executor
    )
    held = 0 if known else held_bytes()
    # What was tried on the whole scene need not be computed again.
    siblings = siblings or Siblings(partial(_beside_and_tried, path))
    result = _run(chosen, chosen_keys, path, on, reporter, executor, siblings, held, notes)
    forget_trials(path)
    return result


def _beside_and_tried(path: Path) -> Iterator[Path]:
    yield from path.parent.iterdir()
    if (tried := trial_parent(path) / "variants").is_dir():
        yield from tried.iterdir()


def _run(
    job: Job,
    keys: Mapping[str, str],
    path: Path,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None,
    siblings: Siblings | None,
    held: int = 0,
    remarks: tuple[str, ...] = (),
) -> Result:
    """Run a job whose methods are all named; `held` is that of `held_bytes` after a choice, 0 without one."""
    # Refuses what cannot fit, before anything is written.
    fitted = fit_limits(job, on)
    project = open_projection(fitted, on)
    planned, limit = project(), fitted.limits.memory_bytes
    planned.check(limit)
    peaks = planned.peaks
    if held:
        # As `plan` said of the open job.
        peaks = project(HELD_BYTES).peaks
        if planned.threads is not None:
            planned, excess = project_beside(project, limit, held)
            if excess:
                reporter.note(excess)
    runner = Runner(
        job, STAGES, keys, {"projected": peaks}, check=_check_ingest, memory_note=memory_note,
        threads=planned.threads, fewer=planned.fewer, remarks=remarks,
    )  # fmt: skip
    times = runner.run(path, on, reporter, executor=executor, siblings=siblings)
    result = result_of(Run(path, create=False), times)
    if not result.converged and isinstance(reporter, LogLines):
        LOG.warning("%s: not converged: the results are kept", path)
    return result


def plan(
    job: Job | Mapping[str, Any] | str | Path,
    *,
    on: ClusterOptions | str | Path | None = None,
    client: Any = None,
    run_dir: str | Path | None = None,
) -> Plan:
    """Plan a run without running it: sizes, tasks, projected peaks of memory, reused stages.

    Parameters
    ----------
    job
        The job, as in `eigenscape.run`. Its scene is opened, but its pixels are not read.
    on, client
        Cluster or client on which the job would run, as in `eigenscape.run`.
    run_dir
        Run directory, as in `eigenscape.run`.

    Returns
    -------
    Plan
        Tasks, memory and disk of each stage, and the stages that are already finished.

    Raises
    ------
    InputError
        The job or its files are unusable.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> planned = eigenscape.plan(job)
    >>> planned.samples, [stage.name for stage in planned.stages][:3]
    (1600, ['ingest', 'features', 'neighbors'])
    """
    job = as_job(job)
    keys = stage_keys(job)
    path = run_directory(job, keys, run_dir)
    check_run_directory(path, job)
    on = place_of(on, client)
    if job.open and known_choice(keys, path) is None:
        jobs, notes = plan_choice(job)
        held = HELD_BYTES if jobs else 0
        plans = [project_plan(fit_limits(one, on), on, held, named=False) for one in jobs or [job]]
        largest = max(plans, key=lambda planned: planned.peak_bytes)
        return replace(largest, run=str(path), notes=(*largest.notes, *notes))
    job, keys = settled(job, keys, path)
    own, others = Run(path, create=False), beside(path)
    reused = {
        stage.name: own.is_finished(stage.name, keys[stage.name])
        or any(others.find(stage.name, keys[stage.name], exclude=path))
        for stage in STAGES
    }
    return replace(project_plan(fit_limits(job, on), on), run=str(path), reused=reused)


def result_of(directory: Run, stages: tuple[dict[str, Any], ...]) -> Result:
    """Collect a `Result` from the manifest of a finished run."""
    records = directory.manifest["stages"]
    summaries = {name: dict(record["summary"]) for name, record in records.items()}
    outputs = summaries.get("export", {}).get("outputs", {})
    spectrum, extend = summaries.get("spectrum", {}), summaries.get("extend", {})
    return Result(
        path=directory.path,
        stages=stages,
        scores=summaries.get("learn", extend).get("scores", {}),
        neighbors=NeighborReport(summaries.get("neighbors", {}), directory.path),
        spectrum=spectrum,
        outputs={name: str(directory.path / "outputs" / file) for name, file in outputs.items()},
        converged=bool(spectrum.get("converged", True)),
        warnings=tuple(filter(None, [summaries.get("learn", {}).get("warning")])),
        applied={
            key: extend[key]
            for key in ("how", "machine", "samples", "without_class", "far", "shift")
            if key in extend
        },
    )


def memory_note(job: Job, ingested: Mapping[str, Any], tasks: int, neighbors: float) -> str:
    """Return a note on the memory of the stages after a search by radius; see `Runner.memory_note`.

    Parameters
    ----------
    job
        The job.
    ingested
        Summary of the ingest stage.
    tasks
        Number of tasks that share the memory of a process.
    neighbors
        Mean number of neighbours of a sample.

    Raises
    ------
    MemoryLimitError
        A stage needs more than the limit.
    """
    samples, bands = ingested["samples"], sum(ingested["bands"]["good"])
    planned = project_again(job, samples, bands, tasks, neighbors)
    try:
        planned.check(job.limits.memory_bytes)
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"neighbors.radius: random samples have {neighbors:,.0f} neighbours on average. With so many, "
            f"{error} Or set a smaller neighbors.radius."
        ) from None
    needs = (f"{stage.name} {format_bytes(stage.peak_bytes)}" for stage in planned.stages)
    return f"projected peaks with so many neighbours: {', '.join(needs)}"


def _check_ingest(job: Job, ingested: Mapping[str, Any]) -> None:
    grid = ingested["grid"]
    labelled, names = (
        {int(number): value for number, value in ingested[key].items()}
        for key in ("labelled", "class_names")
    )
    check_sizes(job, ingested["samples"], labelled, names, grid["height"] * grid["width"])
    numbers = sorted(labelled)
    job.learn.check_classes(numbers)
    check_potential_classes(job.graph.potential, numbers)
