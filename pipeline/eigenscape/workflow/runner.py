"""The stages of a run directory, gone through in their order: what is finished is not done again."""

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eigenscape.base import memory
from eigenscape.base.files import discard, explain_write_errors, written_whole
from eigenscape.base.points import reached
from eigenscape.base.progress import Logged, Reporter
from eigenscape.base.sums import file_sum
from eigenscape.base.version import __version__
from eigenscape.clusters import ClusterOptions, Executor, Threads, Workers, connect
from eigenscape.clusters.kinds.arguments import process_memory
from eigenscape.context import Context
from eigenscape.errors import EigenscapeError, ScratchError, StoreError, TaskMemoryError
from eigenscape.job.jobfile import Job
from eigenscape.store.manifest import Record
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings, beside
from eigenscape.store.verification import find_wrong
from eigenscape.workflow.stages import Stage

_PACKAGES = (
    "dask", "distributed", "numba", "numpy", "pynndescent", "rasterio", "scipy", "xarray", "zarr",
)  # fmt: skip
_MOST_HALVINGS = 3


@dataclass(frozen=True)
class Course:
    """Stages to go through in one run directory.

    Attributes
    ----------
    job
        What all of them read their options of.
    stages
        In their order.
    keys
        Content key of each.
    about
        What the manifest says of the run beside what it says of every run.
    check
        Refuses the job once its scene is read.
    foresee
        Projects again what the stages after a search by radius need, and refuses what does not fit:
        called with job, run, tasks that share a process and neighbours of a sample; returns what to say.
    threads
        Threads of this process, as many as the limit feeds; None on a cluster.
    fewer
        Why these are fewer than the job asks for, empty where they are not.
    remarks
        Lines to stand at the head of the copy of the job.
    """

    job: Job
    stages: tuple[Stage, ...]
    keys: Mapping[str, str]
    about: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Job, Run], None] = lambda job, directory: None
    foresee: Callable[[Job, Run, int, float], str] = lambda job, directory, tasks, neighbors: ""
    threads: int | None = None
    fewer: str = ""
    remarks: tuple[str, ...] = ()


def work_through(
    course: Course,
    path: Path,
    on: ClusterOptions,
    reporter: Reporter,
    *,
    executor: Executor | None = None,
    siblings: Siblings | None = None,
) -> tuple[dict[str, Any], ...]:
    """Go through the stages of a course that are not finished.

    Parameters
    ----------
    course
        What to go through.
    path
        Run directory.
    on, reporter, executor, siblings
        As in `eigenscape.run`.

    Returns
    -------
    tuple of dict
        Name, seconds, reused and peak bytes of each stage.
    """
    job, directory = course.job, Run(path)
    with memory.collected_quickly(), directory.lock(reporter.note):
        logged = Logged(reporter, path / "log.jsonl")
        directory.mend(course.keys, logged.note)
        _describe_run(directory, course)
        if course.fewer:
            logged.note(course.fewer)
        siblings = siblings or beside(path)
        with ExitStack() as stack:

            @cache
            def connected() -> Executor:
                """Bring up the cluster once there is something to do."""
                limits = (course.threads or job.limits.threads, job.limits.memory_bytes)
                found = executor or stack.enter_context(connect(on, *limits, logged.note))
                if isinstance(found, Workers):
                    found.share(path)
                if isinstance(found, Threads) and course.threads:
                    return found.at_most(course.threads)
                return found

            fitted = fit_limits(job, on)
            times = []
            for stage in course.stages:
                key = course.keys[stage.name]
                _take_over(stage.name, key, directory, siblings)
                work = partial(_work, stage, key, fitted, directory, course.foresee)
                times.append(_run_stage(stage.name, key, work, directory, connected, logged))
                if stage.name == "ingest":
                    course.check(fitted, directory)
        directory.tidy()
    return tuple(times)


def _take_over(name: str, key: str, directory: Run, siblings: Siblings) -> None:
    if not directory.is_finished(name, key):
        for sibling in siblings.find(name, key, but=directory.path):
            if directory.link_from(sibling, name, key):
                break


def _run_stage(
    name: str,
    key: str,
    work: Callable[[Executor, Reporter], tuple[Context, dict[str, Any]]],
    directory: Run,
    connected: Callable[[], Executor],
    reporter: Reporter,
) -> dict[str, Any]:
    if directory.is_finished(name, key):
        record = directory.record(name)
        assert record is not None
        reporter.stage(name, "reused")
        return _stage_json(name, record, reused=True)
    executor = connected()
    reporter.stage(name, "running")
    reached("stage begins", name)
    memory.release()
    start = time.perf_counter()
    with memory.watch() as peak, _damage_explained(directory.path, name):
        context, summary = work(executor, reporter)
    reached("stage worked", name)
    record = Record(
        key=key,
        seconds=round(time.perf_counter() - start, 3),
        peak_bytes=max(peak.bytes, context.worker_peak),
        arrays=context.workspace.arrays(),
        files=context.workspace.files(),
        summary=summary,
    )
    directory.commit(name, context.workspace, record)
    reached("stage committed", name)
    reporter.stage(name, f"{record.seconds:.1f} s, peak {memory.format_bytes(record.peak_bytes)}")
    return _stage_json(name, record, reused=False)


@contextmanager
def _damage_explained(path: Path, stage: str) -> Iterator[None]:
    """Name a file that was damaged while a stage was at work, where the stage fails for that."""
    try:
        yield
    except EigenscapeError:
        raise
    except Exception as error:
        # All is read again only now that something is wrong.
        if wrong := find_wrong(path):
            raise StoreError(
                f"{path / wrong[0]}, since {stage} began. Give the same command again: what is damaged "
                "is computed again, and nothing else."
            ) from error
        raise


def _work(
    stage: Stage,
    key: str,
    job: Job,
    directory: Run,
    foresee: Callable[[Job, Run, int, float], str],
    executor: Executor,
    reporter: Reporter,
) -> tuple[Context, dict[str, Any]]:
    """Do the work of a stage, again with smaller tasks where one did not fit its worker.

    Results do not depend on the size of the tasks, and blocks that are finished stay so.
    """

    def say_foreseen(neighbors: float) -> None:
        reporter.note(foresee(job, directory, executor.tasks_per_process, neighbors))

    for halvings in range(_MOST_HALVINGS + 1):
        workspace = directory.workspace(stage.name, key, reporter.note)
        context = Context(
            job, directory, workspace, executor, reporter, halvings, foresee=say_foreseen
        )
        try:
            with explain_write_errors(directory.path), workspace.recorded():
                return context, stage.work(context)
        except TaskMemoryError as error:
            size = memory.format_bytes(context.task_bytes)
            text = f"{stage.name}: a task that may take {size} was too large: {error}"
            if halvings == _MOST_HALVINGS:
                raise TaskMemoryError(
                    f"{text} Smaller ones were, too. Give the workers more memory (memory in the "
                    "cluster file), or set limits.memory lower."
                ) from None
            reporter.note(f"{text} Once more with tasks of half the size.")
        except ScratchError as error:
            # Left there, every further attempt would meet it.
            discard(workspace.path)
            raise StoreError(
                f"{error} {workspace.path} is deleted: the same command computes {stage.name} from its "
                "beginning."
            ) from None
    raise AssertionError("the last attempt returns or raises")


def fit_limits(job: Job, on: ClusterOptions) -> Job:
    """Return the job with no more ``limits.memory`` than the worker processes of a cluster have.

    A quarter of these is left to pages of mapped files, which count for them but not for the limit.
    """
    there = process_memory(on)
    if there is None or 0.75 * there >= job.limits.memory_bytes:
        return job
    limits = job.limits.model_copy(update={"memory": f"{int(0.75 * there)} B"})
    return job.model_copy(update={"limits": limits})


def _stage_json(name: str, record: Record, *, reused: bool) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": record.seconds,
        "reused": reused,
        "peak_bytes": record.peak_bytes,
    }


def _describe_run(directory: Run, course: Course) -> None:
    job = course.job
    absolute = job.model_copy(update={"scene": _absolute_scene(job)})
    with explain_write_errors(directory.path):
        file = directory.path / "job.toml"
        text = "".join(f"# {line}\n" for line in course.remarks) + absolute.to_toml()
        if file.exists() and file.read_bytes() != text.encode():
            # Nothing vouches for the job while it is replaced: a kill between the two files is no damage.
            directory.manifest.pop("job", None)
            directory.save_manifest()
        with written_whole(file) as temporary:
            temporary.write_text(text, encoding="utf-8")
        directory.manifest |= {
            "eigenscape": __version__,
            "name": job.name,
            "python": platform.python_version(),
            "versions": {name: found for name in _PACKAGES if (found := _version(name))},
            "seeds": {
                name: seed
                for name, table in job
                if (seed := getattr(table, "seed", None)) is not None
            },
            "order": [stage.name for stage in course.stages],
            "job": file_sum(file),
            **course.about,
        }
        directory.save_manifest()


def _absolute_scene(job: Job) -> Any:
    """Return the scene options with the array taken and paths that hold wherever the copy of the job lies."""
    from eigenscape.scenes.open import chosen_variable
    from eigenscape.scenes.registry import is_registered

    def absolute(path: str | None) -> str | None:
        return path if path is None or is_registered(path) else job.resolve(path)

    path = job.scene.path
    return job.scene.model_copy(
        update={
            "path": absolute(path) if isinstance(path, str) else tuple(map(job.resolve, path)),
            "labels": absolute(job.scene.labels),
            "mask": absolute(job.scene.mask),
            "variable": chosen_variable(job.scene, job.resolve),
        }
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
