"""What a cluster file asks of dask-jobqueue: its own keys, then the user's Dask configuration."""

import shlex
from pathlib import Path
from typing import Any

import dask
import platformdirs
from dask.utils import parse_bytes

from eigenscape.clusters.options import QUEUES, ClusterOptions, parse_walltime
from eigenscape.clusters.words import check_plain, python_word, shell_word
from eigenscape.errors import ClusterError

RETIRE_S = 60
"""Workers are gone this long before their job's walltime ends it."""


def check_queue(kind: str) -> None:
    """Refuse a kind that submits no jobs.

    Raises
    ------
    ClusterError
        It has no queue.
    """
    if kind not in QUEUES:
        raise ClusterError(
            f"kind = {kind!r} submits no jobs. Kinds that do: {', '.join(QUEUES)}; "
            "see cluster/README.md."
        )


def job_arguments(options: ClusterOptions, memory_limit: int) -> dict[str, Any]:
    """Return the arguments of dask-jobqueue's classes that a cluster file of a queue stands for.

    Parameters
    ----------
    options
        The cluster file.
    memory_limit
        ``[limits] memory`` in bytes.

    Raises
    ------
    ClusterError
        No interface is named, here or in the user's Dask configuration.
    """
    directives: Any = [*configured(options, "job-extra-directives", ()), *options.directives]
    if options.kind == "sge" and not any(line.split()[:1] == ["-S"] for line in directives):
        # Many of its queues start jobs with csh, whatever the first line of the script says.
        directives = ["-S /bin/bash", *directives]
    arguments: dict[str, Any] = {
        "cores": job_cores(options),
        "processes": job_processes(options),
        "memory": str(job_memory(options, memory_limit)),
        # dask-jobqueue quotes nothing.
        "python": python_word(options.python or configured(options, "python", None)),
        "local_directory": options.local_directory and shell_word(options.local_directory),
        "log_directory": check_plain(
            log_directory(options), "the directory of the logs", "Set log_directory."
        ),
        "job_script_prologue": list(
            options.environment or configured(options, "job-script-prologue", ())
        ),
        "interface": shlex.quote(interface_of(options)),
        "worker_command": "eigenscape.clusters.workers.process",
        "worker_extra_args": [
            *configured(options, "worker-extra-args", ()), *_worker_arguments(options),
        ],
        "job_name": options.job_name,
    }  # fmt: skip
    for key, name in (
        ("account", "account"),
        ("project", "project"),
        ("resources", "resource_spec"),
    ):
        if getattr(options, key):
            arguments[name] = getattr(options, key)
    if options.kind == "htcondor":
        arguments["disk"] = options.disk or configured(options, "disk", "10GiB")
        directives = _condor_directives(options)
    else:
        arguments |= {"queue": options.queue, "walltime": _walltime_text(options)}
    if options.kind == "oar":
        memory = configured(options, "memory-per-core-property-name", "not_applicable")
        arguments["memory_per_core_property_name"] = options.memory_property or memory
    return arguments | {"job_extra_directives": directives}


def job_cores(options: ClusterOptions) -> int:
    """Return the cores of one job."""
    return options.cores or int(configured(options, "cores", 1))


def job_processes(options: ClusterOptions) -> int:
    """Return the worker processes of one job."""
    return options.processes or int(configured(options, "processes", 1))


def job_memory(options: ClusterOptions, memory_limit: int) -> int:
    """Return the memory of one job in bytes."""
    memory = options.memory or configured(options, "memory", None)
    if memory is not None:
        return int(parse_bytes(memory))
    return 2 * memory_limit * job_processes(options)


def process_threads(options: ClusterOptions) -> int:
    """Return the tasks that share the memory of one worker process."""
    if options.kind in ("local", "existing"):
        return options.threads_per_worker
    return max(1, job_cores(options) // job_processes(options))


def process_memory(options: ClusterOptions) -> int | None:
    """Return the memory of one worker process in bytes, None if limits.memory decides."""
    memory = options.memory or configured(options, "memory", None)
    return None if memory is None else int(parse_bytes(memory)) // job_processes(options)


def interface_of(options: ClusterOptions) -> str:
    """Return the network interface on the nodes."""
    interface = options.interface or configured(options, "interface", None)
    if interface is None:
        raise ClusterError(
            f"interface is missing. A cluster of kind {options.kind!r} opens ports on the interface "
            'that its file names: one that all nodes share, such as "ib0" or "eth0" (`ip -brief address` '
            'lists them), or "lo" where everything runs on one machine.'
        )
    return str(interface)


def log_directory(options: ClusterOptions) -> str:
    """Return where jobs print to."""
    default = platformdirs.user_state_path("eigenscape") / "jobs"
    directory = options.log_directory or configured(options, "log-directory", default)
    return str(Path(directory).expanduser())


def configured(options: ClusterOptions, key: str, default: Any) -> Any:
    """Return what the user's own Dask configuration says of ``jobqueue.<kind>.<key>``."""
    value = dask.config.get(f"jobqueue.{options.kind}.{key}", None)
    return default if value is None or value in ((), [], {}) else value


def walltime_seconds(options: ClusterOptions) -> int | None:
    """Return the walltime of a job in seconds, None if nothing limits it.

    Raises
    ------
    ClusterError
        That of the Dask configuration is of another form.
    """
    walltime = options.walltime or configured(options, "walltime", None)
    if walltime is None:
        return None
    try:
        return parse_walltime(str(walltime))
    except ValueError as error:
        raise ClusterError(f"walltime = {walltime!r} (Dask configuration): {error}.") from None


def lifetime(seconds: int) -> tuple[int, int]:
    """Return lifetime and stagger of the workers of a job, in seconds.

    Workers that end together would lose at once what only they hold, so their ends are spread
    over 10 % of the walltime (at least 10 s, at most 10 min), and the last is `RETIRE_S` (or a
    fifth of a short walltime) before the end of the job.
    """
    stagger = min(max(5.0, 0.05 * seconds), 300.0)
    return int(seconds - min(RETIRE_S, 0.2 * seconds) - stagger), int(stagger)


def _worker_arguments(options: ClusterOptions) -> list[str]:
    arguments = ["--nanny", "--nworkers", str(job_processes(options))]
    if (seconds := walltime_seconds(options)) is not None:
        life, stagger = lifetime(seconds)
        arguments += ["--lifetime", f"{life}s", "--lifetime-stagger", f"{stagger}s"]
    return arguments


def _walltime_text(options: ClusterOptions) -> str | None:
    seconds = walltime_seconds(options)
    if seconds is None:
        return None
    minutes = -(-seconds // 60)
    if options.kind == "lsf":  # which knows no seconds
        return f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _condor_directives(options: ClusterOptions) -> dict[str, str]:
    directives = dict(configured(options, "job-extra-directives", {}))
    if (seconds := walltime_seconds(options)) is not None:
        directives["periodic_remove"] = (
            f"(JobStatus == 2) && (time() - EnteredCurrentStatus > {seconds})"
        )
    for line in options.directives:
        key, separator, value = line.partition("=")
        if not separator:
            raise ClusterError(f'directives: {line!r}: HTCondor\'s have the form "key = value".')
        directives[key.strip()] = value.strip()
    return directives
