"""The spine: the stages in the order in which data flows; plan, run, resume.

It does no numerical work itself. What a stage reads and what its result depends on stand in
`STAGES`; everything else follows from that table.
"""

import platform
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eigenscape import __version__, memory
from eigenscape.cluster import ClusterOptions, Executor, connect
from eigenscape.errors import InputError
from eigenscape.files import explain_write_errors
from eigenscape.job import Job
from eigenscape.progress import Logged, Reporter, Silent
from eigenscape.projection import Plan, project_plan
from eigenscape.scenes.ingest import check_sizes
from eigenscape.siblings import Siblings, beside
from eigenscape.stage import Context
from eigenscape.stages import STAGES, Stage, stage_keys
from eigenscape.store import Record, Run, lock_holder, read_manifest

_PACKAGES = (
    "dask", "distributed", "numba", "numpy", "pynndescent", "rasterio", "scipy", "xarray", "zarr",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes
    ----------
    path
        The run directory.
    stages
        Name, seconds, reused, peak bytes of each stage.
    scores, neighbors, spectrum
        What learn, neighbors and spectrum reported.
    outputs
        Absolute paths of the files, by what they are.
    converged
        Whether the eigensolver reached its tolerance.
    """

    path: Path
    stages: tuple[dict[str, Any], ...]
    scores: Mapping[str, Any] = field(default_factory=dict)
    neighbors: Mapping[str, Any] = field(default_factory=dict)
    spectrum: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    converged: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        return {
            "run": str(self.path),
            "stages": list(self.stages),
            "scores": dict(self.scores),
            "neighbors": dict(self.neighbors),
            "spectrum": dict(self.spectrum),
            "outputs": dict(self.outputs),
        }


def run(
    job: Job,
    *,
    on: ClusterOptions | None = None,
    run_dir: Path | None = None,
    reporter: Reporter | None = None,
    executor: Executor | None = None,
    siblings: Siblings | None = None,
) -> Result:
    """Run a job, or what is left of it. Of a study, the job alone: see `eigenscape.run_study`.

    Parameters
    ----------
    job
        What to run.
    on
        Where to run it: the threads of this process by default.
    run_dir
        Run directory; ``runs/<name>-<key>`` by default.
    reporter
        Hears of the progress.
    executor
        Where tasks run, if that is connected already: `on` then only says of what kind it is.
    siblings
        Runs whose finished stages may be taken over; those beside this one by default.

    Raises
    ------
    InputError
        The job or its files cannot work.
    """
    reporter = reporter or Silent()
    on = on or ClusterOptions()
    keys = stage_keys(job)
    path = run_directory(job, keys, run_dir)
    # Refuses what cannot fit, before anything is written.
    project_plan(job, on).check(job.limits.memory_bytes)
    directory = Run(path)
    with directory.lock(reporter.note):
        logged = Logged(reporter, path / "log.jsonl")
        _describe_run(directory, job)
        siblings = siblings or beside(path)
        limits = (job.limits.threads, job.limits.memory_bytes)
        with nullcontext(executor) if executor else connect(on, *limits) as connected:
            times = []
            for stage in STAGES:
                _take_over(stage.name, keys[stage.name], directory, siblings)
                context = (job, directory, connected, logged)
                times.append(_run_stage(stage, keys[stage.name], *context))
                if stage.name == "ingest":
                    _check_ingest(job, directory)
        directory.tidy()
    return result_of(directory, tuple(times))


def plan(job: Job, *, on: ClusterOptions | None = None, run_dir: Path | None = None) -> Plan:
    """Say what a run would do, without doing it: sizes, tasks, projected peaks, what is reused."""
    keys = stage_keys(job)
    path = run_directory(job, keys, run_dir)
    own = [Run(path, create=False)] if (path / "manifest.json").exists() else []
    others = beside(path)
    reused = {}
    for stage in STAGES:
        runs = [*own, *others.find(stage.name, keys[stage.name], but=path)]
        reused[stage.name] = any(run.is_finished(stage.name, keys[stage.name]) for run in runs)
    return replace(project_plan(job, on or ClusterOptions()), run=str(path), reused=reused)


def status(path: Path) -> dict[str, Any]:
    """Say what of a run directory is finished, from its manifest alone.

    Raises
    ------
    InputError
        There is no run in that directory.
    """
    if not (path / "manifest.json").exists():
        raise InputError(
            f"{path}: no run directory (it has no manifest.json). Give a directory that "
            "`eigenscape run` made, such as runs/<job name>-<key>."
        )
    manifest = read_manifest(path)
    unfinished = {work.name.rpartition("-")[0] for work in (path / "work").glob("*-*")}
    stages = []
    for stage in STAGES:
        record = manifest["stages"].get(stage.name)
        state = "finished" if record else "begun" if stage.name in unfinished else "to do"
        entry = {
            key: record[key] if record else None for key in ("seconds", "peak_bytes", "finished")
        }
        stages.append({"name": stage.name, "state": state, **entry})
    done = all(stage["state"] == "finished" for stage in stages)
    return {
        "run": str(path),
        "name": manifest.get("name"),
        "state": "finished" if done else "unfinished: the same `eigenscape run` goes on",
        "holder": lock_holder(path),
        "stages": stages,
        "intrinsic_dimension": _summary(manifest, "neighbors").get("intrinsic_dimension"),
    }


def _summary(manifest: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Return what a finished stage said of itself, nothing of one that is not finished."""
    record = manifest["stages"].get(stage)
    return dict(record["summary"]) if record else {}


def run_directory(job: Job, keys: Mapping[str, str], run_dir: Path | None) -> Path:
    """Return where a job runs: one directory for each content of the whole job."""
    if run_dir is not None:
        return run_dir.resolve()
    parent = Path(job.resolve(job.output.directory)) if job.output.directory else Path("runs")
    return (parent / f"{job.name}-{keys['export'][:10]}").resolve()


def result_of(directory: Run, stages: tuple[dict[str, Any], ...]) -> Result:
    """Collect a `Result` from the manifest of a finished run."""
    summaries = {
        stage.name: record.summary
        for stage in STAGES
        if (record := directory.record(stage.name)) is not None
    }
    outputs = summaries.get("export", {}).get("outputs", {})
    spectrum = summaries.get("spectrum", {})
    return Result(
        path=directory.path,
        stages=stages,
        scores=summaries.get("learn", {}).get("scores", {}),
        neighbors=summaries.get("neighbors", {}),
        spectrum=spectrum,
        outputs={name: str(directory.path / "outputs" / file) for name, file in outputs.items()},
        converged=bool(spectrum.get("converged", True)),
    )


def _take_over(name: str, key: str, directory: Run, siblings: Siblings) -> None:
    if not directory.is_finished(name, key):
        for sibling in siblings.find(name, key, but=directory.path):
            if directory.link_from(sibling, name, key):
                break


def _run_stage(
    stage: Stage, key: str, job: Job, directory: Run, executor: Any, reporter: Reporter
) -> dict[str, Any]:
    if directory.is_finished(stage.name, key):
        record = directory.record(stage.name)
        assert record is not None
        reporter.stage(stage.name, "reused")
        return _stage_json(stage.name, record, reused=True)
    reporter.stage(stage.name, "running")
    memory.release()
    start = time.perf_counter()
    context = Context(job, directory, directory.workspace(stage.name, key), executor, reporter)
    with explain_write_errors(directory.path), memory.watch() as peak:
        summary = stage.work(context)
    record = Record(
        key=key,
        seconds=round(time.perf_counter() - start, 3),
        peak_bytes=max(peak.bytes, context.worker_peak),
        arrays=context.workspace.arrays(),
        files=context.workspace.files(),
        summary=summary,
    )
    directory.commit(stage.name, context.workspace, record)
    reporter.stage(
        stage.name, f"{record.seconds:.1f} s, peak {memory.format_bytes(record.peak_bytes)}"
    )
    return _stage_json(stage.name, record, reused=False)


def _stage_json(name: str, record: Record, *, reused: bool) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": record.seconds,
        "reused": reused,
        "peak_bytes": record.peak_bytes,
    }


def _check_ingest(job: Job, directory: Run) -> None:
    record = directory.record("ingest")
    assert record is not None
    grid = record.summary["grid"]
    check_sizes(
        job, record.summary["samples"], record.summary["labelled"], grid["height"] * grid["width"]
    )


def _describe_run(directory: Run, job: Job) -> None:
    absolute = job.model_copy(update={"scene": _absolute_scene(job)})
    with explain_write_errors(directory.path):
        (directory.path / "job.toml").write_text(absolute.to_toml(), encoding="utf-8")
        directory.manifest |= {
            "eigenscape": __version__,
            "name": job.name,
            "python": platform.python_version(),
            "versions": {name: found for name in _PACKAGES if (found := _version(name))},
            "seeds": {"features": job.features.seed, "learn": job.learn.seed},
        }
        directory.save_manifest()


def _absolute_scene(job: Job) -> Any:
    """Return the scene options with paths that hold wherever the copy of the job lies."""
    from eigenscape.scenes.registry import is_registered

    def absolute(path: str | None) -> str | None:
        return path if path is None or is_registered(path) else job.resolve(path)

    path = job.scene.path
    return job.scene.model_copy(
        update={
            "path": absolute(path) if isinstance(path, str) else tuple(map(job.resolve, path)),
            "labels": absolute(job.scene.labels),
            "mask": absolute(job.scene.mask),
        }
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
