"""A whole scene as one task: in a process of its own, or on a worker of a cluster.

Small scenes are worked on side by side, each by one process from its file to its maps. Spread over
the workers block by block they would keep them waiting: most of such a run is too short to share.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from eigenscape.base.process.progress import Reporter
from eigenscape.base.process.signals import start_resource_tracker
from eigenscape.batch.outcomes import scene_fields, siblings_of
from eigenscape.clusters import ClusterOptions, Executor, Threads
from eigenscape.errors import ClusterLostError, TaskMemoryError, concerns_all_jobs, reason_of
from eigenscape.job.jobfile import Job
from eigenscape.workflow.spine import run


@dataclass(frozen=True)
class WholeScene:
    """One scene to run as one task.

    Attributes
    ----------
    job, path
        The job and its run directory.
    on
        Where the batch runs: `project_plan` reads it.
    threads
        Threads that the scene works on.
    tasks_per_process
        Tasks that share the memory of its process: its own threads, and other scenes.
    smaller
        Whether it is tried again because it took more memory than its worker has.
    """

    job: Job
    path: Path
    on: ClusterOptions
    threads: int = 1
    tasks_per_process: int = 1
    smaller: bool = False


Report = dict[str, Any]
"""Fields of a `SceneOutcome`, as they are sent to the driver."""


def run_whole(scene: WholeScene) -> Report:
    """Run a scene in this process; whatever goes wrong is in the report."""
    executor = Threads(scene.threads)
    executor.tasks_per_process = scene.tasks_per_process
    return run_reported(scene.job, scene.path, scene.on, executor)


def run_reported(
    job: Job,
    path: Path,
    on: ClusterOptions,
    executor: Executor,
    reporter: Reporter | None = None,
) -> Report:
    """Run a scene and return what became of it.

    Raises
    ------
    ClusterError, ClusterLostError
        There is no worker for any scene.
    """
    try:
        result = run(
            job, on=on, run_dir=path, executor=executor, reporter=reporter,
            siblings=siblings_of(path, job.name),
        )  # fmt: skip
    except Exception as error:
        if concerns_all_jobs(error):
            raise
        return failure(error)
    return {"state": "done", **scene_fields(result)}


def failure(error: BaseException) -> Report:
    """Return the report of a scene that failed."""
    trace = "".join(traceback.format_exception(error))
    return {"state": "failed", "reason": reason_of(error), "trace": trace}


Lane = Callable[[WholeScene], Report]
"""What works on one scene at a time."""


def cluster_lane(executor: Executor) -> Lane:
    """Return what runs a scene as one task of an executor.

    Raises
    ------
    ClusterError, ClusterLostError
        By the lane: there is no worker for any scene.
    """

    def lane(scene: WholeScene) -> Report:
        reports: list[Report] = []
        try:
            executor.run(run_whole, [scene], lambda _, report, peak: reports.append(report))
        except Exception as error:
            if isinstance(error, TaskMemoryError):
                if scene.smaller:
                    return failure(error)
                # Once more, from its finished blocks, with blocks of half the size.
                tasks = 2 * scene.tasks_per_process
                return lane(replace(scene, tasks_per_process=tasks, smaller=True))
            if concerns_all_jobs(error):
                raise
            # `run_whole` reports its own errors, so this one is the worker's or the scheduler's.
            raise ClusterLostError(
                f"a worker cannot run scenes ({reason_of(error)}). Finished scenes are kept: the same "
                "command goes on."
            ) from error
        return reports[0]

    return lane


class LaneStoppedError(Exception):
    """A lane was given a scene after the batch was left; nobody waits for the scene."""


class ChildLane:
    """Runs scenes in a child process, which is replaced if a scene takes it down.

    A process of its own because a small scene is mostly Python, which threads cannot share, and
    because no scene can then harm another. It opens no port.
    """

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._pipe: Connection | None = None
        self._stopped = False
        self._starting = threading.Lock()

    def __call__(self, scene: WholeScene) -> Report:
        """Run a scene and return what became of it.

        Raises
        ------
        LaneStoppedError
            `stop` was called, maybe by another thread.
        """
        with self._starting:
            if self._stopped:
                raise LaneStoppedError
            if self._process is None or not self._process.is_alive():
                self._start()
            process, pipe = self._process, self._pipe
        assert pipe is not None, "started"
        try:
            pipe.send(scene)
            report: Report = pipe.recv()
        except (EOFError, OSError):
            if self._stopped:
                raise LaneStoppedError from None
            process.join()
            code = process.exitcode
            how = (
                f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            )
            return {
                "state": "failed",
                "reason": (
                    f"its process {how}. If the system ran out of memory, lower --at-once or "
                    "limits.memory; the same command goes on from its finished blocks"
                ),
            }
        return report

    def stop(self) -> None:
        """End the process at once and start no other; what it has finished of a scene is kept."""
        # The lock of the batch is released after this call: no process may work without it.
        with self._starting:
            self._stopped = True
            process = self._process
        if process is not None:
            process.kill()
            process.join()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(other,), daemon=True)
        with _ctrl_c_blocked():
            self._process.start()
        other.close()


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Start processes that get no Ctrl-C before `_serve` ignores it, while they still import modules.

    A process inherits the signals that the thread blocks which starts it.
    """
    # Otherwise started with the process: it would let Ctrl-C through again.
    start_resource_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection) -> None:
    """Run what comes through a pipe, until it closes or the parent is gone."""
    # Ctrl-C reaches every process of the terminal: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            scene = pipe.recv()
        except EOFError:
            return
        pipe.send(run_whole(scene))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a child"
    wait([parent.sentinel])
    os._exit(1)
