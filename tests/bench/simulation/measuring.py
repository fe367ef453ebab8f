"""A run on worker processes of this machine, stage by stage: what a prediction is held against.

Other programs on the machine stretch the run. The system counts for how long each thread was ready and had to
wait for a core; by as much as the busiest thread has waited, everything took longer.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import eigenscape
from eigenscape.base.process.progress import Silent
from eigenscape.clusters.kinds.local import LocalOptions
from eigenscape.store.siblings import Siblings

Threads = dict[tuple[int, str], tuple[float, float]]
"""Seconds that each thread has run, and has waited for a core, by its process and number."""


@dataclass(frozen=True)
class Measured:
    """One stage of a run.

    Attributes
    ----------
    stage, seconds
        Name, and seconds of the clock.
    processor
        Seconds of the processor, of all threads of the driver and its workers.
    run, waited
        Seconds that the busiest thread has run, and has waited for a core.
    """

    stage: str
    seconds: float
    processor: float
    run: float
    waited: float

    @property
    def undisturbed(self) -> float:
        """Return the seconds of the clock without the waiting."""
        return self.seconds * self.run / (self.run + self.waited)


class _Watch(Silent):
    def __init__(self) -> None:
        self.stages: list[Measured] = []
        self._began, self._threads = 0.0, Threads()

    def stage(self, name: str, text: str) -> None:
        now, threads = time.perf_counter(), _threads()
        if text != "running":
            taken = {
                key: tuple(
                    b - a for a, b in zip(self._threads.get(key, (0, 0)), times, strict=True)
                )
                for key, times in threads.items()
            }
            run, waited = max(taken.values())
            processor = sum(times[0] for times in taken.values())
            self.stages.append(Measured(name, now - self._began, processor, run, waited))
        self._began, self._threads = now, threads


def measure(job: Any, directory: Path, workers: int) -> list[Measured]:
    """Run a job in a new directory on worker processes of one thread."""
    watch = _Watch()
    eigenscape.run(
        job, on=LocalOptions(workers=workers), run_dir=directory, reporter=watch,
        siblings=Siblings(list),
    )  # fmt: skip
    return watch.stages


def _threads() -> Threads:
    here, found = psutil.Process(), Threads()
    processes: Iterable[psutil.Process] = (here, *here.children(recursive=True))
    for process in processes:
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            # A thread may end while it is looked at.
            with suppress(OSError):
                run, waited, _ = map(int, (thread / "schedstat").read_text().split())
                found[process.pid, thread.name] = run / 1e9, waited / 1e9
    return found
