"""Cluster files: the base class of all kinds, and the keys that several kinds share."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import platformdirs
from pydantic import AfterValidator, Field, model_validator

from eigenscape.base.registry import Registry
from eigenscape.clusters.registry import KINDS
from eigenscape.job.options import Options, Size

if TYPE_CHECKING:
    from eigenscape.clusters.workers.supply import Supply

Say = Callable[[str], None]
"""Function that is called with messages: lost workers, and the reason for waiting."""

EXAMPLE_ADDRESS = "tcp://127.0.0.1:8786"
"""The address of a scheduler on this machine, as `dask scheduler` prints it."""

UNPROFILED = {"distributed.worker.profile.enabled": False}
"""Dask settings of the workers that are started here. Dask's profiler keeps an hour of samples: in 30 runs of
two seconds, workers grew from 151 to 166 MiB with it, and from 140 to 142 MiB without it."""

# `Watch` and `Jobs` see to lost and silent workers. Distributed's own time limits notice a silent worker
# after 5 to 10 minutes, know only jobs of one process, and end the job that took the name of a lost one.
_WORKERS_ARE_OURS = {
    "distributed.deploy.lost-worker-timeout": "1000 days",
    "distributed.scheduler.worker-ttl": None,
}

# What ends up in a command line or in a line of a submit script, and may use $VARIABLES: nothing
# that a shell would run. Only `environment` holds shell code.
_WORD = r"^[\w$./~{}:@%+=,*\[\]][\w$./~{}:@%+=,*\[\]-]*$"
_LINE = r"^[^\x00-\x1f`]+$"
Word = Annotated[str, Field(pattern=_WORD)]
Line = Annotated[str, Field(pattern=_LINE)]

_WALLTIME = re.compile(r"(?:(\d+)-)?(\d+):(\d{2})(?::(\d{2}))?")


def parse_walltime(text: str) -> int:
    """Return the seconds of ``[days-]hours:minutes[:seconds]``.

    Raises
    ------
    ValueError
        It is not of that form.
    """
    found = _WALLTIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            'expected [days-]hours:minutes[:seconds], such as "02:00:00" or "1-12:00:00"'
        )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _check_walltime(value: str) -> str:
    if parse_walltime(value) < 60:
        raise ValueError("a job of less than a minute cannot start its worker and end it")
    return value


Walltime = Annotated[str, AfterValidator(_check_walltime)]


class ClusterOptions(Options):
    """A cluster file (TOML). Each kind is a class, with its keys and a method that starts its workers.

    ``ClusterOptions(kind="local", workers=2)`` returns an object of the class of that kind. The class of a
    kind derives from this class and from those classes below whose keys it has, defines `kind` with a single
    allowed value, defines `start`, and is registered (`eigenscape.register`).
    """

    registry: ClassVar[Registry["ClusterOptions"]] = KINDS

    kind: str = "threads"
    """Kind of the cluster: a built-in kind (see cluster/README.md), or one of another package."""

    in_process: ClassVar[bool] = False
    """Whether the tasks run on threads of this process, without workers."""
    wait_s: ClassVar[float] = 60.0
    """Default of the key ``wait``: longest time without any worker, in seconds."""
    needs: ClassVar[tuple[str, str, str] | None] = None
    """Module, package and extra of an optional package that this kind needs."""

    def __new__(cls, *_: Any, **keys: Any) -> Self:
        """Make an object of the class of a kind."""
        named = KINDS.find(keys.get("kind", "threads")) if cls is ClusterOptions else cls
        return object.__new__(named)  # type: ignore[return-value]

    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> AbstractContextManager[tuple[Any, "Supply"]]:
        """Start the scheduler and the workers, without waiting for the workers, and stop them at the end.

        Parameters
        ----------
        threads
            ``[limits] threads``, None for all cores.
        memory_limit
            ``[limits] memory`` in bytes, the promise of each worker process.
        say
            Called with messages about waiting.

        Returns
        -------
        context manager of (cluster, supply)
            A cluster object of distributed, to which a client connects, and the supply of its workers:
            `eigenscape.clusters.ExternalSupply` if only distributed replaces lost workers.

        Raises
        ------
        ClusterError
            It cannot be brought up.
        """
        raise NotImplementedError(f"{type(self).__name__}.start")

    @contextmanager
    def open_client(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, "Supply"]]:
        """Start the cluster as `start` does; yield a connected client and the supply of workers."""
        import dask
        from distributed import Client
        from distributed.utils import silence_logging_cmgr

        with (
            dask.config.set(_WORKERS_ARE_OURS | UNPROFILED),
            # Until its threads have ended: a cluster takes back its own silence before that, and what is
            # then still on its way to a worker would be told with a traceback.
            silence_logging_cmgr(logging.CRITICAL),
            self.start(threads, memory_limit, say) as (cluster, supply),
            Client(cluster, set_as_default=False) as client,
        ):
            yield client, supply

    def for_check(self) -> Self:
        """Return a copy of the options with a single worker, for ``cluster check``."""
        return (
            self.model_copy(update={"workers": 1}) if "workers" in type(self).model_fields else self
        )

    def process_count(self, threads: int | None) -> int | None:
        """Return the number of processes that run tasks, None if it is unknown; `threads` as in `start`."""
        if self.in_process:
            return 1
        workers: int | None = getattr(self, "workers", None)
        return workers

    def process_threads(self) -> int:
        """Return the number of tasks that share the memory of one worker process."""
        return 1

    def process_memory(self) -> int | None:
        """Return the memory of one worker process in bytes, None if limits.memory decides."""
        return None

    def configured(self, key: str, default: Any) -> Any:
        """Return the value of ``jobqueue.<kind>.<key>`` in the user's Dask configuration, or `default`."""
        import dask

        value = dask.config.get(f"jobqueue.{self.kind}.{key}", None)
        return default if value is None or value in ((), [], {}) else value


class WaitKey(Options):
    """The key ``wait``."""

    wait: Annotated[float, Field(gt=0)] | None = None
    """Longest time without any worker, in seconds: 3600 for a queue, 60 elsewhere."""


class WorkerOptions(WaitKey, ClusterOptions):
    """Cores, memory, Python and scratch of the workers; by default those of the Dask configuration."""

    cores: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Cores of each job (for ssh, of each machine); each core runs one task at a time."""
    memory: Size | None = None
    """Memory of each job (for ssh, of each machine), such as "8GiB"; by default twice limits.memory for each
    process, because pages of mapped files also count."""
    python: Word | None = None
    """Python that starts the workers; by default the one that runs this command."""
    local_directory: Word | None = None
    """Scratch directory on the node, such as "$TMPDIR"; the temporary directory by default."""

    def job_cores(self) -> int:
        """Return the cores of one job or machine."""
        return self.cores or int(self.configured("cores", 1))

    def job_processes(self) -> int:
        """Return the worker processes of one job or machine."""
        return 1

    def process_threads(self) -> int:
        """Return the tasks that share the memory of one worker process."""
        return max(1, self.job_cores() // self.job_processes())

    def process_memory(self) -> int | None:
        """Return the memory of one worker process in bytes, None if limits.memory decides."""
        from dask.utils import parse_bytes

        memory = self.memory or self.configured("memory", None)
        return None if memory is None else int(parse_bytes(memory)) // self.job_processes()


class ProcessOptions(WorkerOptions):
    """The keys of `WorkerOptions`, and the number of worker processes that share the cores and the memory."""

    processes: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of worker processes of a job, which share its cores and memory; 1 by default."""

    @model_validator(mode="after")
    def _check_division(self) -> Self:
        if self.cores and self.processes and self.cores % self.processes:
            raise ValueError(
                f"cores = {self.cores} cannot be divided among processes = {self.processes}"
            )
        return self

    def job_processes(self) -> int:
        """Return the worker processes of one job or machine."""
        return self.processes or int(self.configured("processes", 1))


class LogKey(ClusterOptions):
    """The key ``log_directory``."""

    log_directory: Word | None = None
    """Shared directory for the output of the jobs; ``~/.local/state/eigenscape/jobs`` by default."""

    def logs(self) -> str:
        """Return the directory for the output of the jobs."""
        default = platformdirs.user_state_path("eigenscape") / "jobs"
        directory = self.log_directory or self.configured("log-directory", default)
        return str(Path(directory).expanduser())


class DashboardKey(Options):
    """The key ``dashboard_port``."""

    dashboard_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of the scheduler's dashboard, 0 for any free port; no dashboard by default."""


class EncryptionKey(Options):
    """The key ``tls``."""

    tls: bool = True
    """Encrypt and authenticate Dask's traffic, with certificates for this run alone. If false, everyone who
    reaches the interface can run code as you."""


class CertificateKeys(Options):
    """The keys ``tls_ca_file``, ``tls_cert`` and ``tls_key``."""

    tls_ca_file: str | None = None
    """Certificate authority (PEM) of your own certificates."""
    tls_cert: str | None = None
    """Certificate (PEM) of scheduler, workers and client."""
    tls_key: str | None = None
    """Private key (PEM) of that certificate."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        files = (self.tls_ca_file, self.tls_cert, self.tls_key)
        if any(files) and not all(files):
            raise ValueError("tls_ca_file, tls_cert and tls_key must be given together")
        return self

    @property
    def certificates(self) -> tuple[str, str, str] | None:
        """Return the files of the authority, the certificate and its key; None without them."""
        if self.tls_ca_file and self.tls_cert and self.tls_key:
            return self.tls_ca_file, self.tls_cert, self.tls_key
        return None


class NetworkKeys(DashboardKey, EncryptionKey, CertificateKeys):
    """The keys of ports and their encryption."""

    interface: Word | None = None
    """Network interface of all ports, on the nodes and on this machine, such as "lo" or "ib0"."""
    scheduler_interface: Word | None = None
    """Network interface on this machine, if it has another name than on the nodes."""
    scheduler_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of the scheduler; 0 for any free port."""
    tls_directory: str | None = None
    """Directory that all workers see. The certificates of the run are in a private directory below it;
    ``~/.local/state/eigenscape/private`` by default."""
