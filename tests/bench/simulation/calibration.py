"""What a task costs beside its work, measured on worker processes of this machine."""

import time
from dataclasses import dataclass

import psutil

from eigenscape.clusters import Executor, Order, connect
from eigenscape.clusters.kinds.local import LocalOptions

_TASKS = 400
_CHAIN = 40
_ROUNDS = 5
_IDLE_S = 20.0


@dataclass(frozen=True)
class Costs:
    """Costs of a task that does nothing.

    Attributes
    ----------
    driver_s, worker_s
        Seconds of the processor: driver and scheduler, which are one process here, and its worker.
    delay
        Seconds to a worker, and back, beside these.
    idle
        Cores that driver, scheduler and workers keep busy while they wait for a task.
    """

    driver_s: float
    worker_s: float
    delay: float
    idle: float


def measure_costs(workers: int = 2) -> Costs:
    """Run tasks that do nothing on worker processes: many at once, and one after the other."""
    with connect(LocalOptions(workers=workers), None, 2**30, print) as executor:
        _run(executor, 10 * workers)
        # Nannies and workers; what keeps the processes together takes little beside the tasks.
        others = psutil.Process().children(recursive=True)
        before = time.process_time(), _seconds(others)
        _run(executor, _TASKS)
        driver, worker = time.process_time() - before[0], _seconds(others) - before[1]
        chain = Order([[], *([number] for number in range(_CHAIN - 1))], [0] * _CHAIN)
        walls = []
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            _run(executor, _CHAIN, chain)
            walls.append(time.perf_counter() - start)
        own = psutil.Process()
        before = time.perf_counter(), _seconds([own, *others])
        executor.run(time.sleep, [_IDLE_S], lambda *_: None)
        idle = (_seconds([own, *others]) - before[1]) / (time.perf_counter() - before[0])
    each = (driver + worker) / _TASKS
    # The quickest: other programs may have run beside the others.
    delay = max(0.0, min(walls) / _CHAIN - each) / 2
    return Costs(driver / _TASKS, worker / _TASKS, delay, idle)


def _run(executor: Executor, tasks: int, order: Order | None = None) -> None:
    executor.run(_nothing, range(tasks), lambda *_: None, order)


def _nothing(_: int) -> None:
    return None


def _seconds(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)
