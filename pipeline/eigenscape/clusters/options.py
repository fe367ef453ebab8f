"""The keys of a cluster file: for each kind those that it knows."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, field_validator, model_validator

from eigenscape.job.options import Options, Size

Kind = Literal[
    "threads", "local", "existing", "slurm", "pbs", "lsf", "sge", "oar", "htcondor", "ssh", "allocation",
]  # fmt: skip
QueueKind = Literal["slurm", "pbs", "lsf", "sge", "oar", "htcondor"]
QUEUES: tuple[QueueKind, ...] = get_args(QueueKind)
"""The kinds that submit jobs through dask-jobqueue."""

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


class DriverOptions(Options):
    """``[driver]``: the job in which `eigenscape submit` and SLURM's schedules put the driver itself."""

    walltime: Walltime | None = None
    """Longest time of that job; that of the workers by default. The driver ends before and submits
    itself again."""
    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    """Its cores."""
    memory: Size = "4GiB"
    """Its memory."""
    stop_before: Annotated[float, Field(gt=0)] | None = None
    """Seconds before the end of the walltime at which it stops; 120 or a fifth of it by default."""
    attempts: Annotated[int, Field(ge=1, le=1000)] = 3
    """Jobs in a row that may end without having finished anything; then it is not submitted again."""
    alone: bool = False
    """Work on its own cores, without jobs of workers: `eigenscape submit` only."""


class ClusterOptions(Options):
    """A cluster file (TOML). `KEYS` says which kind knows which key."""

    kind: Kind = "threads"
    """What runs the tasks: "threads" of this process, "local" processes, an "existing" scheduler,
    jobs of a queue ("slurm", "pbs", "lsf", "sge", "oar", "htcondor"), machines by "ssh", or the
    "allocation" of SLURM that this process is in."""

    workers: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Worker processes: of a local cluster one per core by default, of an allocation one per task."""
    threads_per_worker: Annotated[int, Field(ge=1, le=1024)] = 1
    """Threads of each worker process of a local cluster."""

    address: str | None = None
    """Address of an existing scheduler, such as "tcp://127.0.0.1:8786"."""
    scheduler_file: str | None = None
    """Scheduler file of an existing scheduler, instead of its address."""

    jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Jobs to keep in the queue or running: a fixed size. A job that is lost is replaced."""
    minimum_jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Fewest jobs of an adaptive cluster."""
    maximum_jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Most jobs of an adaptive cluster, which submits and ends jobs as there is work."""

    cores: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Cores of each job (of each machine by ssh): one task at a time on each."""
    processes: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Worker processes among which the cores and the memory of a job are divided; 1 by default."""
    memory: Size | None = None
    """Memory of each job (of each machine by ssh), such as "8GiB"; twice limits.memory for each
    process by default, for pages of mapped files count too."""
    walltime: Walltime | None = None
    """Longest time of a job, [days-]hours:minutes[:seconds]. Workers retire before it ends."""
    queue: Word | None = None
    """Queue or partition."""
    account: Word | None = None
    """Account that pays."""
    project: Word | None = None
    """Project that pays."""
    resources: Line | None = None
    """What to ask the queue for (`-l`), instead of what follows from cores and memory."""
    memory_property: Word | None = None
    """Name of OAR's property for the memory of a core, such as "memcore"."""
    disk: Size | None = None
    """Disk of each job, such as "10GiB"."""
    directives: tuple[Line, ...] = ()
    """More directives, as they stand behind #SBATCH, #PBS ...; for HTCondor "key = value"."""
    environment: tuple[str, ...] = ()
    """Lines of shell that set up a job before its worker starts: the one place for shell code."""
    python: Word | None = None
    """Python that starts the workers; the one that runs now by default."""
    local_directory: Word | None = None
    """Scratch directory on the node, such as "$TMPDIR"; the temporary directory by default."""
    log_directory: Word | None = None
    """Shared directory for what the jobs print; below the user's own state directory by default."""

    job_name: Word = "eigenscape"
    """Name of the jobs in the queue."""
    driver: DriverOptions = DriverOptions()
    """The job of the driver itself, for `eigenscape submit`: a table of its own."""

    hosts: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Machines to start workers on by ssh."""
    username: Word | None = None
    """User name there."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of the ssh servers; 22 by default."""
    private_key: str | None = None
    """File of the private key; those of the user's ssh and its agent by default."""
    known_hosts: str | None = None
    """File of the keys of the machines; the user's own by default."""

    interface: Word | None = None
    """Network interface of all ports, such as "lo" or "ib0": on the nodes and here."""
    scheduler_interface: Word | None = None
    """Network interface here, where its name differs."""
    scheduler_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of the scheduler; a free one by default."""
    dashboard_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of the scheduler's dashboard, 0 for a free one; there is none by default."""
    tls: bool = True
    """Encrypt and authenticate Dask's own traffic, with certificates for this run alone. Without it
    everyone who reaches the interface can run code as you."""
    tls_directory: str | None = None
    """Directory that the workers see: certificates lie in a private one below; your own state directory by
    default."""
    tls_ca_file: str | None = None
    """Certificate authority (PEM), for certificates of your own."""
    tls_cert: str | None = None
    """Certificate (PEM) of scheduler, workers and client."""
    tls_key: str | None = None
    """Private key (PEM) of that certificate."""
    wait: Annotated[float, Field(gt=0)] | None = None
    """Longest time without any worker, in seconds: 3600 for a queue, 60 elsewhere."""

    @field_validator("environment")
    @classmethod
    def _check_lines(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("\n" in line for line in value):
            raise ValueError("one line of shell for each item of the list")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "ClusterOptions":
        if self.kind == "existing" and not (self.address or self.scheduler_file):
            raise ValueError("kind = 'existing' needs address or scheduler_file")
        if self.kind == "ssh" and self.hosts is None:
            raise ValueError("kind = 'ssh' needs hosts, a list of machines")
        if self.maximum_jobs is not None and self.jobs is not None:
            raise ValueError(
                "jobs is a fixed size and maximum_jobs an adaptive one: give one of them"
            )
        if self.minimum_jobs is not None and self.maximum_jobs is None:
            raise ValueError("minimum_jobs needs maximum_jobs")
        if (self.minimum_jobs or 1) > (self.maximum_jobs or 10_000):
            raise ValueError("minimum_jobs is more than maximum_jobs")
        if self.cores and self.processes and self.cores % self.processes:
            raise ValueError(
                f"cores = {self.cores} cannot be divided among processes = {self.processes}"
            )
        files = (self.tls_ca_file, self.tls_cert, self.tls_key)
        if any(files) and not all(files):
            raise ValueError("tls_ca_file, tls_cert and tls_key come together")
        return self


_WORKER = {"cores", "processes", "memory", "python", "local_directory", "wait"}
_NETWORK = {
    "interface", "scheduler_interface", "scheduler_port", "dashboard_port", "tls", "tls_directory",
}  # fmt: skip
_CERTIFICATES = {"tls_ca_file", "tls_cert", "tls_key"}
_QUEUE = {
    "jobs", "minimum_jobs", "maximum_jobs", "walltime", "directives", "environment", "log_directory",
    "job_name", "driver",
} | _WORKER | _NETWORK | _CERTIFICATES  # fmt: skip
_OWN = {
    "threads": set(),
    "local": {"workers", "threads_per_worker", "dashboard_port", "tls"},
    "existing": {"address", "scheduler_file", "wait"} | _CERTIFICATES,
    "slurm": _QUEUE | {"queue", "account"},
    "pbs": _QUEUE | {"queue", "account", "resources"},
    "lsf": _QUEUE | {"queue", "project"},
    "sge": _QUEUE | {"queue", "project", "resources"},
    "oar": _QUEUE | {"queue", "project", "resources", "memory_property"},
    "htcondor": _QUEUE | {"disk"},
    "ssh": (_WORKER | _NETWORK | _CERTIFICATES)
    | {"hosts", "username", "port", "private_key", "known_hosts"},
    "allocation": (_WORKER | _NETWORK | _CERTIFICATES) - {"processes"}
    | {"workers", "log_directory"},
}
KEYS: dict[str, tuple[str, ...]] = {
    kind: ("kind", *(key for key in ClusterOptions.model_fields if key in own))
    for kind, own in _OWN.items()
}
"""The keys that each kind knows."""
