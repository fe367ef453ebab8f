"""How many scenes are worked on at a time, and where."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from eigenscape.base.memory import collected_quickly
from eigenscape.base.process.cores import usable_cores
from eigenscape.base.process.progress import Reporter
from eigenscape.batch.outcomes import SceneOutcome
from eigenscape.batch.whole import ChildLane, Lane, Report, WholeScene, cluster_lane, run_reported
from eigenscape.clusters import ClusterOptions, Executor, Workers, connect
from eigenscape.workflow.plan import Plan

MOST_AT_ONCE = 64
"""Scenes at once on a cluster unless more are asked for: each has a thread of this process, which waits."""

Hear = Callable[[SceneOutcome, Report], None]
"""Called with each scene that has ended."""


@dataclass(frozen=True)
class Planned:
    """A scene to do.

    Attributes
    ----------
    outcome
        The scene.
    plan
        What it will need.
    memory
        ``limits.memory`` in bytes, or what the workers have of it.
    """

    outcome: SceneOutcome
    plan: Plan
    memory: int


def run_scenes(
    todo: Sequence[Planned],
    path: Path,
    on: ClusterOptions,
    at_once: int | None,
    reporter: Reporter,
    hear: Hear,
) -> None:
    """Run scenes, several at once where that keeps the workers busy.

    Parameters
    ----------
    todo
        The scenes; those at the front begin first.
    path
        Directory of the batch.
    on
        Where to run them.
    at_once
        How many at a time, each as one task; 1 for one after another over all workers; None to
        choose.
    reporter
        Hears of the progress of a scene that runs alone.
    hear
        Called in this thread.

    Raises
    ------
    ClusterError, ClusterLostError
        The cluster cannot be used, or was lost.
    """
    jobs = [planned.outcome.scene.job for planned in todo]
    memory = max(job.limits.memory_bytes for job in jobs if job is not None)
    threads = max((job.limits.threads or 0 for job in jobs if job is not None), default=0) or None
    if on.in_process:
        cores = threads or usable_cores()
        many = at_once or _processes(todo, cores)
        if many > 1:
            with _children(min(many, len(todo))) as lanes:
                _run_side_by_side(todo, lanes, on, max(1, cores // many), 0, hear)
            return
    with connect(on, threads, memory, reporter.note) as executor, collected_quickly():
        many = (at_once or _tasks(todo, executor)) if not on.in_process else 1
        if many > 1:
            if isinstance(executor, Workers):
                executor.share(path)
            lanes = [cluster_lane(executor)] * min(many, len(todo))
            share = min(executor.tasks_per_process, many)
            _run_side_by_side(todo, lanes, on, 1, share, hear)
            return
        for planned in todo:
            outcome = planned.outcome
            assert outcome.scene.job is not None, "planned"
            assert outcome.path is not None, "planned"
            reporter.note(f"scene {outcome.scene.name}")
            hear(outcome, run_reported(outcome.scene.job, outcome.path, on, executor, reporter))


def _processes(todo: Sequence[Planned], cores: int) -> int:
    """Return how many scenes run at once in processes of this machine: as many as have room."""
    if len(todo) < 3:
        return 1  # not worth the seconds in which processes start
    largest = max(planned.plan.peak_bytes for planned in todo)
    room = int(0.8 * psutil.virtual_memory().available // largest)
    return max(1, min(cores, len(todo), room))


def _tasks(todo: Sequence[Planned], executor: Executor) -> int:
    """Return how many scenes run at once on a cluster: one for each task, or one over all workers."""
    together = executor.tasks_per_process
    if any(together * planned.plan.peak_bytes > planned.memory for planned in todo):
        return 1  # scenes that share a worker would not fit there together
    tasks = min(max(stage.tasks for stage in planned.plan.stages) for planned in todo)
    if len(todo) < executor.width and tasks >= 2 * executor.width:
        return 1  # a few large scenes: each has blocks enough for everybody
    return min(executor.width, MOST_AT_ONCE)


@contextmanager
def _children(count: int) -> Iterator[list[Lane]]:
    children = [ChildLane() for _ in range(count)]
    try:
        yield list(children)
    finally:
        for child in children:
            child.stop()


def _run_side_by_side(
    todo: Sequence[Planned],
    lanes: Sequence[Lane],
    on: ClusterOptions,
    threads: int,
    tasks_per_process: int,
    hear: Hear,
) -> None:
    waiting: queue.SimpleQueue[SceneOutcome] = queue.SimpleQueue()
    for planned in todo:
        waiting.put(planned.outcome)
    ended: queue.SimpleQueue[tuple[SceneOutcome, Report | BaseException]] = queue.SimpleQueue()

    left = threading.Event()

    def work(lane: Lane) -> None:
        while not left.is_set():
            try:
                outcome = waiting.get_nowait()
            except queue.Empty:
                return
            job, path = outcome.scene.job, outcome.path
            assert job is not None, "planned"
            assert path is not None, "planned"
            scene = WholeScene(job, path, on, threads, tasks_per_process or threads)
            try:
                ended.put((outcome, lane(scene)))
            except BaseException as error:
                ended.put((outcome, error))
                return

    try:
        for lane in lanes:
            # Daemons: an interrupt ends the batch at once, and the scenes with their processes.
            threading.Thread(target=work, args=(lane,), daemon=True).start()
        for _ in todo:
            outcome, report = ended.get()
            if isinstance(report, BaseException):
                raise report
            hear(outcome, report)
    finally:
        left.set()  # the lock of the batch is released soon: no thread may take another scene
