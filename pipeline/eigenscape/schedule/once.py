"""One scheduled run: under a lock, into a log that does not grow for ever, then old runs go."""

import shlex
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.errors import BusyError, EigenscapeError
from eigenscape.schedule.entry import Schedule
from eigenscape.schedule.prune import prune_runs
from eigenscape.store.lock import hold

LOG = "schedule.log"
LARGEST_LOG = 2**20
"""Bytes from which a log is put aside before the next run."""
GRACE_S = 30.0
"""Seconds that a run has to end once this process is asked to end: service managers wait little longer."""
OLD_LOGS = 5
"""Logs put aside that are kept: ``schedule.log.1`` is the newest."""


def run_once(schedule: Schedule) -> int:
    """Do what a scheduler starts; return the exit status: 0 too where an earlier run still works."""
    with explain_write_errors(schedule.directory):
        schedule.directory.mkdir(parents=True, exist_ok=True)
    log = schedule.directory / LOG
    try:
        with hold(schedule.directory, _busy):
            rotate(log)
            return _run(schedule, log)
    except BusyError as error:
        _note(log, f"not run: {error}")
        return 0


def rotate(log: Path) -> None:
    """Put a log aside that has grown large, and forget the oldest of those put aside."""
    if not log.exists() or log.stat().st_size < LARGEST_LOG:
        return
    for number in range(OLD_LOGS, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        newer = log.with_name(f"{log.name}.{number - 1}") if number > 1 else log
        if newer.exists():
            newer.replace(older)


def _run(schedule: Schedule, log: Path) -> int:
    command = schedule.command()
    _note(log, f"begins: {shlex.join(command)}")
    began = time.monotonic()
    with log.open("ab") as stream:
        # A process of its own: whatever ends it, the log says so.
        process = subprocess.Popen(
            command, cwd=schedule.home, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
        try:
            status = process.wait()
        except KeyboardInterrupt:
            ended = _end(process)
            _note(log, f"stopped after {time.monotonic() - began:.0f} s: exit status {ended}")
            raise
    _note(log, f"ends: exit status {status} after {time.monotonic() - began:.0f} s")
    if schedule.keep is not None and schedule.runs.is_dir():
        try:
            pruned = prune_runs(schedule.runs, schedule.keep, names=schedule.names)
        except (EigenscapeError, OSError) as error:
            _note(log, f"old runs stay: {error}")
            return status or 1
        for path in pruned.deleted:
            _note(log, f"deleted: {path}")
        for path, why in pruned.failed:
            _note(log, f"not deleted: {path}: {why}")
        return status or pruned.exit_status
    return status


def _end(process: "subprocess.Popen[bytes]") -> int:
    """Let a process end by itself, and kill it if it does not; return its exit status."""
    try:
        # The run cancels its jobs and writes its tables on the way out.
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(GRACE_S)
    finally:
        process.kill()
    return process.wait()


def _note(log: Path, text: str) -> None:
    with explain_write_errors(log.parent), log.open("a", encoding="utf-8") as stream:
        stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} schedule {text}\n")


def _busy(sentence: str) -> None:
    raise BusyError(f"{sentence.partition(';')[0]}.")
