"""Each kind of cluster, from its file to its workers and down again."""

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask

from eigenscape.clusters.kinds.arguments import interface_of, job_arguments
from eigenscape.clusters.kinds.jobqueue import cluster_class, job_class, refusal
from eigenscape.clusters.kinds.network import (
    http_settings,
    scheduler_options,
    security_of,
    worker_security,
)
from eigenscape.clusters.options import QUEUES, ClusterOptions
from eigenscape.clusters.owners import check_own
from eigenscape.clusters.workers.dask import Say, Workers, print_nothing
from eigenscape.clusters.workers.executors import Executor, Threads
from eigenscape.clusters.workers.process import SETTINGS
from eigenscape.clusters.workers.reports import QueueReports
from eigenscape.clusters.workers.supply import Jobs, Supply, Unmended
from eigenscape.errors import ClusterError

_QUEUE_WAIT_S = 3600.0
_WAIT_S = 60.0
# `Watch` and `Jobs` see to lost and silent workers. Distributed's own time limits notice a silent worker
# after 5 to 10 minutes, know only jobs of one process, and end the job that took the name of a lost one.
_WORKERS_ARE_OURS = {
    "distributed.deploy.lost-worker-timeout": "1000 days",
    "distributed.scheduler.worker-ttl": None,
}
# Ctrl-C reaches every process of the terminal; the driver decides.
_LEAVES_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


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
        Hears what is waited for, and of workers that are lost.

    Raises
    ------
    ClusterError
        It cannot be brought up: no scheduler answers, no job is taken, no worker comes.
    MissingExtraError
        A package that its kind needs is not installed.
    """
    if options.kind == "threads":
        yield Threads(threads)
        return
    with open_client(options, threads, memory_limit, say) as (client, supply):
        workers = Workers(client, supply, wait_of(options), say)
        try:
            yield workers
        finally:
            workers.close()


def wait_of(options: ClusterOptions) -> float:
    """Return the longest time without any worker, in seconds."""
    return options.wait or (_QUEUE_WAIT_S if options.kind in QUEUES else _WAIT_S)


@contextmanager
def open_client(
    options: ClusterOptions, threads: int | None, memory_limit: int, say: Say
) -> Iterator[tuple[Any, Supply]]:
    """Bring up scheduler and workers, without waiting for these; yield client and supply."""
    if options.kind == "existing":
        with _existing(options) as client:
            yield client, Unmended("Start some with `dask worker`.")
        return
    from distributed import Client

    with (
        dask.config.set(_WORKERS_ARE_OURS),
        _cluster(options, threads, memory_limit, say) as (cluster, supply),
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, supply


@contextmanager
def _cluster(
    options: ClusterOptions, threads: int | None, memory_limit: int, say: Say
) -> Iterator[tuple[Any, Supply]]:
    if options.kind == "local":
        with _local(options, threads, memory_limit) as local:
            yield local, Unmended("Its processes ended: is memory short?")
    elif options.kind == "ssh":
        from eigenscape.clusters.kinds.ssh import ssh_cluster

        with ssh_cluster(options, memory_limit) as machines:
            yield machines, Unmended("Can the machines reach this one on its interface?")
    elif options.kind == "allocation":
        from eigenscape.clusters.kinds.allocation import allocation_cluster

        with allocation_cluster(options, memory_limit, say) as both:
            yield both
    else:
        with _jobs(options, memory_limit, say) as both:
            yield both


@contextmanager
def _local(options: ClusterOptions, threads: int | None, memory_limit: int) -> Iterator[Any]:
    from distributed import LocalCluster

    workers = options.workers or threads or os.cpu_count() or 1

    async def start() -> None:
        cluster.scale(workers)
        await cluster

    security = security_of(options)
    # The workers take over the configuration that holds here.
    routes = {key: value for key, value in SETTINGS.items() if key.endswith("http.routes")}
    with (
        dask.config.set(routes | http_settings(options)),
        LocalCluster(
            n_workers=0,
            threads_per_worker=options.threads_per_worker,
            processes=True,
            host="127.0.0.1",
            # Other users of this machine reach its loopback, too.
            security=security,
            protocol="tcp://" if security is None else "tls://",
            dashboard_address=f"127.0.0.1:{options.dashboard_port or 0}",
            scheduler_kwargs={"dashboard": options.dashboard_port is not None},
            # Twice the promise: file-backed pages count for the nanny but not for the promise.
            memory_limit=2 * memory_limit,
            silence_logs=50,
            preload=[_LEAVES_CTRL_C],
        ) as cluster,
    ):
        started = asyncio.run_coroutine_threadsafe(start(), cluster.loop.asyncio_loop)
        try:
            started.result()
        finally:
            wait([started])  # a worker that is just being started cannot be ended
        yield cluster


@contextmanager
def _jobs(options: ClusterOptions, memory_limit: int, say: Say) -> Iterator[tuple[Any, Supply]]:
    """Scheduler in this process, workers in jobs of a queue."""
    arguments = job_arguments(options, memory_limit)
    make = cluster_class(options.kind)
    from eigenscape.clusters.workers.refusals import noting_refusals

    job = noting_refusals(job_class(options.kind), partial(refusal, options.kind))
    jobs = None if options.maximum_jobs else options.jobs or 1
    with (
        worker_security(security_of(options), options) as security,
        dask.config.set(http_settings(options)),
        make(
            job_cls=job,
            security=security,
            scheduler_options=scheduler_options(options, interface_of(options)),
            silence_logs=50,
            **arguments,
        ) as cluster,
    ):
        reports = QueueReports(options.kind, Path(arguments["log_directory"]))
        supply = Jobs(cluster, reports, jobs, _advice(arguments), say)
        if jobs is None:
            cluster.adapt(minimum_jobs=options.minimum_jobs or 1, maximum_jobs=options.maximum_jobs)
        yield cluster, supply


def _advice(arguments: dict[str, Any]) -> str:
    advice = (
        f"What the jobs print is in {arguments['log_directory']}; `eigenscape cluster check FILE` tries "
        "one job, `eigenscape cluster script FILE` shows its script."
    )
    if arguments["interface"] == "lo":
        advice += ' interface = "lo" is reached from this machine alone.'
    return advice


@contextmanager
def _existing(options: ClusterOptions) -> Iterator[Any]:
    from distributed import Client

    if options.scheduler_file and not Path(options.scheduler_file).exists():
        # distributed would wait for it for ever.
        raise ClusterError(
            f"{options.scheduler_file}: no such scheduler file. Start a scheduler that writes it "
            "with `dask scheduler --scheduler-file FILE`, or give its address."
        )
    security = security_of(options)
    if options.scheduler_file and security is None:
        check_own(
            Path(options.scheduler_file),
            "a scheduler of somebody else can run code as you",
            "Start your own, or give the address of one that you trust; with certificates "
            "(tls_ca_file, tls_cert, tls_key) the file is not asked.",
        )
    try:
        # Not the default client: that is the caller's, and would outlive an error of ours.
        client = Client(
            address=options.address,
            scheduler_file=options.scheduler_file,
            security=security,
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
        yield client
