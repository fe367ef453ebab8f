"""A client of distributed that the caller has: its workers run the tasks, and stay when they are done."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import PrivateAttr

from eigenscape.clusters.loading import load_cluster
from eigenscape.clusters.options import ClusterOptions, Say
from eigenscape.clusters.workers.supply import ExternalSupply, Supply
from eigenscape.errors import ClusterError

CURRENT = "current"
"""Stands for the client that this process or this task of a worker has."""

Place: TypeAlias = "ClusterOptions | str | Path | None"
"""Where a run works: a cluster file, as such or as its path; None for threads of this process."""


class ClientOptions(ClusterOptions):
    """The workers of a client: no kind of a cluster file, for a file cannot hold a connection."""

    kind: Literal["client"] = "client"

    _client: Any = PrivateAttr()

    @classmethod
    def of(cls, client: Any) -> "ClientOptions":
        """Return the options of a client, which is connected."""
        options = cls()
        options._client = client
        return options

    @contextmanager
    def open_client(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Yield the client, which stays open."""
        say(f"on the client of {self._client.scheduler.address}")
        # A cluster that adapts starts workers once there is a task.
        prompt = None if self._workers() else self._client.submit(os.getpid, pure=False)
        with _thread_given_back():
            yield self._client, ExternalSupply("Start some, or scale the cluster of this client.")
        del prompt

    def process_threads(self) -> int:
        """Return the tasks that share the memory of one worker process: of the one with most threads."""
        return max((int(worker["nthreads"]) for worker in self._workers()), default=1)

    def process_memory(self) -> int | None:
        """Return the memory of the smallest worker process in bytes, None where none is limited."""
        limits = (int(worker["memory_limit"] or 0) for worker in self._workers())
        return min(filter(None, limits), default=None)

    def _workers(self) -> list[dict[str, Any]]:
        # Not `scheduler_info`, which lists at most five workers.
        identity = self._client.sync(self._client.scheduler.identity, n_workers=-1)
        return list(identity["workers"].values())


def place_of(on: Place, client: Any = None) -> ClusterOptions:
    """Return where a run works from what its caller gave: a cluster file, a client, or nothing.

    Parameters
    ----------
    on
        A cluster file as `eigenscape.clusters.load_cluster` returns it, or its path; None for threads.
    client
        A `distributed.Client`, or "current" for the one that this process has, which in a task of a Dask
        worker is that of the worker.

    Raises
    ------
    ClusterError
        Both are given, there is no current client, or it is closed or asynchronous.
    """
    if client is not None:
        if on is not None:
            raise ClusterError(
                "on and client are both given: the tasks run in one place. Give one."
            )
        return ClientOptions.of(_checked(_current() if client == CURRENT else client))
    if on is None or isinstance(on, str | Path):
        return load_cluster(on)
    if isinstance(on, ClusterOptions):
        return on
    hint = " Give a client as client=." if _is_client(on) else ""
    raise ClusterError(
        f"on of type {type(on).__name__}: give a cluster file as eigenscape.clusters.load_cluster reads "
        f"it, its path, or the address of a scheduler.{hint}"
    )


def _current() -> Any:
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        raise ClusterError(
            f'client = "{CURRENT}": this process has no client of distributed. Make one, '
            "`distributed.Client()`, or leave client out to work on threads."
        ) from None


def _checked(client: Any) -> Any:
    if not _is_client(client):
        raise ClusterError(
            f'client of type {type(client).__name__}: give a distributed.Client, or "{CURRENT}" for the '
            "one that this process has."
        )
    if client.asynchronous:
        raise ClusterError(
            "client: it is asynchronous, and a run waits for its tasks. Give another one: "
            "distributed.Client(client.scheduler.address)."
        )
    if client.status not in ("running", "connecting"):
        raise ClusterError(
            f"client: its status is {client.status!r}, so it reaches no scheduler. Give one that is "
            "connected."
        )
    return client


def _is_client(value: Any) -> bool:
    return any(
        kind.__name__ == "Client" and kind.__module__.partition(".")[0] == "distributed"
        for kind in type(value).__mro__
    )


@contextmanager
def _thread_given_back() -> Iterator[None]:
    """In a task of a worker, leave its thread to the tasks that are waited for."""
    from distributed import rejoin, secede

    try:
        secede()
    except (ValueError, KeyError, AttributeError):
        yield  # no task of a worker, or one that has left its thread already
        return
    try:
        yield
    finally:
        rejoin()
