"""Putting a schedule where something starts it, taking it away again, and saying what is there."""

import getpass
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError
from eigenscape.schedule.blocks import drop_block, find_blocks, put_block
from eigenscape.schedule.cron import Cron
from eigenscape.schedule.entry import (
    DUE,
    Schedule,
    chain_path,
    chain_script,
    crontab_block,
    job_name,
    schedule_name,
    scrontab_block,
)
from eigenscape.schedule.tables import Crontab

Medium = Literal["crontab", "scrontab", "chain"]
TABLES = ("crontab", "scrontab")


@dataclass(frozen=True)
class Entry:
    """One installed schedule.

    Attributes
    ----------
    name
        What tells it from others.
    medium
        Where it stands.
    title
        Its job file.
    text
        When and what: lines of the table, or the state of the job that waits.
    """

    name: str
    medium: str
    title: str
    text: str


def choose_medium(given: Medium | None, on: ClusterOptions) -> Medium:
    """Return where a schedule goes unless it is said: SLURM's own table for SLURM, if there is one."""
    if given is not None:
        return given
    if on.kind != "slurm":
        return "crontab"
    return "scrontab" if Crontab("scrontab").is_there else "chain"


def describe(schedule: Schedule, cron: Cron, on: ClusterOptions, medium: Medium) -> str:
    """Return the text of a schedule as `install` would put it.

    Raises
    ------
    InputError
        It cannot stand there.
    """
    if medium == "chain":
        return chain_script(schedule, cron, on)
    if medium == "scrontab":
        return scrontab_block(schedule, cron, on).text()
    return crontab_block(schedule, cron).text()


def install(schedule: Schedule, cron: Cron, on: ClusterOptions, medium: Medium) -> str:
    """Put a schedule into place; return what was done, with the one of the same job file that it replaces.

    Raises
    ------
    InputError
        A program is not there or refuses.
    """
    # The queue opens the log of a job before the job makes its directory.
    with explain_write_errors(schedule.directory):
        schedule.directory.mkdir(parents=True, exist_ok=True)
    if medium == "chain":
        return _install_chain(schedule, cron, on)
    table = Crontab(medium)
    before = table.read()
    block = crontab_block(schedule, cron)
    if medium == "scrontab":
        block = scrontab_block(schedule, cron, on)
    after = put_block(before, block)
    if after == before:
        return f"{schedule.name} is in the {medium} already."
    table.write(after)
    replaced = (one.lines[-1] for one in find_blocks(before) if one.name == schedule.name)
    return (
        f"{schedule.name} is in the {medium} now; it runs next at {_next(cron)}.{_told(replaced)}"
    )


def remove(job: Path) -> str:
    """Take the schedule of a job file away wherever it stands; return what was done.

    Raises
    ------
    InputError
        A program refuses.
    """
    name, gone = schedule_name(job), []
    for table in (Crontab(program) for program in TABLES):
        before = table.read() if table.is_there else ""
        after = drop_block(before, name)
        if after != before:
            table.write(after)
            gone.append(table.program)
    try:
        chains = _chains()
    except InputError:
        # A schedule stands in one place: where it was found, the queue need not answer.
        if not gone:
            raise
        chains = []
    for chain in (entry for entry in chains if entry.name == name):
        # First, or a job that begins now submits the next one.
        Path(chain.title).unlink(missing_ok=True)
        _slurm("scancel", "--state=PENDING", f"--name={job_name(name)}", _mine())
        gone.append(chain.medium)
    if not gone:
        return f"{name} is not installed."
    return f"{name} is gone from {' and '.join(gone)}. A run that is under way goes on."


def installed(tell: Callable[[str], None]) -> list[Entry]:
    """Return the schedules in the tables of this user, and the jobs of chains.

    Parameters
    ----------
    tell
        Called with a sentence if the queue does not answer, so that its jobs are not returned.
    """
    entries = []
    for table in (Crontab(name) for name in TABLES):
        for block in find_blocks(table.read()) if table.is_there else []:
            entries.append(Entry(block.name, table.program, block.title, "\n".join(block.lines)))
    try:
        entries += _chains()
    except InputError as error:
        tell(f"chains of jobs are not listed: {error}")
    return entries


def _told(replaced: Iterable[str]) -> str:
    """Return the lines of a schedule that another one replaces, as the end of a text; "" for none."""
    return "".join(f"\nIt replaces: {line}" for line in replaced)


def _chains() -> list[Entry]:
    """Return the chains of jobs; none without SLURM.

    Raises
    ------
    InputError
        SLURM does not answer.
    """
    return [] if shutil.which("squeue") is None else _queued()


def _queued() -> list[Entry]:
    """Return an entry for each chain: its job that waits, or the one that has yet to submit the next."""
    said = _slurm("squeue", "--noheader", _mine(), "--format=%j|%T|%S|%o")
    prefix, entries = job_name(""), dict[str, Entry]()
    for line in said.splitlines():
        name, state, start, script = line.split("|", 3)
        if not (name.startswith(prefix) and script.endswith("chain.sh")):
            continue
        if state == "PENDING":
            text = f"waits in the queue until {start}"
        elif name not in entries and Path(script).exists():
            text = f"runs since {start}"
        else:
            continue  # a chain that was removed has no script any more
        entries[name] = Entry(name.removeprefix(prefix), "chain", script, text)
    return list(entries.values())


def _install_chain(schedule: Schedule, cron: Cron, on: ClusterOptions) -> str:
    path, script = chain_path(schedule), chain_script(schedule, cron, on)
    before = next((entry for entry in _queued() if entry.name == schedule.name), None)
    replaced = None if before is None else _read_script(Path(before.title))
    if replaced == script and path.exists():
        return f"{schedule.name} is in the queue already."
    with explain_write_errors(path), written_whole(path) as temporary:
        temporary.write_text(script, encoding="utf-8")
        temporary.chmod(0o700)
    lines = []
    if before is not None:
        if Path(before.title) != path:
            Path(before.title).unlink(missing_ok=True)  # or a job that begins now submits it
        _slurm("scancel", "--state=PENDING", f"--name={job_name(schedule.name)}", _mine())
        lines = [f"the job that {before.text}: {(replaced or before.title).splitlines()[-1]}"]
    at = _next(cron)
    said = _slurm(
        "sbatch", "--parsable", f"--begin={at}", f"--export=ALL,{DUE}={at}", str(path)
    ).strip()
    done = f"{schedule.name} is job {said} now, which submits the next one; it runs at {at}."
    return done + _told(lines)


def _read_script(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None  # deleted, with its directory of runs maybe


def _mine() -> str:
    # Not at import: a container may have no name for its user.
    return f"--user={getpass.getuser()}"


def _next(cron: Cron) -> str:
    return cron.next_after(datetime.now()).isoformat()


def _slurm(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"{shlex.join(command)}: {error}. A chain needs SLURM's commands: go to a machine that "
            "has them, or take --crontab."
        ) from None
    if done.returncode:
        raise InputError(f"{shlex.join(command)}: {done.stderr.strip()}.")
    return done.stdout
