"""One task on a worker: the right versions, files that another machine has just written."""

import errno
import os
import pickle
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from eigenscape.clusters.versions import differences, versions
from eigenscape.clusters.workers.executors import Task, measured
from eigenscape.clusters.workers.fence import fenced
from eigenscape.errors import ClusterError

LAG_S = 8.0
"""Seconds for which a task that misses a file is retried: network file systems cache for some seconds that
a file is absent, and its size."""

_LOADED = secrets.token_hex(8)


@dataclass(frozen=True)
class Surroundings:
    """What a task needs to know of the driver.

    Attributes
    ----------
    versions
        Of the driver.
    shared
        Run directory, which the worker must see under the same path; None before there is one.
    call
        Tells the tasks of one call of `eigenscape.clusters.workers.dask.Workers.run` from others.
    driver
        Its process, as `this_process` names it: it may be a worker as well.
    """

    versions: Mapping[str, str]
    shared: str | None = None
    call: str = ""
    driver: str = ""


def run_task(surroundings: Surroundings, function: Task, item: Any) -> tuple[Any, int]:
    """Run one task on a worker; return its result and the peak of its process's anonymous memory.

    Raises
    ------
    ClusterError
        The worker has other versions than the driver, or does not see the run directory.
    """
    try:
        return _run(surroundings, function, item)
    except Exception as error:
        _drop_causes_that_cannot_be_sent(error)
        raise


def this_process() -> str:
    """Return a name of this process that no other has, nor a fork of it."""
    return f"{_LOADED}-{os.getpid()}"


def describe_differences(host: str, wrong: list[str]) -> str:
    """Return what to say about a worker of other versions."""
    return (
        f"the worker on {host} has other versions: {'; '.join(wrong)}. Give both the same environment: "
        "python = PATH and environment = [set-up lines] in the cluster file choose that of the workers."
    )


def describe_unseen(path: str, host: str) -> str:
    """Return what to say about a worker that does not see the run directory."""
    return (
        f"{path}: the worker on {host} does not see this directory. Workers read and write the run "
        "directory under the same path: set output.directory or --run-dir to a file system that all "
        "machines share."
    )


def _run(surroundings: Surroundings, function: Task, item: Any) -> tuple[Any, int]:
    if wrong := differences(surroundings.versions, versions()):
        raise ClusterError(describe_differences(socket.gethostname(), wrong))
    apart = surroundings.driver != this_process()
    if apart:
        _use_one_blas_thread()
    shared = surroundings.shared
    try:
        with fenced(shared, surroundings.call, alarm=apart):
            return _patiently(function, item)
    except OSError:
        if shared is not None and not os.path.isdir(shared):
            raise ClusterError(describe_unseen(shared, socket.gethostname())) from None
        raise


def _drop_causes_that_cannot_be_sent(error: Exception) -> None:
    """Take the causes from an error if Dask would, because of them, send an `Exception` of its text instead.

    Dask pickles an error with its causes, and errors of GDAL cannot be unpickled.
    """
    if (error.__cause__ or error.__context__) and not _can_be_sent(error):
        error.__cause__ = error.__context__ = None


def _can_be_sent(error: Exception) -> bool:
    from distributed.core import error_message

    return type(pickle.loads(error_message(error)["exception"].data)) is type(error)


def _patiently(function: Task, item: Any) -> tuple[Any, int]:
    """Run a task, again and again for some seconds while it misses what others have written."""
    wait, end = 0.1, time.monotonic() + LAG_S
    while True:
        try:
            return measured(function, item)
        except (OSError, ValueError) as error:
            if not _may_be_lag(error) or time.monotonic() + wait > end:
                raise
            _look_again(getattr(error, "filename", None))
        time.sleep(wait)
        wait = min(2 * wait, 2.0)


def _may_be_lag(error: OSError | ValueError) -> bool:
    if isinstance(error, OSError):
        return isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE
    return "mmap length is greater than file size" in str(error)


def _look_again(path: Any) -> None:
    """Open the directories above a path, which makes the system ask the file server about them."""
    if isinstance(path, str | os.PathLike):
        for directory in list(Path(path).parents)[:3]:
            with suppress(OSError):
                os.listdir(directory)


@cache
def _use_one_blas_thread() -> None:
    # Once per worker process: the tasks themselves fill the cores.
    threadpool_limits(1, user_api="blas")
