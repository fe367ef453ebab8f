"""Jobs of SLURM, PBS, LSF, SGE, OAR and HTCondor, through dask-jobqueue's job classes."""

import asyncio
import importlib
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from eigenscape.clusters.kinds.arguments import check_queue, job_arguments
from eigenscape.clusters.options import ClusterOptions
from eigenscape.clusters.words import quoted
from eigenscape.errors import ClusterError, MissingExtraError

_CLASSES = {
    "slurm": "SLURM", "pbs": "PBS", "lsf": "LSF", "sge": "SGE", "oar": "OAR", "htcondor": "HTCondor",
}  # fmt: skip
_PLACEHOLDER = "tcp://SCHEDULER:PORT"
_DRIVER_MEMORY = 2**31

JobState = Literal["waiting", "running", "failed", "gone", "unknown"]
"""Of a job in its queue; one that has "failed" is still there, but will not run."""

# How to ask for one job; what an answer means is in `_state_of`.
_QUERIES = {
    "slurm": ["squeue", "--noheader", "--format=%T", "--jobs={}"],
    "pbs": ["qstat", "{}"],
    "lsf": ["bjobs", "-noheader", "-o", "stat", "{}"],
    # The own jobs; -j, of one job, tells no state in Grid Engine 8.1.9.
    "sge": ["qstat"],
    "oar": ["oarstat", "-s", "-j", "{}"],
    "htcondor": ["condor_q", "{}", "-autoformat", "JobStatus"],
}
_STATES: dict[JobState, str] = {
    "waiting": "PENDING CONFIGURING REQUEUED SUSPENDED PEND WAITING TOLAUNCH 1 5",
    "running": "RUNNING COMPLETING RUN LAUNCHING FINISHING 2",
    "gone": "COMPLETED CANCELLED FAILED TIMEOUT DONE EXIT TERMINATED ERROR 3 4",
}


@cache
def job_class(kind: str) -> Any:
    """Return dask-jobqueue's class of one job of a kind.

    Raises
    ------
    ClusterError
        The kind has no queue.
    MissingExtraError
        dask-jobqueue is not installed.
    """
    found = _find(kind, "Job")
    return _literal_arguments(found) if kind == "htcondor" else found


@cache
def cluster_class(kind: str) -> Any:
    """Return dask-jobqueue's class of a cluster of such jobs."""
    return _find(kind, "Cluster")


def _literal_arguments(job: Any) -> Any:
    """Return HTCondor's class of a job whose command line it hands on as it is: $(NAME) is a macro."""

    class Literal(job):  # type: ignore[misc]
        def job_script(self) -> str:
            head, mark, rest = super().job_script().partition("\nArguments = ")
            line, end, rest = rest.partition("\n")
            return str(head + mark + line.replace("$", "$(DOLLAR)") + end + rest)

    Literal.__name__ = job.__name__
    return Literal


def _find(kind: str, what: str) -> Any:
    check_queue(kind)
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
    return getattr(module, _CLASSES[kind] + what)


def submit_command(kind: str) -> str:
    """Return the command that submits a job, such as ``sbatch``."""
    return str(job_class(kind).submit_command)


def cancel_command(kind: str) -> str:
    """Return the command that cancels a job, such as ``scancel``."""
    return str(job_class(kind).cancel_command)


def job_script(options: ClusterOptions, memory_limit: int) -> str:
    """Return the script that would be submitted for each job of workers.

    Parameters
    ----------
    options
        A cluster file of a queue.
    memory_limit
        ``[limits] memory`` in bytes.
    """
    return str(_job(options, memory_limit).job_script())


def driver_script(
    options: ClusterOptions,
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
    """Return a script that runs a command as a job of a queue, after a cluster file's set-up lines.

    Parameters
    ----------
    options
        A cluster file of a queue: its queue, account, directives and environment.
    command
        Program and arguments; they are quoted for the shell here.
    before
        Words of the shell that stand before them.
    name
        Name of the job.
    cores, memory
        What the job asks for; the memory of a job of workers by default.
    walltime
        Longest time, ``[days-]hours:minutes[:seconds]``; that of the workers by default.
    log_directory
        Where what it prints goes; that of the workers by default.
    directives
        Directives besides those of the file.

    Raises
    ------
    ClusterError
        The kind has no queue, or something cannot stand in a script of it.
    """
    own = options.model_copy(
        update={
            "cores": cores,
            "processes": 1,
            "memory": memory or options.memory,
            "walltime": walltime or options.walltime,
            "log_directory": log_directory or options.log_directory,
            "directives": (*options.directives, *directives),
        }
    )
    job = _job(own, _DRIVER_MEMORY, job_name=name)
    line = " ".join([*before, *quoted(command)])
    if options.kind == "htcondor":  # which has no lines before the command
        line = "; ".join([*job._job_script_prologue, line])
    job._command_template = line
    return str(job.job_script())


def submit(options: ClusterOptions, script: str) -> str:
    """Submit a script and return the number of its job.

    Raises
    ------
    ClusterError
        The queue refuses it or its commands are not here.
    """
    job = _job(options, _DRIVER_MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.sh"
        path.write_text(script, encoding="utf-8")
        try:
            answer = asyncio.run(job._submit_job(str(path)))
            return str(job._job_id_from_submit_output(answer))
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(
                f"{refusal(options.kind, error)} Look at what it would submit with "
                "`eigenscape cluster script FILE`."
            ) from None


def cancel(kind: str, job_id: str) -> None:
    """Cancel a job; one that is gone already is as good."""
    command = [*shlex.split(cancel_command(kind)), job_id]
    try:
        subprocess.run(command, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        text = f"{shlex.join(command)}: {error}. Is this a machine of the cluster?"
        raise ClusterError(text) from None


def job_state(kind: str, job_id: str) -> JobState:
    """Ask the queue for a job; "unknown" where the queue does not answer."""
    command = [part.format(job_id) for part in _QUERIES[kind]]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if kind == "sge":
        return _row_state(job_id, answer.stdout) if answer.returncode == 0 else "unknown"
    return _state_of(kind, answer.returncode, answer.stdout, answer.stderr)


def refusal(kind: str, error: Exception) -> str:
    """Return what to say when a queue refuses a job: the error of its command in one line."""
    command = submit_command(kind)
    if isinstance(error, OSError):
        return (
            f"{command}: {error.strerror or error}. A cluster of kind {kind!r} is reached from a machine "
            f"that has the command {command}."
        )
    _, found, text = str(error).partition("stderr:\n")
    reason = " ".join((text if found else str(error)).split())
    return f"{command} refused the job: {reason.rstrip('.')}."


def _job(options: ClusterOptions, memory_limit: int, **changes: Any) -> Any:
    make = job_class(options.kind)
    return make(_PLACEHOLDER, name="eigenscape-0", **job_arguments(options, memory_limit) | changes)


def _row_state(job_id: str, table: str) -> JobState:
    """Return the state of a job by Grid Engine's table: number, priority, name, user, letters."""
    for words in map(str.split, table.splitlines()):
        if words[:1] == [job_id] and len(words) > 4:
            letters = words[4]
            if "E" in letters:
                return "failed"
            return "running" if set("rt") & set(letters) else "waiting"
    return "gone"


def _state_of(kind: str, status: int, out: str, err: str) -> JobState:
    if kind == "pbs":
        # Its table differs from site to site: a job that it knows is there.
        if status != 0:
            gone = any(text in err.lower() for text in ("unknown job", "has finished"))
            return "gone" if gone else "unknown"
        return "running" if " R " in out else "waiting"
    if status != 0:
        gone = any(text in err.lower() for text in ("invalid job id", "not found"))
        return "gone" if gone else "unknown"
    words = out.replace(":", " ").upper().split()
    if not words:
        return "gone"
    return next(
        (state for state, names in _STATES.items() if words[-1] in names.split()), "unknown"
    )
