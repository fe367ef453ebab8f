"""The base class of all queues: the keys of their cluster files, and their jobs by dask-jobqueue."""

import asyncio
import importlib
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from eigenscape.clusters.network import (
    http_settings,
    interface_of,
    scheduler_options,
    security_of,
    shown_security,
    worker_security,
)
from eigenscape.clusters.options import (
    Line,
    LogKey,
    NetworkKeys,
    ProcessOptions,
    Say,
    Walltime,
    Word,
    parse_walltime,
)
from eigenscape.clusters.shellwords import check_plain, python_word, quoted, shell_word
from eigenscape.clusters.workers.reports import JobState, QueueReports
from eigenscape.clusters.workers.supply import Jobs, Supply
from eigenscape.errors import ClusterError, MissingExtraError
from eigenscape.job.options import Options, Size

RETIRE_S = 60
"""Seconds before the end of the walltime by which the last worker of a job has retired."""
_SCHEDULER = "tcp://SCHEDULER:PORT"
_DRIVER_MEMORY = 2**31
_MOST_LETTERS = 200


class DriverOptions(Options):
    """``[driver]``: the job that runs the driver, for `eigenscape submit` and the schedules of SLURM."""

    walltime: Walltime | None = None
    """Longest time of the driver's job; by default that of the workers' jobs. The driver stops earlier and
    submits itself again."""
    cores: Annotated[int, Field(ge=1, le=1024)] = 1
    """Cores of the driver's job."""
    memory: Size = "4GiB"
    """Memory of the driver's job."""
    stop_before: Annotated[float, Field(gt=0)] | None = None
    """Time at which the driver stops, in seconds before the end of its walltime; by default 120, or a fifth
    of a short walltime."""
    attempts: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of successive driver jobs that may end without finishing anything; then no further one is
    submitted."""
    alone: bool = False
    """Compute on the cores of the driver's job, without worker jobs (`eigenscape submit` only)."""


class QueueKey(Options):
    """The queue of a job."""

    queue: Word | None = None
    """Queue or partition."""


class AccountKey(Options):
    """The account of a job."""

    account: Word | None = None
    """Account to charge."""


class ProjectKey(Options):
    """The project of a job."""

    project: Word | None = None
    """Project to charge."""


class ResourcesKey(Options):
    """The resources of a job."""

    resources: Line | None = None
    """Resources to request (`-l`), instead of those that follow from ``cores`` and ``memory``."""


class QueueOptions(NetworkKeys, LogKey, ProcessOptions):
    """A cluster file of a queue: scheduler in this process, workers in jobs that dask-jobqueue submits."""

    wait_s: ClassVar[float] = 3600.0
    needs = ("dask_jobqueue", "dask-jobqueue", "hpc")

    jobqueue: ClassVar[str]
    """First part of the names of dask-jobqueue's classes, such as "SLURM"."""
    query: ClassVar[Sequence[str]]
    """Command that shows one job, with ``{}`` for its number: see `state_of`."""
    states: ClassVar[Mapping[JobState, str]] = {}
    """Words (in capitals, separated by blanks) in the answer of `query`, for each state of a job."""
    reason: ClassVar[tuple[Sequence[str], str]]
    """Command that prints the reason of a job's state, and the pattern of the reason in its output."""
    cancel_named: ClassVar[str | None] = None
    """Line of shell that cancels all jobs of a name, with ``{}`` for it."""
    job_variable: ClassVar[str | None] = None
    """Environment variable of a job that holds its number."""

    jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Constant number of jobs, waiting or running; lost jobs are replaced."""
    minimum_jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Smallest number of jobs, if the number follows the work (instead of ``jobs``); 1 by default."""
    maximum_jobs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Largest number of jobs, if the number follows the work (instead of ``jobs``)."""
    walltime: Walltime | None = None
    """Longest time of a job, [days-]hours:minutes[:seconds]. Workers retire before it ends."""
    directives: tuple[Line, ...] = ()
    """Further directives, without the prefix #SBATCH, #PBS ...; for HTCondor "key = value"."""
    environment: tuple[str, ...] = ()
    """Shell lines that run in each job before its worker starts. No other key may contain shell code."""
    job_name: Word = "eigenscape"
    """Name of the jobs in the queue."""
    driver: DriverOptions = DriverOptions()
    """Job of the driver, for `eigenscape submit` (a table)."""

    @field_validator("environment")
    @classmethod
    def _check_lines(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("\n" in line for line in value):
            raise ValueError("an item of the list has several lines; give one shell line per item")
        return value

    @model_validator(mode="after")
    def _check_jobs(self) -> Self:
        if self.maximum_jobs is not None and self.jobs is not None:
            raise ValueError(
                "jobs is a fixed size and maximum_jobs an adaptive one: give one of them"
            )
        if self.minimum_jobs is not None and self.maximum_jobs is None:
            raise ValueError("minimum_jobs needs maximum_jobs")
        if (self.minimum_jobs or 1) > (self.maximum_jobs or 10_000):
            raise ValueError("minimum_jobs is more than maximum_jobs")
        return self

    def own_arguments(self) -> dict[str, Any]:
        """Return the arguments that dask-jobqueue's class of this kind has, and not every other."""
        names = {
            "queue": "queue", "account": "account", "project": "project", "resources": "resource_spec",
        }  # fmt: skip
        own = type(self).model_fields
        given = {name: getattr(self, key) for key, name in names.items() if key in own}
        return given | {"walltime": self.walltime_text()}

    def all_directives(self) -> Any:
        """Return the directives of the user's Dask configuration and of the file."""
        return [*self.configured("job-extra-directives", ()), *self.directives]

    def walltime_text(self) -> str | None:
        """Return the walltime as the queue takes it."""
        seconds = self.walltime_seconds()
        if seconds is None:
            return None
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    @classmethod
    def adapted(cls, job: Any) -> Any:
        """Return dask-jobqueue's class of a job, adapted to this kind of queue."""
        return job

    def set_up(self, line: str) -> str:
        """Return a set-up line as it stands in the script."""
        return line

    def driver_line(self, job: Any, line: str) -> str:
        """Return the line that starts a driver in a script whose head and set-up lines are those of a job."""
        return line

    @classmethod
    def state_of(cls, job_id: str, status: int, out: str, err: str) -> JobState:
        """Return the state of a job from the exit status, the output and the error output of `query`."""
        if status != 0:
            gone = any(text in err.lower() for text in ("invalid job id", "not found"))
            return "gone" if gone else "unknown"
        words = out.replace(":", " ").upper().split()
        if not words:
            return "gone"
        found = (state for state, names in cls.states.items() if words[-1] in names.split())
        return next(found, "unknown")

    @classmethod
    def job_class(cls) -> Any:
        """Return dask-jobqueue's class of one job.

        Raises
        ------
        MissingExtraError
            dask-jobqueue is not installed.
        """
        return _job_class(cls)

    @classmethod
    def job_state(cls, job_id: str) -> JobState:
        """Ask the queue for a job; "unknown" where the queue does not answer."""
        answer = _ask(cls.query, job_id)
        if answer is None:
            return "unknown"
        return cls.state_of(job_id, answer.returncode, answer.stdout, answer.stderr)

    @classmethod
    def job_reason(cls, job_id: str) -> str:
        """Return the reason of a job's state, in the words of the queue; empty if there is none."""
        command, pattern = cls.reason
        answer = _ask(command, job_id)
        found = re.search(pattern, answer.stdout) if answer is not None else None
        return " ".join(found[1].split())[:_MOST_LETTERS] if found else ""

    @classmethod
    def cancel(cls, job_id: str) -> None:
        """Cancel a job; a job that has already ended is no error."""
        command = [*shlex.split(str(cls.job_class().cancel_command)), job_id]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            text = f"{shlex.join(command)}: {error}. Is this a machine of the cluster?"
            raise ClusterError(text) from None

    @classmethod
    def refusal(cls, error: Exception) -> str:
        """Return the error message for a job that the queue refused, from the output of its command."""
        kind, command = cls.model_fields["kind"].default, str(cls.job_class().submit_command)
        if isinstance(error, OSError):
            return (
                f"{command}: {error.strerror or error}. A cluster of kind {kind!r} is reached from a "
                f"machine that has the command {command}."
            )
        _, found, text = str(error).partition("stderr:\n")
        words = " ".join((text if found else str(error)).split())
        return f"{command} refused the job: {words.rstrip('.')}."

    @contextmanager
    def start(
        self, threads: int | None, memory_limit: int, say: Say
    ) -> Iterator[tuple[Any, Supply]]:
        """Start a scheduler in this process, and submit jobs of workers."""
        import dask

        from eigenscape.clusters.workers.refusals import noting_refusals

        arguments = self.job_arguments(memory_limit)
        make = _find(self.kind, f"{self.jobqueue}Cluster")
        jobs = None if self.maximum_jobs else self.jobs or 1
        with (
            worker_security(security_of(self.certificates, self.tls), self) as security,
            dask.config.set(http_settings(self)),
            make(
                job_cls=noting_refusals(self.job_class(), self.refusal),
                security=security,
                scheduler_options=scheduler_options(self, interface_of(self)),
                silence_logs=50,
                **arguments,
            ) as cluster,
        ):
            reports = QueueReports(type(self), Path(arguments["log_directory"]))
            supply = Jobs(cluster, reports, jobs, _advice(arguments), say)
            if jobs is None:
                cluster.adapt(minimum_jobs=self.minimum_jobs or 1, maximum_jobs=self.maximum_jobs)
            yield cluster, supply

    def for_check(self) -> Self:
        """Return a copy of the options with one job."""
        return self.model_copy(update={"jobs": 1, "minimum_jobs": None, "maximum_jobs": None})

    def job_arguments(self, memory_limit: int) -> dict[str, Any]:
        """Return the arguments of dask-jobqueue's classes that a cluster file stands for.

        What the file leaves out is taken from the user's own Dask configuration.

        Parameters
        ----------
        memory_limit
            ``[limits] memory`` in bytes.

        Raises
        ------
        ClusterError
            No interface is named, here or in the user's Dask configuration.
        """
        return {
            "cores": self.job_cores(),
            "processes": self.job_processes(),
            "memory": str(self.job_memory(memory_limit)),
            # dask-jobqueue quotes nothing.
            "python": python_word(self.python or self.configured("python", None)),
            "local_directory": self.local_directory and shell_word(self.local_directory),
            "log_directory": check_plain(
                self.logs(), "the directory of the logs", "Set log_directory."
            ),
            "job_script_prologue": [
                self.set_up(line)
                for line in self.environment or self.configured("job-script-prologue", ())
            ],
            "interface": shlex.quote(interface_of(self)),
            "worker_command": "eigenscape.clusters.workers.process",
            "worker_extra_args": [
                *self.configured("worker-extra-args", ()), *self._worker_arguments(),
            ],
            "job_name": self.job_name,
            "job_extra_directives": self.all_directives(),
            **self.own_arguments(),
        }  # fmt: skip

    def job_script(self, memory_limit: int) -> str:
        """Return the script that would be submitted for each job of workers."""
        security = shown_security(self.certificates, self)
        scheduler = _SCHEDULER if security is None else _SCHEDULER.replace("tcp", "tls", 1)
        return str(self._job(memory_limit, scheduler, security=security).job_script())

    def driver_script(
        self,
        command: Sequence[str],
        *,
        before: Sequence[str] = (),
        name: str = "eigenscape",
        cores: int = 1,
        memory: str | None = None,
        walltime: str | None = None,
        log_directory: str | None = None,
        directives: Sequence[str] = (),
    ) -> str:
        """Return a script that runs a command as a job of the queue, after the set-up lines.

        Parameters
        ----------
        command
            Program and arguments; they are quoted for the shell here.
        before
            Shell words in front of the command, not quoted.
        name
            Name of the job.
        cores, memory
            Cores and memory of the job; by default 1 and the memory of a worker job.
        walltime
            Longest time, ``[days-]hours:minutes[:seconds]``; that of the workers by default.
        log_directory
            Directory for the output of the job; by default that of the worker jobs.
        directives
            Directives besides those of the file.

        Raises
        ------
        ClusterError
            A value cannot be written into a script of the queue.
        """
        own = self.model_copy(
            update={
                "cores": cores,
                "processes": 1,
                "memory": memory or self.memory,
                "walltime": walltime or self.walltime,
                "log_directory": log_directory or self.log_directory,
                "directives": (*self.directives, *directives),
            }
        )
        job = own._job(_DRIVER_MEMORY, job_name=name)
        job._command_template = self.driver_line(job, " ".join([*before, *quoted(command)]))
        return str(job.job_script())

    def submit(self, script: str) -> str:
        """Submit a script and return the number of its job.

        Raises
        ------
        ClusterError
            The queue refuses it or its commands are not here.
        """
        job = self._job(_DRIVER_MEMORY)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "job.sh"
            path.write_text(script, encoding="utf-8")
            try:
                answer = asyncio.run(job._submit_job(str(path)))
                return str(job._job_id_from_submit_output(answer))
            except (OSError, RuntimeError, ValueError) as error:
                raise ClusterError(
                    f"{self.refusal(error)} `eigenscape cluster script FILE` prints the script that is "
                    "submitted."
                ) from None

    def job_memory(self, memory_limit: int) -> int:
        """Return the memory of one job in bytes."""
        from dask.utils import parse_bytes

        memory = self.memory or self.configured("memory", None)
        if memory is not None:
            return int(parse_bytes(memory))
        return 2 * memory_limit * self.job_processes()

    def walltime_seconds(self) -> int | None:
        """Return the walltime of a job in seconds, None if nothing limits it.

        Raises
        ------
        ClusterError
            That of the Dask configuration is of another form.
        """
        walltime = self.walltime or self.configured("walltime", None)
        if walltime is None:
            return None
        try:
            return parse_walltime(str(walltime))
        except ValueError as error:
            raise ClusterError(f"walltime = {walltime!r} (Dask configuration): {error}.") from None

    def _job(self, memory_limit: int, scheduler: str = _SCHEDULER, **changes: Any) -> Any:
        arguments = self.job_arguments(memory_limit) | changes
        return self.job_class()(scheduler, name="eigenscape-0", **arguments)

    def _worker_arguments(self) -> list[str]:
        arguments = ["--nanny", "--nworkers", str(self.job_processes())]
        if (seconds := self.walltime_seconds()) is not None:
            life, stagger = lifetime(seconds)
            arguments += ["--lifetime", f"{life}s", "--lifetime-stagger", f"{stagger}s"]
        return arguments


def lifetime(seconds: int) -> tuple[int, int]:
    """Return lifetime and stagger of the workers of a job, in seconds.

    Workers that end together would lose at once what only they hold, so their ends are spread
    over 10 % of the walltime (at least 10 s, at most 10 min), and the last is `RETIRE_S` (or a
    fifth of a short walltime) before the end of the job.
    """
    stagger = min(max(5.0, 0.05 * seconds), 300.0)
    return int(seconds - min(RETIRE_S, 0.2 * seconds) - stagger), int(stagger)


@cache
def _job_class(kind: type[QueueOptions]) -> Any:
    return kind.adapted(_find(kind.model_fields["kind"].default, f"{kind.jobqueue}Job"))


def _find(kind: str, name: str) -> Any:
    # dask-jobqueue makes SIGINT end the process when it is imported: a run has its own answer.
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        module = importlib.import_module(f"dask_jobqueue.{kind}")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("dask_jobqueue"):
            raise
        raise MissingExtraError("dask-jobqueue", "hpc", f"A cluster of kind {kind!r}") from None
    finally:
        signal.signal(signal.SIGINT, interrupt)
    return getattr(module, name)


def _ask(command: Sequence[str], job_id: str) -> "subprocess.CompletedProcess[str] | None":
    """Return the answer of a command of a queue, None if there is none."""
    words = [part.format(job_id) for part in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _advice(arguments: dict[str, Any]) -> str:
    advice = (
        f"The output of the jobs is in {arguments['log_directory']}; `eigenscape cluster check FILE` tests "
        "one job, `eigenscape cluster script FILE` prints its script."
    )
    if arguments["interface"] == "lo":
        advice += ' interface = "lo" is reached from this machine alone.'
    return advice
