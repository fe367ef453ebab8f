"""Record of the driver's jobs: a small file in the run directory.

::

    submitting --> submitted --> running --> finished | failed
         ^                          |
         +----- walltime -----------+--> cancelled

A driver that is killed, or lost with its node, notes no end: `describe_driver` says that it has ended.

Only who holds the file's lock changes it, for a moment; the driver at work holds another lock for as
long as its process lives, so that two of them never work at the same time.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import filelock

from eigenscape.base.files.held import is_held
from eigenscape.base.files.whole import explain_write_errors, write_json
from eigenscape.clusters.owners import check_own
from eigenscape.clusters.workers.reports import JobState, QueueReports
from eigenscape.errors import StoreError

if TYPE_CHECKING:
    from eigenscape.clusters.queues import QueueOptions

FILE = "submission.json"

State = Literal["submitting", "submitted", "running", "finished", "failed", "cancelled"]

_LAG_S = 10.0
"""Some queues show a job only a while after they have taken it."""


@dataclass(frozen=True)
class Submission:
    """Record of the driver's jobs.

    Attributes
    ----------
    kind
        Of the queue.
    name
        Name of the driver's jobs in the queue, and that of the jobs of its workers.
    worker_name
        See above.
    job
        Table, name and base directory of the job (`eigenscape.parse_job`).
    cluster
        Table of the cluster file.
    state
        How far it is.
    job_id
        Number of the driver's latest job.
    jobs
        Numbers of all of them.
    stalled
        How many of the last ones ended without having finished anything.
    exit_status
        Of the driver, once it has ended for good.
    message
        What it said at its end.
    changed
        Seconds since 1970.
    """

    kind: str
    name: str
    worker_name: str
    job: dict[str, Any]
    cluster: dict[str, Any]
    state: State = "submitting"
    job_id: str | None = None
    jobs: tuple[str, ...] = ()
    stalled: int = 0
    exit_status: int | None = None
    message: str = ""
    changed: float = field(default_factory=time.time)

    @property
    def over(self) -> bool:
        """Whether no job of it will work any more."""
        return self.state in ("finished", "failed", "cancelled")


def read_submission(path: Path) -> Submission | None:
    """Return what a run directory says of its driver's jobs, None if it was never submitted."""
    file = path / FILE
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Submission(**{**found, "jobs": tuple(found["jobs"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{file} is damaged ({error}). Delete it and submit the job again."
        ) from None


def write_submission(path: Path, submission: Submission, **changes: Any) -> Submission:
    """Write the file, with some changes; hold `changing` around it."""
    changed = replace(submission, **changes, changed=time.time())
    write_json(path / FILE, asdict(changed))
    return changed


@contextmanager
def changing(path: Path) -> Iterator[Submission | None]:
    """Hold the file for a change; yield what it says now.

    Raises
    ------
    StoreError
        It is damaged.
    ClusterError
        Others may write it: its set-up lines run in the driver's jobs.
    """
    with explain_write_errors(path), filelock.FileLock(path / f".{FILE}.lock"):
        with suppress(FileNotFoundError):
            check_own(
                path / FILE,
                "lines of shell in it run as you",
                "Take a run directory of your own: output.directory or --run-dir.",
            )
        yield read_submission(path)


def describe_driver(path: Path) -> dict[str, Any] | None:
    """Return how the driver of a run is, None if it was never submitted.

    Its state ``driver`` is that of the submission, or "ended" if its job has left the queue, its process
    does not live, and it has noted no end.
    """
    found = read_submission(path)
    if found is None:
        return None
    from eigenscape.clusters.registry import find_queue

    state: JobState = "gone" if found.over else "unknown"
    if found.job_id is not None and not found.over:
        state = find_queue(found.kind).job_state(found.job_id)
    at_work = is_held(path / "driver" / "lock")
    driver: str = found.state
    message = found.message
    if not found.over and not at_work and found.job_id is not None:
        queue = find_queue(found.kind)
        if state == "gone" and abs(time.time() - found.changed) > _LAG_S:
            if read_submission(path) != found:
                return describe_driver(path)  # it has ended by itself, or handed over, just now
            driver, message = "ended", _how_ended(path, found, queue)
        elif state == "failed":
            message = message or queue.job_reason(found.job_id)
        elif state == "unknown":
            message = message or f"{queue.query[0]} does not answer here"
    return {
        "kind": found.kind,
        "job_id": found.job_id,
        "jobs": list(found.jobs),
        "driver": driver,
        "job": state,
        "at_work": at_work,
        "stalled": found.stalled,
        "exit_status": found.exit_status,
        "message": message,
    }


def _how_ended(path: Path, found: Submission, queue: "type[QueueOptions]") -> str:
    """Return what is known of the end of a driver that has noted none."""
    began = "was killed, or lost with its node" if found.state == "running" else "never began"
    text = f"job {found.job_id} is no longer in the queue: it {began}"
    words = QueueReports(queue, path / "driver").last_words(found)
    return f"{text}. The last line of its output: {words}" if words else text
