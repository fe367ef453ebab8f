"""State of a queue job, in words: its state, the queue's reason, the end of what it printed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from eigenscape.clusters.queues import QueueOptions

JobState = Literal["waiting", "running", "failed", "gone", "unknown"]
"""Of a job in its queue; one that has "failed" is still there, but will not run."""

_MOST_LETTERS = 200
_TAIL_BYTES = 4096


@dataclass(frozen=True)
class Report:
    """State of a job.

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
    queue
        Class of its kind.
    log_directory
        Where the jobs print to.
    """

    def __init__(self, queue: "type[QueueOptions]", log_directory: Path) -> None:
        self._queue, self._folder = queue, log_directory

    def ask(self, job: Any) -> Report:
        """Return the state of a job, with the queue's reason if it does not run."""
        if not job.job_id:
            return Report("unknown")
        state = self._queue.job_state(job.job_id)
        asked = state in ("waiting", "failed")
        return Report(state, self._queue.job_reason(job.job_id) if asked else "")

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
