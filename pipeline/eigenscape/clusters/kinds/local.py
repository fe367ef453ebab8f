"""Worker processes of this machine."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from eigenscape.base.process.cores import usable_cores
from eigenscape.base.process.signals import start_resource_tracker
from eigenscape.clusters.network import http_settings, security_of
from eigenscape.clusters.options import ClusterOptions, DashboardKey, EncryptionKey, Say
from eigenscape.clusters.workers.supply import ExternalSupply, Supply

# Ctrl-C reaches every process of the terminal; the driver decides. What a worker logs in its last moments,
# when `silence_logs` has ended, would stand between the lines of the driver.
_IN_WORKERS = """
import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed").setLevel(logging.CRITICAL)
"""


class LocalOptions(DashboardKey, EncryptionKey, ClusterOptions):
    """Scheduler in this process, workers beside it, all ports on the loopback."""

    kind: Literal["local"] = "local"
    workers: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Worker processes: one per core by default."""
    threads_per_worker: Annotated[int, Field(ge=1, le=1024)] = 1
    """Threads of each worker process."""

    def process_count(self, threads: int | None) -> int:
        """Return how many processes run tasks."""
        return self.workers or threads or usable_cores()

    def process_threads(self) -> int:
        """Return the tasks that share the memory of one worker process."""
        return self.threads_per_worker

    @contextmanager
    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Start them."""
        import dask
        from distributed import LocalCluster

        from eigenscape.clusters.workers.process import SETTINGS

        workers = self.process_count(threads)
        start_resource_tracker()

        async def start() -> None:
            cluster.scale(workers)
            await cluster

        # Other users of this machine reach its loopback, too.
        security = security_of(None, self.tls)
        # The workers take over the configuration that holds here.
        routes = {key: value for key, value in SETTINGS.items() if key.endswith("http.routes")}
        with (
            dask.config.set(routes | http_settings(self)),
            LocalCluster(
                n_workers=0,
                threads_per_worker=self.threads_per_worker,
                processes=True,
                host="127.0.0.1",
                security=security,
                protocol="tcp://" if security is None else "tls://",
                dashboard_address=f"127.0.0.1:{self.dashboard_port or 0}",
                scheduler_kwargs={"dashboard": self.dashboard_port is not None},
                # Twice the promise: file-backed pages count for the nanny but not for the promise.
                memory_limit=2 * memory_limit,
                silence_logs=50,
                preload=[_IN_WORKERS],
            ) as cluster,
        ):
            started = asyncio.run_coroutine_threadsafe(start(), cluster.loop.asyncio_loop)
            try:
                started.result()
            finally:
                wait([started])  # a worker that is just being started cannot be ended
            yield cluster, ExternalSupply("Its processes ended: is memory short?")
