"""Runners of a single stage, and of all stages of a job in their order."""

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from eigenscape.base import memory
from eigenscape.base.files.sums import file_sum
from eigenscape.base.files.whole import discard, explain_write_errors, written_whole
from eigenscape.base.process.namedpoints import reached
from eigenscape.base.process.progress import Logged, Reporter
from eigenscape.base.version import __version__, installed_version
from eigenscape.clusters import ClusterOptions, Executor, Threads, Workers, connect
from eigenscape.context import Context
from eigenscape.errors import (
    EigenscapeError,
    SceneError,
    ScratchError,
    StoreError,
    TaskMemoryError,
    reason_of,
)
from eigenscape.job.files.named import job_with_files
from eigenscape.job.jobfile import Job
from eigenscape.store.manifest import Record, date_after_others
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings, beside
from eigenscape.store.verification import find_wrong
from eigenscape.workflow.stages import Stage, check_unchanged

_PACKAGES = (
    "dask", "distributed", "numba", "numpy", "pynndescent", "rasterio", "scipy", "xarray", "zarr",
)  # fmt: skip
_MOST_HALVINGS = 3


Summary = Mapping[str, Any]
"""Entry of a finished stage in the manifest."""

Work = Callable[[Context], dict[str, Any]]
"""Work of a stage: reads committed arrays, fills a workspace, returns its summary for the manifest."""


@dataclass(frozen=True)
class StageRunner:
    """Runs single stages in a run directory, and commits their arrays and files.

    Both jobs and estimators run their stages with this class.

    Attributes
    ----------
    directory
        The run directory; its lock is held by the caller if others may work there.
    executor, reporter
        Executor of the tasks, and reporter of the progress.
    project_again
        See `eigenscape.context.Context`.
    """

    directory: Run
    executor: Executor
    reporter: Reporter
    project_again: Callable[[float], None] = lambda neighbors: None

    def run(
        self,
        name: str,
        key: str,
        work: Work,
        job: Job,
        check: Callable[[], None] = lambda: None,
    ) -> Record:
        """Run a stage, or resume it; return its record, which is then in the manifest.

        Parameters
        ----------
        name, key
            Name and key of the stage.
        work
            Function that does the work of the stage.
        job
            The job with the options of the stage.
        check
            Called before the result is kept; raises an error if it does not belong to the key.

        Raises
        ------
        SceneError
            See `check`: the stage begins anew when it is run again.
        StoreError
            A file was damaged while the stage ran.
        TaskMemoryError
            The smallest tasks do not fit the memory of their worker.
        """
        self.reporter.stage(name, "running")
        reached("stage begins", name)
        start = time.perf_counter()
        with memory.watch() as peak, _damage_explained(self.directory.path, name):
            context, summary = self._work(name, key, work, job)
        reached("stage worked", name)
        try:
            check()
        except SceneError:
            discard(context.workspace.path)
            raise
        record = Record(
            key=key,
            seconds=round(time.perf_counter() - start, 3),
            peak_bytes=max(peak.bytes, context.worker_peak),
            arrays=context.workspace.arrays(),
            files=context.workspace.files(),
            summary=summary,
        )
        self.directory.commit(name, context.workspace, record)
        reached("stage committed", name)
        taken = f"{record.seconds:.1f} s, peak {memory.format_bytes(record.peak_bytes)}"
        self.reporter.stage(name, taken)
        return record

    def _work(self, name: str, key: str, work: Work, job: Job) -> tuple[Context, dict[str, Any]]:
        """Do the work of a stage; repeat it with smaller tasks if a task exceeds the memory of its worker.

        Results do not depend on the size of the tasks, and blocks that are finished stay so.
        """
        for halvings in range(_MOST_HALVINGS + 1):
            workspace = self.directory.workspace(name, key, self.reporter.note)
            context = Context(
                job, self.directory, workspace, self.executor, self.reporter, halvings,
                project_again=self.project_again,
            )  # fmt: skip
            recorded = workspace.recorded() if self.directory.checksums else nullcontext()
            try:
                with explain_write_errors(self.directory.path), recorded:
                    return context, work(context)
            except TaskMemoryError as error:
                size = memory.format_bytes(context.task_bytes)
                text = f"{name}: a task that may take {size} was too large: {error}"
                if halvings == _MOST_HALVINGS:
                    raise TaskMemoryError(
                        f"{text} Even the smallest tasks are too large. Give the workers more memory (memory "
                        "in the cluster file), or set a smaller limits.memory."
                    ) from None
                self.reporter.note(f"{text} The stage is repeated with tasks of half the size.")
            except ScratchError as error:
                # Left there, every further attempt would meet it.
                discard(workspace.path)
                raise StoreError(
                    f"{error} {workspace.path} is deleted: the same command computes {name} from its "
                    "beginning."
                ) from None
        raise AssertionError("the last attempt returns or raises")


@contextmanager
def _logged_errors(logged: Logged) -> Iterator[None]:
    """Log the error that ends a run, for `status`."""
    try:
        yield
    except Exception as error:
        logged.error(reason_of(error))
        raise


@contextmanager
def _damage_explained(path: Path, stage: str) -> Iterator[None]:
    """Turn the error of a stage into a `StoreError` that names the damaged file, if a file is damaged."""
    try:
        yield
    except EigenscapeError:
        raise
    except Exception as error:
        # All is read again only now that something is wrong.
        if wrong := find_wrong(path):
            raise StoreError(
                f"{path / wrong[0]}, since the stage {stage} began. Give the same command again: only "
                "damaged stages are computed again."
            ) from error
        raise


@dataclass(frozen=True)
class Runner:
    """Runs the unfinished stages of a job in its run directory.

    Attributes
    ----------
    job
        The job with the options of all stages.
    stages
        The stages in their order.
    keys
        Content key of each stage, by name.
    about
        Further entries of the manifest.
    check
        Function that is called with the job and the summary of ingest, and raises an error if the job does
        not suit the scene.
    memory_note
        Function that is called after a search by radius with the job, the summary of ingest, the number of
        tasks that share a process and the mean number of neighbours. It returns a note with the projected
        memory of the later stages, and raises an error if a stage does not fit.
    threads
        Number of threads that the memory limit allows; None on a cluster.
    fewer
        Reason why `threads` is smaller than in the job, or an empty text.
    remarks
        Comment lines at the head of the copy of the job.
    """

    job: Job
    stages: tuple[Stage, ...]
    keys: Mapping[str, str]
    about: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Job, Summary], None] = lambda job, ingested: None
    memory_note: Callable[[Job, Summary, int, float], str] = lambda *_: ""
    threads: int | None = None
    fewer: str = ""
    remarks: tuple[str, ...] = ()

    def run(
        self,
        path: Path,
        on: ClusterOptions,
        reporter: Reporter,
        *,
        executor: Executor | None = None,
        siblings: Siblings | None = None,
    ) -> tuple[dict[str, Any], ...]:
        """Run the stages that are not finished.

        Parameters
        ----------
        path
            Run directory.
        on, reporter, executor, siblings
            As in `eigenscape.run`.

        Returns
        -------
        tuple of dict
            Name, seconds, reused and peak bytes of each stage.
        """
        directory = Run(path)
        with memory.collected_quickly(), directory.lock(reporter.note):
            # First, as it marks the directory as that of a run.
            directory.save_manifest()
            logged = Logged(reporter, path / "log.jsonl")
            with _logged_errors(logged), ExitStack() as stack:
                directory.mend(self.keys, logged.note)
                self._describe_run(directory)
                if self.fewer:
                    logged.note(self.fewer)
                siblings = siblings or beside(path)
                fitted = fit_limits(self.job, on)

                @cache
                def stage_runner() -> StageRunner:
                    """Bring up the cluster once there is something to do."""
                    running = executor or stack.enter_context(self._connect(on, logged))
                    if isinstance(running, Workers):
                        running.share(path)
                    if isinstance(running, Threads) and self.threads:
                        running = running.at_most(self.threads)

                    logged.surroundings = partial(_surroundings, running)

                    def note_foreseen(neighbors: float) -> None:
                        tasks = running.tasks_per_process
                        ingest = directory.record("ingest")
                        assert ingest is not None, "the search follows ingest"
                        logged.note(self.memory_note(fitted, ingest.summary, tasks, neighbors))

                    return StageRunner(directory, running, logged, note_foreseen)

                times = []
                for stage in self.stages:
                    key = self.keys[stage.name]
                    _take_over(stage.name, key, directory, siblings)
                    reused = directory.is_finished(stage.name, key)
                    if reused:
                        record = directory.record(stage.name)
                        assert record is not None, "it is finished"
                        logged.stage(stage.name, "reused")
                        # What is left out of the scene is told by each run: another one, such as a trial
                        # of the choice of methods, may have computed the stage without a word.
                        for text in record.summary.get("told", ()):
                            logged.note(text)
                    else:
                        runner = stage_runner()
                        memory.release()
                        check = partial(check_unchanged, self.job, stage, self.keys, time.time())
                        record = runner.run(stage.name, key, stage.work, fitted, check)
                    times.append(_stage_json(stage.name, record, reused=reused))
                    if stage.name == "ingest":
                        self.check(fitted, record.summary)
            directory.tidy()
            date_after_others(path, self.job.name)
        return tuple(times)

    def _connect(self, on: ClusterOptions, reporter: Reporter) -> AbstractContextManager[Executor]:
        limits = self.job.limits
        return connect(on, self.threads or limits.threads, limits.memory_bytes, reporter.note)

    def _describe_run(self, directory: Run) -> None:
        """Write the job and the head of the manifest."""
        job = self.job
        absolute = _absolute(job)
        with explain_write_errors(directory.path):
            file = directory.path / "job.toml"
            text = "".join(f"# {line}\n" for line in self.remarks) + absolute.to_toml()
            if file.exists() and file.read_bytes() != text.encode():
                # Nothing vouches for the job while it is replaced: a kill between the two files is no
                # damage.
                directory.manifest.pop("job", None)
                directory.save_manifest()
            with written_whole(file) as temporary:
                temporary.write_text(text, encoding="utf-8")
            directory.manifest |= {
                "eigenscape": __version__,
                "name": job.name,
                "python": platform.python_version(),
                "versions": {
                    name: installed for name in _PACKAGES if (installed := installed_version(name))
                },
                "seeds": {
                    name: seed
                    for name, table in job
                    if (seed := getattr(table, "seed", None)) is not None
                },
                "order": [stage.name for stage in self.stages],
                "job": file_sum(file),
                **self.about,
            }
            directory.save_manifest()


def _surroundings(running: Executor) -> dict[str, Any]:
    """Return memory, parallel tasks, workers and dashboard of an executor, for `status --follow`."""
    told: dict[str, Any] = {"memory": memory.anonymous_bytes(), "tasks": running.width}
    if isinstance(running, Workers):
        told["workers"] = len(running.addresses)
        if running.dashboard:
            told["dashboard"] = running.dashboard
    return told


def _take_over(name: str, key: str, directory: Run, siblings: Siblings) -> None:
    if not directory.is_finished(name, key):
        for sibling in siblings.find(name, key, exclude=directory.path):
            if directory.link_from(sibling, name, key):
                break


def fit_limits(job: Job, on: ClusterOptions) -> Job:
    """Return the job with ``limits.memory`` lowered to three quarters of the memory of a worker process.

    The rest is for pages of mapped files, which count for the worker but not for the limit.
    """
    available = on.process_memory()
    if available is None or 0.75 * available >= job.limits.memory_bytes:
        return job
    limits = job.limits.model_copy(update={"memory": f"{int(0.75 * available)} B"})
    return job.model_copy(update={"limits": limits})


def _stage_json(name: str, record: Record, *, reused: bool) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": record.seconds,
        "reused": reused,
        "peak_bytes": record.peak_bytes,
    }


def _absolute(job: Job) -> Job:
    """Return a job that can be run from any directory, with the name of the array that was read."""
    from eigenscape.scenes.open import chosen_variable
    from eigenscape.scenes.registry import located

    variable = chosen_variable(job.scene, job.resolve)
    named = job.model_copy(update={"scene": job.scene.model_copy(update={"variable": variable})})
    return job_with_files(named, lambda path: located(path, job.resolve))
