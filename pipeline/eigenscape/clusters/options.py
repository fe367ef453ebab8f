"""A cluster file: what every kind is, and the keys that several kinds share."""

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
"""Called with a line on what is waited for, and on workers that are lost."""

UNPROFILED = {"distributed.worker.profile.enabled": False}
"""Setting of Dask for what is started here. Its profiler keeps what it sees of an hour: workers grew from 151
to 166 MiB in 30 runs of two seconds, and from 140 to 142 without it."""

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
    """A cluster file (TOML). Each kind is a class of its own: its keys, and how its workers start.

    ``ClusterOptions(kind="local", workers=2)`` is an object of the class of that kind. A kind derives
    from this class and from those below whose keys it has, gives `kind` as its only value, defines
    `start`, and is registered (`eigenscape.register`).
    """

    registry: ClassVar[Registry["ClusterOptions"]] = KINDS

    kind: str = "threads"
    """What runs the tasks: one of the files of `clusters/kinds/`, or a kind of another package."""

    in_process: ClassVar[bool] = False
    """Whether the tasks run on threads of this process, without workers."""
    wait_s: ClassVar[float] = 60.0
    """Longest time without any worker in seconds, unless the key ``wait`` says another."""
    needs: ClassVar[tuple[str, str, str] | None] = None
    """Module, package and extra of an optional package that this kind needs."""

    def __new__(cls, *_: Any, **keys: Any) -> Self:
        """Make an object of the class of a kind."""
        named = KINDS.find(keys.get("kind", "threads")) if cls is ClusterOptions else cls
        return object.__new__(named)  # type: ignore[return-value]

    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> AbstractContextManager[tuple[Any, "Supply"]]:
        """Bring up scheduler and workers, without waiting for these, and take them down at the end.

        Parameters
        ----------
        threads
            ``[limits] threads``, None for all cores.
        memory_limit
            ``[limits] memory`` in bytes, the promise of each worker process.
        say
            Called with what is waited for.

        Returns
        -------
        context manager of (cluster, supply)
            A cluster of distributed's kind, which a client connects to; and where its workers come from:
            `eigenscape.clusters.Unmended` if distributed alone replaces those that are lost.

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
        """Do what `start` does, and yield a connected client and the supply."""
        import dask
        from distributed import Client

        with (
            dask.config.set(_WORKERS_ARE_OURS | UNPROFILED),
            self.start(threads, memory_limit, say) as (cluster, supply),
            Client(cluster, set_as_default=False) as client,
        ):
            yield client, supply

    def for_check(self) -> Self:
        """Return the same with a single worker, for ``cluster check``, if a key says how many there are."""
        return (
            self.model_copy(update={"workers": 1}) if "workers" in type(self).model_fields else self
        )

    def process_count(self, threads: int | None) -> int | None:
        """Return how many processes run tasks, None where nothing here says so; `threads` as in `start`."""
        if self.in_process:
            return 1
        workers: int | None = getattr(self, "workers", None)
        return workers

    def process_threads(self) -> int:
        """Return the tasks that share the memory of one worker process."""
        return 1

    def process_memory(self) -> int | None:
        """Return the memory of one worker process in bytes, None if limits.memory decides."""
        return None

    def configured(self, key: str, default: Any) -> Any:
        """Return what the user's own Dask configuration says of ``jobqueue.<kind>.<key>``."""
        import dask

        value = dask.config.get(f"jobqueue.{self.kind}.{key}", None)
        return default if value is None or value in ((), [], {}) else value


class WaitKey(Options):
    """How long to be without workers."""

    wait: Annotated[float, Field(gt=0)] | None = None
    """Longest time without any worker, in seconds: 3600 for a queue, 60 elsewhere."""


class WorkerOptions(WaitKey, ClusterOptions):
    """What the workers of a job or a machine have; what is left out, the Dask configuration says."""

    cores: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Cores of each job (of each machine by ssh): one task at a time on each."""
    memory: Size | None = None
    """Memory of each job (of each machine by ssh), such as "8GiB"; twice limits.memory for each
    process by default, for pages of mapped files count too."""
    python: Word | None = None
    """Python that starts the workers; the one that runs now by default."""
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
    """What the worker processes of a job or a machine share."""

    processes: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Worker processes among which the cores and the memory of a job are divided; 1 by default."""

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
    """Where workers print to."""

    log_directory: Word | None = None
    """Shared directory for what the jobs print; below the user's own state directory by default."""

    def logs(self) -> str:
        """Return where workers print to."""
        default = platformdirs.user_state_path("eigenscape") / "jobs"
        directory = self.log_directory or self.configured("log-directory", default)
        return str(Path(directory).expanduser())


class DashboardKey(Options):
    """The scheduler's dashboard."""

    dashboard_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of the scheduler's dashboard, 0 for a free one; there is none by default."""


class EncryptionKey(Options):
    """Whether traffic is encrypted."""

    tls: bool = True
    """Encrypt and authenticate Dask's own traffic, with certificates for this run alone. Without it
    everyone who reaches the interface can run code as you."""


class CertificateKeys(Options):
    """Certificates of your own."""

    tls_ca_file: str | None = None
    """Certificate authority (PEM), for certificates of your own."""
    tls_cert: str | None = None
    """Certificate (PEM) of scheduler, workers and client."""
    tls_key: str | None = None
    """Private key (PEM) of that certificate."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        files = (self.tls_ca_file, self.tls_cert, self.tls_key)
        if any(files) and not all(files):
            raise ValueError("tls_ca_file, tls_cert and tls_key come together")
        return self

    @property
    def certificates(self) -> tuple[str, str, str] | None:
        """Files of the authority, the certificate and its key, if they are given."""
        if self.tls_ca_file and self.tls_cert and self.tls_key:
            return self.tls_ca_file, self.tls_cert, self.tls_key
        return None


class NetworkKeys(DashboardKey, EncryptionKey, CertificateKeys):
    """Ports on the nodes and here, and their encryption."""

    interface: Word | None = None
    """Network interface of all ports, such as "lo" or "ib0": on the nodes and here."""
    scheduler_interface: Word | None = None
    """Network interface here, where its name differs."""
    scheduler_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of the scheduler; a free one by default."""
    tls_directory: str | None = None
    """Directory that the workers see: certificates lie in a private one below; your own state directory by
    default."""
