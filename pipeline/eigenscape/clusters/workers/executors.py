"""Executors that run a function over many items: in the calling thread, or on threads of this process."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol

from threadpoolctl import ThreadpoolController

from eigenscape.base import memory
from eigenscape.base.process.cores import usable_cores

Task = Callable[[Any], Any]
OnDone = Callable[[int, Any, int], None]
"""Called with the index of a finished item, its result, and the peak bytes of its process."""


_limiting = threading.Lock()
_limits: list[tuple[ThreadpoolController, Any]] = []
_blocks = 0


@dataclass(frozen=True)
class Order:
    """Dependencies of the items of one call, and the items that run on the same worker.

    Attributes
    ----------
    after
        For each item, the positions of earlier items that must be finished first.
    places
        For each item, a number; items with the same number run on the same worker, as long as it is
        connected.
    """

    after: Sequence[Sequence[int]]
    places: Sequence[int]


class Executor(Protocol):
    """Runs one function over many items."""

    @property
    def width(self) -> int:
        """Tasks that run at a time."""
        ...

    @property
    def tasks_per_process(self) -> int:
        """Tasks that share the memory of one process."""
        ...

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        """Run ``function(item)`` for every item, in the given order if any; stop at the first error."""
        ...


class Serial:
    """Runs tasks one by one in the calling thread: for few samples, where all threads but one idle."""

    width = 1
    tasks_per_process = 1

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        """Run the tasks one after the other, which keeps to any order; their memory is not measured."""
        # As `Threads` does: other numbers of BLAS threads round differently.
        with one_blas_thread():
            for number, item in enumerate(items):
                on_done(number, function(item), 0)


class Threads:
    """Threads of this process: BLAS, numba and scipy.sparse release the GIL. Opens no port."""

    def __init__(self, threads: int | None = None) -> None:
        self.width = threads or usable_cores()
        self.tasks_per_process = self.width

    def at_most(self, threads: int) -> "Threads":
        """Return an executor with at most `threads` threads, for a scene whose tasks need more memory."""
        return self if self.tasks_per_process <= threads else Threads(threads)

    def run(
        self, function: Task, items: Sequence[Any], on_done: OnDone, order: Order | None = None
    ) -> None:
        """Run the tasks on dask's threaded scheduler."""
        import dask.threaded

        def finished(key: str, result: Any, *_: Any) -> None:
            on_done(index[key], *result)

        after = order.after if order is not None else [()] * len(items)
        graph = {
            f"block-{number}": (
                partial(_measured_after, function, item),
                *(f"block-{other}" for other in after[number]),
            )
            for number, item in enumerate(items)
        }
        index = {key: number for number, key in enumerate(graph)}
        # One BLAS thread per task: the tasks themselves fill the cores. The callback (start, start
        # state, before, after a task, finish) is this call's alone: other threads may be in here too.
        # The pool waits for the tasks that are under way when one fails or Ctrl-C comes: they would
        # still write when the same stage begins again, or another process does.
        with one_blas_thread(), ThreadPoolExecutor(self.width) as pool:
            # The tasks are independent: nothing for `dask.compute` to optimise, which takes longer
            # than they do in a small scene.
            dask.threaded.get(
                graph, [*graph], pool=pool, callbacks=[(None, None, None, finished, None)]
            )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS work on one thread until the last of the blocks ends that run at the same time.

    The limit is one of the process. If each block restored what it found, the first to end would lift the
    limit of the others, and the last would leave it in place.
    """
    global _blocks
    with _limiting:
        # The libraries that are loaded change with imports alone, and a look takes milliseconds.
        controller = _controller(len(sys.modules))
        if not _limits or _limits[-1][0] is not controller:
            _limits.append((controller, controller.limit(limits=1, user_api="blas")))
        _blocks += 1
    try:
        yield
    finally:
        with _limiting:
            _blocks -= 1
            while not _blocks and _limits:
                _limits.pop()[1].restore_original_limits()


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    return ThreadpoolController()


def _measured_after(function: Task, item: Any, *_: Any) -> tuple[Any, int]:
    return measured(function, item)


def measured(function: Task, item: Any) -> tuple[Any, int]:
    """Run a task and return its result with the peak of its process's anonymous memory."""
    with memory.watch() as peak:
        result = _repeated(function, item)
    return result, peak.bytes


def _repeated(function: Task, item: Any) -> Any:
    """Run a task, once more if Python lost count of a depth that all threads share.

    Files of arrays have headers that NumPy parses as Python. Where several threads do so at once, CPython
    3.11 now and then raises a SystemError (https://github.com/python/cpython/issues/106905).
    """
    try:
        return function(item)
    except SystemError as error:
        if "recursion depth mismatch" not in str(error):
            raise
        return function(item)
