"""How a job of a queue is, in words: its state, the queue's reason, the end of what it printed."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eigenscape.clusters.kinds.jobqueue import JobState, job_state

_MOST_LETTERS = 200
_TAIL_BYTES = 4096

# How to ask why a job is as it is, and where the answer says so.
_REASONS = {
    "slurm": (["squeue", "--noheader", "--format=%T: %r", "--jobs={}"], r"(.+)"),
    "pbs": (["qstat", "-f", "{}"], r"comment = ((?:.+)(?:\n\t.+)*)"),
    "lsf": (["bjobs", "-noheader", "-o", "stat pend_reason", "{}"], r"(.+)"),
    "sge": (
        ["qstat", "-j", "{}"],
        r"(?:error reason +\d+|scheduling info): +((?:.+)(?:\n {10,}.+)*)",
    ),
    "oar": (["oarstat", "-f", "-j", "{}"], r"message = (.+)"),
    "htcondor": (["condor_q", "{}", "-autoformat", "HoldReason"], r"^(?!undefined)(.+)"),
}


@dataclass(frozen=True)
class Report:
    """How a job is.

    Attributes
    ----------
    state
        Whether it waits, runs or is gone.
    reason
        What the queue says of it; empty if that is nothing.
    """

    state: JobState
    reason: str = ""


class Reporting(Protocol):
    """Says how a job is."""

    def ask(self, job: Any) -> Report:
        """Return how a job is."""
        ...

    def last_words(self, job: Any) -> str:
        """Return the last line that a job printed; empty if there is none."""
        ...


class QueueReports:
    """Asks a queue for its jobs.

    Parameters
    ----------
    kind
        Of the queue.
    log_directory
        Where the jobs print to.
    """

    def __init__(self, kind: str, log_directory: Path) -> None:
        self._kind, self._folder = kind, log_directory

    def ask(self, job: Any) -> Report:
        """Return the state of a job, with the queue's reason if it does not run."""
        if not job.job_id:
            return Report("unknown")
        state = job_state(self._kind, job.job_id)
        asked = state in ("waiting", "failed")
        return Report(state, job_reason(self._kind, job.job_id) if asked else "")

    def last_words(self, job: Any) -> str:
        """Return the last line of the job's log."""
        # Queues have their own names for these files; all of them hold the number of the job.
        number = re.compile(rf"(?<!\d){re.escape(str(job.job_id).partition('.')[0])}(?!\d)")
        try:
            logs = [path for path in self._folder.iterdir() if number.search(path.name)]
            logs.sort(key=lambda path: path.stat().st_mtime)
        except OSError:
            return ""
        return next(filter(None, map(last_line, reversed(logs))), "")


def job_reason(kind: str, job_id: str) -> str:
    """Return what the queue says of a job: why it waits, or is held. Empty if it says nothing."""
    command, pattern = _REASONS[kind]
    try:
        answer = subprocess.run(
            [part.format(job_id) for part in command],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(pattern, answer.stdout)
    return " ".join(found[1].split())[:_MOST_LETTERS] if found else ""


def last_line(path: Path) -> str:
    """Return the last line of a text file that is not empty."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_MOST_LETTERS] if lines else ""
