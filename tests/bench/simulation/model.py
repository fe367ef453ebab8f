"""Seconds of recorded batches on a cluster: list scheduling, a driver, a network and a file system.

::

    driver      hands out a task in `driver_s`, one after the other; takes results in the same way
    worker      a task in `worker_s` + its seconds + its bytes / `link`, as many at a time as threads
    files       all bytes of a batch / `files`, at least
    cores       all seconds of a batch / `cores`, at least: of workers and a driver on one machine

Tasks of an order go to the worker of their place, and are handed out when those before them are done.
"""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recording import Batch, Task


@dataclass(frozen=True)
class Cluster:
    """A cluster, its network and its file system.

    Attributes
    ----------
    workers, threads
        Worker processes, each on a machine of its own, and the threads of each.
    driver_s
        Seconds of driver and scheduler for each task.
    worker_s
        Seconds of a worker for each task, beside its work.
    delay
        Seconds from the driver to the worker of a task, and back.
    link, files
        Bytes a second between a worker and the file system, and of the file system altogether.
    one_machine
        Whether workers and driver are one machine, which maps pages of the same files.
    cores
        Cores that they share, without what keeps them busy while they wait; no limit by default.
    loads
        Seconds that every process takes in each stage to import and to load compiled functions.
    """

    workers: int
    threads: int = 1
    driver_s: float = 0.0
    worker_s: float = 0.0
    delay: float = 0.0
    link: float = math.inf
    files: float = math.inf
    one_machine: bool = False
    cores: float = math.inf
    loads: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Seconds:
    """Predicted seconds of a stage, and where they go.

    Attributes
    ----------
    driver
        Of the driver between batches.
    pinned
        Of batches that run on one machine.
    tasks
        Of all other batches.
    """

    driver: float = 0.0
    pinned: float = 0.0
    tasks: float = 0.0

    @property
    def whole(self) -> float:
        """Return all seconds."""
        return self.driver + self.pinned + self.tasks


def stage_seconds(batches: Iterable[Batch], cluster: Cluster) -> dict[str, Seconds]:
    """Return the predicted seconds of every stage."""
    found: dict[str, Seconds] = {}
    for batch in batches:
        first = batch.stage not in found
        stage = found.setdefault(batch.stage, Seconds())
        load = cluster.loads.get(batch.stage, 0.0) if first else 0.0
        moved = batch.before_read + batch.before_written
        stage.driver += load + batch.before + moved / min(cluster.link, cluster.files)
        if batch.pinned and not cluster.one_machine:
            stage.pinned += sum(task_seconds(task, cluster) + task.driver for task in batch.tasks)
        else:
            stage.tasks += batch_seconds(batch, cluster) + (load if batch.tasks else 0.0)
    return found


def task_seconds(task: Task, cluster: Cluster, *, mapped: bool = True) -> float:
    """Return the seconds of a task on its worker; what it maps may have been mapped there before."""
    return task.seconds + moved(task, mapped=mapped) / cluster.link


def moved(task: Task, *, mapped: bool = True) -> int:
    """Return the bytes that a task moves between its worker and the file system."""
    return task.read + task.written + (task.mapped if mapped else 0)


def batch_seconds(batch: Batch, cluster: Cluster) -> float:
    """Return the seconds of one batch, by a simulation of its events."""
    tasks, ordered = batch.tasks, bool(batch.after)
    if not tasks:
        return 0.0
    first = _first_of_place(batch)
    left = [len(set(each)) for each in batch.after] if ordered else [0] * len(tasks)
    following: dict[int, list[int]] = {}
    for number, before in enumerate(batch.after):
        for other in set(before):
            following.setdefault(other, []).append(number)
    # Places that are next to each other are on one worker, as with `Workers`.
    places = 1 + max(batch.places, default=0)
    workers, threads = cluster.workers, cluster.threads
    slots = [[0.0] * threads for _ in range(workers)] if ordered else [[0.0] * threads * workers]
    events: list[tuple[float, int, int]] = []
    driver = end = 0.0

    def hand_out(number: int) -> None:
        nonlocal driver
        driver += cluster.driver_s
        heapq.heappush(events, (driver + cluster.delay, 1, number))

    for number in range(len(tasks)):
        if not left[number]:
            hand_out(number)
    while events:
        now, kind, number = heapq.heappop(events)
        if kind == 1:
            mapped = not ordered or number in first
            takes = cluster.worker_s + task_seconds(tasks[number], cluster, mapped=mapped)
            own = slots[batch.places[number] * workers // places if ordered else 0]
            done = max(now, heapq.heappop(own)) + takes
            heapq.heappush(own, done)
            heapq.heappush(events, (done + cluster.delay, 0, number))
            continue
        driver = max(driver, now) + tasks[number].driver
        end = max(end, driver)
        for other in following.pop(number, ()):
            left[other] -= 1
            if not left[other]:
                hand_out(other)
    bytes_moved = sum(
        moved(task, mapped=not ordered or number in first) for number, task in enumerate(tasks)
    )
    work = sum(task.seconds + task.driver for task in tasks)
    work += len(tasks) * (cluster.driver_s + cluster.worker_s)
    return max(end, bytes_moved / cluster.files, work / cluster.cores)


def _first_of_place(batch: Batch) -> set[int]:
    """Return the first task of each place: later ones find its pages in the memory of the worker."""
    first: dict[int, int] = {}
    for number, place in enumerate(batch.places):
        first.setdefault(place, number)
    return {*first.values()}
