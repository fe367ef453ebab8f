"""What a schedule runs, and how that stands in a crontab, in a scrontab or in a chain of jobs."""

import glob
import hashlib
import math
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eigenscape.base.files.names import own_path
from eigenscape.base.fingerprint import package_folder
from eigenscape.base.memory import parse_bytes
from eigenscape.batch.run import batch_directory
from eigenscape.batch.sources import Source
from eigenscape.clusters import ClusterOptions, load_cluster
from eigenscape.errors import InputError
from eigenscape.job.jobfile import load_job
from eigenscape.schedule.blocks import Block, check_backslashes, check_lines, escape_percent
from eigenscape.schedule.cron import Cron
from eigenscape.workflow.directories import SCHEDULES, parent_directory

_PASSED_ON = ("EIGENSCAPE_DATA", "SLURM_CONF", "DASK_CONFIG", "XDG_CACHE_HOME")
"""Variables that runs read. Others stay out of the table, where everything may be read."""


@dataclass(frozen=True)
class Schedule:
    """A job that is run again and again.

    Attributes
    ----------
    job
        The job file; of a batch, its template.
    arguments
        Options of `eigenscape run` or `eigenscape batch`, with absolute paths.
    batch
        Whether it is a batch.
    home
        Directory that it runs in.
    runs
        Where its run directories are; its own lock and log are beside them.
    names
        Jobs whose runs they are, where other jobs run there too; None if not.
    keep
        Finished runs that stay; None for all.
    """

    job: Path
    arguments: tuple[str, ...]
    batch: bool
    home: Path
    runs: Path
    names: frozenset[str] | None = None
    keep: int | None = None

    @property
    def directory(self) -> Path:
        """Where its lock and its log are."""
        return self.runs / SCHEDULES / self.name

    @property
    def name(self) -> str:
        """What tells it from others: one schedule for each job file."""
        return schedule_name(self.job)

    def command(self) -> list[str]:
        """Return the command that does the work."""
        start = [sys.executable, "-m", "eigenscape"]
        if self.batch:
            return [*start, "batch", "--template", str(self.job), *self.arguments]
        return [*start, "run", str(self.job), *self.arguments]

    def line(self) -> str:
        """Return the command line that a scheduler starts: the same work under its lock."""
        keep = [] if self.keep is None else ["--keep", str(self.keep)]
        command = [
            sys.executable, "-m", "eigenscape", "schedule", str(self.job), "--now",
            *self.arguments, *keep,
        ]  # fmt: skip
        assignments = [f"{key}={shlex.quote(value)}" for key, value in environment().items()]
        return " ".join(
            ["cd", shlex.quote(str(self.home)), "&&", *assignments, shlex.join(command)]
        )


def make_schedule(
    source: Source,
    *,
    on: str | None = None,
    run_dir: Path | None = None,
    at_once: int | None = None,
    keep: int | None = None,
) -> Schedule:
    """Return the schedule of a job file or a batch, with paths that hold wherever it is started.

    Parameters
    ----------
    source
        One job file, or a template with its scenes.
    on
        Cluster file or address.
    run_dir, at_once
        As for `eigenscape run` and `eigenscape batch`.
    keep
        See `Schedule`.

    Raises
    ------
    InputError
        The job file, the cluster file or what goes with them cannot work.
    """
    load_cluster(on)
    arguments = [f"--set={text}" for text in source.overrides]
    if on is not None:
        arguments.append(f"--on={on if '://' in on else Path(on).resolve()}")
    if run_dir is not None:
        arguments.append(f"--run-dir={run_dir.resolve()}")
    home = Path.cwd()
    if source.template is None:
        (path,) = source.jobs
        job = load_job(path, source.overrides)
        if keep is not None and (run_dir is not None or job.study is not None):
            raise InputError(
                f"--keep {keep}: {'a study' if job.study else '--run-dir'} has one directory, whose "
                "stages the next run replaces. Leave --keep out."
            )
        if at_once is not None:
            raise InputError(f"--at-once {at_once}: {path} alone is one scene. Leave it out.")
        runs = (run_dir.parent if run_dir else parent_directory(job)).resolve()
        return Schedule(
            Path(own_path(path)), tuple(arguments), False, home, runs, frozenset([job.name]), keep
        )
    if source.scenes is not None:
        arguments.append(f"--scenes={os.path.join(glob.escape(str(home)), source.scenes)}")
    if source.table is not None:
        arguments.append(f"--table={own_path(source.table)}")
    if at_once is not None:
        arguments.append(f"--at-once={at_once}")
    runs = batch_directory(source, run_dir)
    template = Path(own_path(source.template))
    return Schedule(template, tuple(arguments), True, home, runs, None, keep)


def schedule_name(job: Path) -> str:
    """Return the name of the schedule of a job file."""
    path = Path(own_path(job))
    stem = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in path.stem)
    return f"{stem}-{hashlib.sha256(str(path).encode(errors='surrogateescape')).hexdigest()[:6]}"


def environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that the command needs where a scheduler starts it.

    Parameters
    ----------
    variables
        Those of this process.
    """
    found = {name: variables[name] for name in _PASSED_ON if variables.get(name)}
    for name in ("EIGENSCAPE_DATA", "XDG_CACHE_HOME"):
        if name in found:
            found[name] = str(Path(found[name]).resolve())
    source = str(package_folder())
    paths = variables.get("PYTHONPATH", "").split(os.pathsep)
    if source in (str(Path(path).resolve()) for path in paths if path):
        found["PYTHONPATH"] = source  # a source tree that is not installed
    sbatch = shutil.which("sbatch")
    if sbatch is not None and str(Path(sbatch).parent) not in ("/usr/bin", "/bin"):
        # cron knows no other directories.
        found["PATH"] = f"{Path(sbatch).parent}:/usr/local/bin:/usr/bin:/bin"
    return found


def crontab_block(schedule: Schedule, cron: Cron) -> Block:
    """Return the entry of a crontab.

    Raises
    ------
    InputError
        cron would cut it.
    """
    command = schedule.line()
    check_backslashes(command)
    line = f"{cron.text} {escape_percent(command)}"
    check_lines([line])
    return Block(schedule.name, str(schedule.job), (line,))


def scrontab_block(schedule: Schedule, cron: Cron, on: ClusterOptions) -> Block:
    """Return the entry of a scrontab, where a % means nothing.

    Raises
    ------
    InputError
        A path has a line break in it.
    """
    lines = [f"#SCRON {option}" for option in job_options(schedule, on)]
    line = f"{cron.text} {schedule.line()}"
    check_lines([*lines, line], limit=4000)
    return Block(schedule.name, str(schedule.job), (*lines, line))


DUE = "EIGENSCAPE_DUE"
"""Environment variable of a job of a chain: when it was due, local time."""


def chain_script(schedule: Schedule, cron: Cron, on: ClusterOptions) -> str:
    """Return a job script that submits itself for the next time, for SLURM without scrontab.

    Raises
    ------
    InputError
        A path has a line break in it.
    """
    python = shlex.join([sys.executable, "-m", "eigenscape", "schedule", "--next"])
    variables = [f"export {key}={shlex.quote(value)}" for key, value in environment().items()]
    script = shlex.quote(str(chain_path(schedule)))
    lines = [
        "#!/bin/sh",
        *(f"#SBATCH {option}" for option in [*job_options(schedule, on), "--dependency=singleton"]),
        *variables,
        # The successor first: a run that fails does not end the chain. A job that the queue starts
        # again has one already.
        "waiting=$(squeue --noheader --states=PENDING "
        f'--user="$(id -un)" --name={job_name(schedule.name)})',
        'if [ -z "$waiting" ]; then',
        f'    next="$({python} --cron {shlex.quote(cron.text)})"',
        f'    sbatch --begin="$next" --export="ALL,{DUE}=$next" {script}',
        "fi",
        schedule.line(),
    ]
    check_lines(lines, limit=4000)
    return "".join(f"{line}\n" for line in lines)


def chain_path(schedule: Schedule) -> Path:
    """Return where the script of a chain is kept."""
    return schedule.directory / "chain.sh"


def job_name(name: str) -> str:
    """Return what the queue calls the jobs of a schedule."""
    return f"eigenscape-{name}"


def job_options(schedule: Schedule, on: ClusterOptions) -> Sequence[str]:
    """Return the options of the job that drives a scheduled run on SLURM; its workers are other jobs.

    Raises
    ------
    InputError
        The path of its log cannot stand there.
    """
    options = [
        f"--job-name={job_name(schedule.name)}",
        "--open-mode=append",
        f"--output={_quoted_log(schedule)}",
    ]
    from eigenscape.clusters.kinds.slurm import SlurmOptions

    if isinstance(on, SlurmOptions):
        walltime = on.driver.walltime or on.walltime
        options.append(f"--cpus-per-task={on.driver.cores}")
        options.append(f"--mem={math.ceil(parse_bytes(on.driver.memory) / 2**20)}M")
        options += [f"--time={walltime}"] * bool(walltime)
        options += [f"--partition={on.queue}"] * bool(on.queue)
        options += [f"--account={on.account}"] * bool(on.account)
        options += on.directives
    return options


def _quoted_log(schedule: Schedule) -> str:
    """Return where the job prints to, as SLURM reads it: within quotes, and %% is a percent sign."""
    path = str(schedule.directory / "job.log")
    if "\\" in path:
        raise InputError(
            f"{path}: SLURM takes no backslash in the path of a log. Choose another output.directory or "
            "--run-dir."
        )
    escaped = path.replace("%", "%%").replace('"', r"\"")
    return f'"{escaped}"'
