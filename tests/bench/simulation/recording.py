"""A recording of a run: every task in turn on one core, and what it takes.

A recording has a batch for each call of `Executor.run`: its tasks may run at the same time, and the
driver waits for all of them.
"""

import json
import os
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import eigenscape
from eigenscape import context
from eigenscape.base.process.progress import Silent
from eigenscape.clusters import ClusterOptions, OnDone, Order
from eigenscape.clusters.workers.executors import Task as Function
from eigenscape.clusters.workers.executors import measured, one_blas_thread
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_S = 0.005


@dataclass(frozen=True)
class Task:
    """What one task takes.

    Attributes
    ----------
    seconds, wall
        Of the processor, and of the clock.
    read, written, mapped
        Bytes read and written by system calls, and file pages that came into memory.
    driver
        Seconds of the driver for its result (the journal).
    sent
        Bytes of its item and its result through the scheduler.
    """

    seconds: float
    wall: float = 0.0
    read: int = 0
    written: int = 0
    mapped: int = 0
    driver: float = 0.0
    sent: int = 0


@dataclass
class Batch:
    """The tasks of one call, and the work of the driver before it.

    Attributes
    ----------
    stage, step, function
        Where it belongs, the label of its progress bar, and what its tasks run.
    before, before_wall, before_read, before_written
        Work of the driver since the last batch, or since the stage began.
    pinned
        Whether it runs on one machine (`Context.map`, `together`).
    tasks
        What each takes.
    items
        (step, part, first group, end) of each, where they wait for each other.
    after, places
        See `eigenscape.clusters.Order`; empty where no task waits.
    files, journal
        Files below the run directory when it is done, and bytes of the journals among them.
    """

    stage: str
    step: str
    function: str
    before: float = 0.0
    before_wall: float = 0.0
    before_read: int = 0
    before_written: int = 0
    pinned: bool = False
    tasks: list[Task] = field(default_factory=list)
    items: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    files: int = 0
    journal: int = 0


@dataclass
class Recording:
    """A run of `rows` samples, cut as for `width` tasks at a time; an empty batch ends each stage."""

    rows: int
    width: int
    batches: list[Batch]
    notes: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote."""
        table = json.loads(path.read_text())
        batches = [
            Batch(**{**batch, "tasks": [Task(**task) for task in batch["tasks"]]})
            for batch in table.pop("batches")
        ]
        return cls(**table, batches=batches)

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in their order."""
        return list(dict.fromkeys(batch.stage for batch in self.batches))


class Recorder(Silent):
    """The executor and the reporter of a run that is recorded.

    Parameters
    ----------
    width
        Number of tasks at a time for which stages cut their work.
    directory
        The run directory.
    """

    tasks_per_process = 1

    def __init__(self, width: int, directory: Path) -> None:
        self.width = width
        self.batches: list[Batch] = []
        self.notes: list[str] = []
        self._directory = directory
        self._stage = self._step = ""
        self._mark = _Mark()
        self._pages = _Pages()

    def stage(self, name: str, text: str) -> None:
        if text != "running":
            self._finish()
        self._stage = name
        self._mark = _Mark()

    def begin(self, label: str, total: int, done: int) -> None:
        self._step = label

    def note(self, text: str) -> None:
        self.notes.append(text)

    def run(
        self, function: Function, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        self._run(function, items, on_done, order, pinned=False)

    def pinned(self) -> "_Pinned":
        """Return the executor of steps that run on one machine."""
        return _Pinned(self)

    def _run(
        self, function: Function, items: Sequence[Any], on_done: OnDone, order: Order | None,
        *, pinned: bool,
    ) -> None:  # fmt: skip
        batch = self._begin(self._step, _name(function))
        batch.pinned = pinned
        if order is not None:
            batch.items = [list(item) for item in items]
            batch.after = [list(each) for each in order.after]
            batch.places = list(order.places)
        with one_blas_thread(), self._pages.sampled():
            for number, item in enumerate(items):
                self._pages.reset()
                mark = _Mark()
                result, peak = measured(function, item)
                seconds, wall, read, written = mark.lap()
                mapped = self._pages.most()
                mark = _Mark()
                on_done(number, result, peak)
                driver = mark.lap()[0]
                sent = len(pickle.dumps(item)) + len(pickle.dumps(result))
                batch.tasks.append(Task(seconds, wall, read, written, mapped, driver, sent))
        self._settle(batch)

    def _begin(self, step: str, function: str) -> Batch:
        seconds, wall, read, written = self._mark.lap()
        batch = Batch(self._stage, step, function, seconds, wall, read, written)
        self.batches.append(batch)
        return batch

    def _finish(self) -> None:
        self._settle(self._begin("end", ""))

    def _settle(self, batch: Batch) -> None:
        for folder, _, names in os.walk(self._directory):
            batch.files += len(names)
            batch.journal += sum(
                os.path.getsize(os.path.join(folder, name))
                for name in names
                if name == "journal.jsonl"
            )
        self._mark = _Mark()


class _Pinned:
    """What `on_one_machine` returns while a run is recorded."""

    tasks_per_process = 1

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self.width = recorder, recorder.width

    def run(
        self, function: Function, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        self._recorder._run(function, items, on_done, order, pinned=True)


class _Mark:
    """Clocks and counters of this process at one moment."""

    def __init__(self) -> None:
        self._at = self._now()

    def lap(self) -> tuple[float, float, int, int]:
        """Return seconds of the processor and of the clock, and bytes read and written since."""
        return tuple(now - before for now, before in zip(self._now(), self._at, strict=True))

    @staticmethod
    def _now() -> tuple[float, float, int, int]:
        lines = Path("/proc/self/io").read_text().split()
        return time.process_time(), time.perf_counter(), int(lines[1]), int(lines[3])


class _Pages:
    """The file pages of this process, sampled by a thread."""

    def __init__(self) -> None:
        self._first = self._most = 0

    def reset(self) -> None:
        self._first = self._most = self._now()

    def most(self) -> int:
        """Return the bytes of file pages that came since `reset`."""
        return max(self._most, self._now()) - self._first

    @contextmanager
    def sampled(self) -> Iterator[None]:
        ended = threading.Event()

        def sample() -> None:
            while not ended.wait(_SAMPLE_S):
                self._most = max(self._most, self._now())

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @staticmethod
    def _now() -> int:
        return int(Path("/proc/self/statm").read_text().split()[2]) * _PAGE


def record(job: Any, directory: Path, width: int) -> Recording:
    """Run a job in a new directory, on one core, and return its recording."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    recorder = Recorder(width, directory)
    try:
        with patch.object(context, "on_one_machine", _pinned):
            eigenscape.run(
                job, on=ClusterOptions(), run_dir=directory, reporter=recorder, executor=recorder,
                siblings=Siblings(list),
            )  # fmt: skip
    finally:
        os.sched_setaffinity(0, cores)
    ingested = Run(directory).record("ingest")
    assert ingested is not None, "the run is finished"
    return Recording(ingested.summary["samples"], width, recorder.batches, recorder.notes)


def _pinned(executor: Any) -> Any:
    return executor.pinned()


def _name(function: Any) -> str:
    while hasattr(function, "func"):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)
