"""Where tasks run: threads of this process, or the workers of a Dask cluster named by a file."""

import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import dask
from dask.callbacks import Callback
from pydantic import Field, ValidationError
from threadpoolctl import threadpool_limits

from eigenscape import memory
from eigenscape.errors import ClusterError
from eigenscape.options import Options

Task = Callable[[Any], Any]
OnDone = Callable[[int, Any, int], None]
"""Called with the index of a finished item, its result, and the peak bytes of its process."""


class ClusterOptions(Options):
    """A cluster file (TOML)."""

    kind: Literal["threads", "local", "existing"] = "threads"
    """This process's threads, worker processes on this machine, or a scheduler that is running."""
    workers: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Worker processes of a local cluster; one per core by default."""
    threads_per_worker: Annotated[int, Field(ge=1, le=1024)] = 1
    """Threads of each worker of a local cluster."""
    address: str | None = None
    """Address of an existing scheduler, such as "tcp://127.0.0.1:8786"."""
    scheduler_file: str | None = None
    """Scheduler file of an existing scheduler, instead of its address."""


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

    def run(self, function: Task, items: Sequence[Any], on_done: OnDone) -> None:
        """Run ``function(item)`` for every item; the first error ends it."""
        ...


class Threads:
    """Threads of this process: BLAS, numba and scipy.sparse release the GIL. Opens no port."""

    def __init__(self, threads: int | None = None) -> None:
        self.width = threads or os.cpu_count() or 1
        self.tasks_per_process = self.width

    def run(self, function: Task, items: Sequence[Any], on_done: OnDone) -> None:
        """Run the tasks on dask's threaded scheduler."""

        def finished(key: str, result: Any, *_: Any) -> None:
            if key in index:
                on_done(index[key], *result)

        measured = dask.delayed(_measured, pure=False, traverse=False)
        tasks = [
            measured(function, item, dask_key_name=f"block-{number}")
            for number, item in enumerate(items)
        ]
        index = {f"block-{number}": number for number in range(len(items))}
        # One BLAS thread per task: the tasks themselves fill the cores.
        with threadpool_limits(1, user_api="blas"), Callback(posttask=finished):
            dask.compute(*tasks, scheduler="threads", num_workers=self.width, optimize_graph=False)


class Workers:
    """Workers of a distributed cluster that share the run directory."""

    def __init__(self, client: Any) -> None:
        self._client = client
        client.wait_for_workers(1, timeout=60)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        self.width = sum(worker["nthreads"] for worker in workers.values())
        self.tasks_per_process = max(worker["nthreads"] for worker in workers.values())

    def run(self, function: Task, items: Sequence[Any], on_done: OnDone) -> None:
        """Submit the tasks and take their results as they come."""
        from distributed import as_completed

        # Tasks are idempotent, so a lost worker's tasks may run again.
        futures = self._client.map(
            _measured, [function] * len(items), items, pure=False, retries=2, key="block"
        )
        index = {future.key: number for number, future in enumerate(futures)}
        try:
            for future, result in as_completed(futures, loop=self._client.loop, with_results=True):
                on_done(index[future.key], *result)
        finally:
            self._client.cancel(futures)


def load_cluster(path: str | Path | None) -> ClusterOptions:
    """Read a cluster file; a text with ``://`` is the address of a running scheduler.

    Raises
    ------
    ClusterError
        The file cannot be read or has a wrong key.
    """
    if path is None:
        return ClusterOptions()
    if "://" in str(path):
        return ClusterOptions(kind="existing", address=str(path))
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        options = ClusterOptions.model_validate(table)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ClusterError(
            f"{path}: cannot be read as a cluster file ({error}). "
            "Give a TOML file such as cluster/local.toml, or a scheduler's address tcp://HOST:PORT."
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        given = "" if first["type"] == "extra_forbidden" else f" = {first['input']!r}"
        raise ClusterError(
            f"{path}: {key}{given}: {first['msg']}. Keys: {', '.join(ClusterOptions.model_fields)}."
        ) from None
    if options.kind == "existing" and not (options.address or options.scheduler_file):
        raise ClusterError(f"{path}: kind = 'existing' needs address or scheduler_file.")
    return options


@contextmanager
def connect(options: ClusterOptions, threads: int | None, memory_limit: int) -> Iterator[Executor]:
    """Bring up what a cluster file describes, and take it down again.

    Parameters
    ----------
    options
        The cluster file.
    threads
        ``[limits] threads``, for the threads of this process.
    memory_limit
        ``[limits] memory`` in bytes, the ceiling of each worker of a local cluster.

    Raises
    ------
    ClusterError
        The scheduler does not answer.
    """
    if options.kind == "threads":
        yield Threads(threads)
        return
    from distributed import Client, LocalCluster

    if options.kind == "local":
        with (
            LocalCluster(
                n_workers=options.workers or threads or os.cpu_count() or 1,
                threads_per_worker=options.threads_per_worker,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                # Twice the promise: file-backed pages count for the nanny but not for the promise.
                memory_limit=2 * memory_limit,
                silence_logs=50,
            ) as local,
            Client(local, set_as_default=False) as client,
        ):
            yield Workers(client)
        return
    if options.scheduler_file and not Path(options.scheduler_file).exists():
        # distributed would wait for it for ever.
        raise ClusterError(
            f"{options.scheduler_file}: no such scheduler file. Start a scheduler that writes it "
            "with `dask scheduler --scheduler-file FILE`, or give its address."
        )
    try:
        # Not the default client: that is the caller's, and would outlive an error of ours.
        client = Client(
            address=options.address,
            scheduler_file=options.scheduler_file,
            timeout="10s",
            set_as_default=False,
        )
    except (OSError, TimeoutError, ValueError) as error:
        target = options.address or options.scheduler_file
        raise ClusterError(
            f"{target}: no scheduler answers there within 10 s ({error}). "
            "Start one with `dask scheduler`, or leave out --on to work in this process."
        ) from None
    with client:
        yield Workers(client)


@cache
def _use_one_blas_thread() -> None:
    # Once per worker process; the limit of the process that runs `Threads` is set there.
    threadpool_limits(1, user_api="blas")


def _measured(function: Task, item: Any) -> tuple[Any, int]:
    """Run a task and return its result with the peak of its process's anonymous memory."""
    if _on_worker():
        _use_one_blas_thread()
    with memory.watch() as peak:
        result = function(item)
    return result, peak.bytes


def _on_worker() -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True
