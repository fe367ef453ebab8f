"""From a cluster file to what runs the tasks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eigenscape.base.process.addresses import check_address_space
from eigenscape.base.process.cores import usable_cores
from eigenscape.clusters.options import ClusterOptions, DashboardKey, Say
from eigenscape.clusters.workers.dask import Workers, print_nothing
from eigenscape.clusters.workers.executors import Executor, Threads

_ANSWER_S = 2.0


@contextmanager
def connect(
    options: ClusterOptions,
    threads: int | None,
    memory_limit: int,
    say: Say = print_nothing,
) -> Iterator[Executor]:
    """Bring up what a cluster file describes, and take it down again.

    Parameters
    ----------
    options
        The cluster file.
    threads
        ``[limits] threads``, for the threads of this process.
    memory_limit
        ``[limits] memory`` in bytes, the promise of each worker process.
    say
        Called with what is waited for, and with workers that are lost.

    Raises
    ------
    ClusterError
        It cannot be brought up: no scheduler answers, no job is taken, no worker comes.
    MemoryLimitError
        The address space of this process or of a worker is limited to less than any run takes.
    MissingExtraError
        A package that its kind needs is not installed.
    """
    if options.in_process:
        if note := check_address_space(memory_limit, threads or usable_cores()):
            say(note)
        yield Threads(threads)
        return
    check_address_space()
    with options.open_client(threads, memory_limit, say) as (client, supply):
        dashboard = dashboard_of(options, client)
        if dashboard:
            say(f"Dask's dashboard: {dashboard}")
        workers = Workers(client, supply, wait_of(options), say, dashboard)
        try:
            workers.check_address_spaces(
                min(memory_limit, options.process_memory() or memory_limit)
            )
            yield workers
        finally:
            workers.close()


def dashboard_of(options: ClusterOptions, client: Any) -> str:
    """Return the address of the scheduler's dashboard; empty where it was not asked for, or there is none.

    Parameters
    ----------
    options
        The cluster file. Kinds without a key for it have the one of the scheduler that runs already.
    client
        Connected to the scheduler.
    """
    if isinstance(options, DashboardKey) and options.dashboard_port is None:
        return ""
    if "dashboard" not in client.scheduler_info()["services"]:
        return ""
    address = str(client.dashboard_link)
    return address if _has_page(address) else ""


def _has_page(address: str) -> bool:
    """Return False where a server says that it has no such page.

    The HTTP server of a scheduler names itself "dashboard" without one (``--no-dashboard``), too. One that
    cannot be reached from here may be reached by the user, through a tunnel for example.
    """
    from http import HTTPStatus
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    without_proxies = build_opener(ProxyHandler({}))
    try:
        # Dashboards refuse HEAD as a method (405): a page would start a session of bokeh.
        with without_proxies.open(Request(address, method="HEAD"), timeout=_ANSWER_S):
            return True
    except HTTPError as error:
        with error:
            return error.code != HTTPStatus.NOT_FOUND
    except (OSError, HTTPException):
        return True


def wait_of(options: ClusterOptions) -> float:
    """Return the longest time without any worker, in seconds."""
    return getattr(options, "wait", None) or options.wait_s
