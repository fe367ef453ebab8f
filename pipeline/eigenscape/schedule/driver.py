"""What the job of a driver does, see `eigenscape.cli.driver`.

It stops before the walltime of its job ends, submits itself again and leaves the rest to that job.
"""

import os
import runpy
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import filelock

from eigenscape.base.process.progress import console_reporter
from eigenscape.base.process.signals import put_off
from eigenscape.clusters.queues import QueueOptions
from eigenscape.clusters.registry import find_queue
from eigenscape.clusters.submission import State, Submission, changing, write_submission
from eigenscape.errors import EigenscapeError
from eigenscape.schedule.submit import cluster_of, driven, enqueue, submitted_job
from eigenscape.store.manifest import read_manifest
from eigenscape.workflow.finished.result import Result
from eigenscape.workflow.spine import run

EXPECTED_S = 60.0
"""A job that the file does not name waits so long for whoever submitted it to write its number."""
MOST_MARGIN_S = 120.0

_ENDED_BY_QUEUE = "the queue ended its job"


class _Stopped(BaseException):
    """The walltime ends soon, or somebody ends the job. No error: nothing may catch it on the way."""

    def __init__(self, status: int) -> None:
        self.status = status


def main(path: Path, show: Callable[[Result], None]) -> int:
    """Work on a run until it is finished or the walltime is nearly over.

    Parameters
    ----------
    path
        Run directory.
    show
        Prints the result.

    Returns
    -------
    int
        Exit status: that of ``eigenscape run``, 0 if another job goes on.
    """
    start = time.monotonic()
    # Until the process has ended, its last thread included.
    lock = filelock.FileLock(path / "driver" / "lock")
    lock.acquire()
    found = _claim(path)
    if found is None:
        return 0
    try:
        options = cluster_of(found)
        before = progress(path)
    except EigenscapeError as error:  # such as a file of another version
        print(f"eigenscape: {error}", file=sys.stderr)
        return _note_end(path, error.exit_status, str(error))
    hand_over = partial(_hand_over, path, options, before)
    try:
        with _stopping(_seconds_left(options) - (time.monotonic() - start), hand_over):
            status, message = _work(path, found, options, show)
    except _Stopped as stopped:
        return stopped.status
    return _note_end(path, status, message)


def _note_end(path: Path, status: int, message: str) -> int:
    """Note how the work on a run has ended, unless it was cancelled; return the exit status."""
    with changing(path) as found:
        if found is not None and found.state != "cancelled":
            state: State = "finished" if status in (0, 3) else "failed"
            write_submission(path, found, state=state, exit_status=status, message=message)
    return status


def progress(path: Path) -> tuple[int, int]:
    """Return how much of a run is finished: stages, and blocks of stages that are not."""
    journals = (path / "work").glob("*/journal.jsonl")
    lines = sum(journal.read_bytes().count(b"\n") for journal in journals)
    return len(read_manifest(path)["stages"]), lines


def _claim(path: Path) -> Submission | None:
    """Note that this job works on the run; None if it is not the one to do so."""
    end = time.monotonic() + EXPECTED_S
    while True:
        with changing(path) as found:
            # A queue may start a job again that it has ended, as after a preemption: nobody has cancelled
            # the run.
            if found is None or (found.over and found.message != _ENDED_BY_QUEUE):
                print("eigenscape: cancelled or finished: nothing to do", file=sys.stderr)
                return None
            own = os.environ.get(find_queue(found.kind).job_variable or "", "").partition(".")[0]
            named = found.job_id is not None and own == found.job_id.partition(".")[0]
            # Whoever submitted it may have been killed before it wrote the number.
            if not own or named or time.monotonic() > end:
                return write_submission(path, found, state="running", message="")
            if found.state != "submitting":
                print(f"eigenscape: job {found.job_id} does the work", file=sys.stderr)
                return None
        time.sleep(0.2)


def _work(
    path: Path, found: Submission, options: QueueOptions, show: Callable[[Result], None]
) -> tuple[int, str]:
    """Run the job; return exit status and message."""
    workers = options.model_copy(update={"job_name": found.worker_name})
    try:
        job, on = driven(submitted_job(found), workers)
        result = run(job, on=on, run_dir=path, reporter=console_reporter())
    except EigenscapeError as error:
        print(f"eigenscape: {error}", file=sys.stderr)
        return error.exit_status, str(error)
    except Exception as error:
        import traceback

        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    show(result)
    return (0, "") if result.converged else (3, "not converged: the results are kept")


def _hand_over(path: Path, options: QueueOptions, before: tuple[int, int], again: bool) -> int:
    """Submit the driver again, unless that would lead nowhere; return an exit status."""
    with changing(path) as found:
        if found is None or found.over:
            return 0
        if not again:
            write_submission(path, found, state="cancelled", message=_ENDED_BY_QUEUE)
            return 1
        stalled = 0 if progress(path) > before else found.stalled + 1
        if stalled >= options.driver.attempts:
            message = (
                f"{stalled} jobs in a row ended without having finished a block. Set driver.walltime "
                "to more, and submit the job again."
            )
            print(f"eigenscape: {message}", file=sys.stderr)
            write_submission(
                path, found, state="failed", stalled=stalled, exit_status=1, message=message
            )
            return 1
        found = write_submission(path, found, stalled=stalled)
        try:
            found = enqueue(path, found)
        except EigenscapeError as error:
            print(f"eigenscape: {error}", file=sys.stderr)
            return 1
    print(f"eigenscape: the walltime ends; job {found.job_id} goes on", file=sys.stderr)
    return 0


def _seconds_left(options: QueueOptions) -> float:
    """Return how long the driver may work, infinity if nothing limits it."""
    driver = options.driver
    walltime = driver.walltime or options.walltime
    seconds = options.model_copy(update={"walltime": walltime}).walltime_seconds()
    if seconds is None:
        return float("inf")
    margin = driver.stop_before or min(MOST_MARGIN_S, 0.2 * seconds)
    return max(1.0, seconds - margin)


@contextmanager
def _stopping(seconds: float, hand_over: Callable[[bool], int]) -> Iterator[None]:
    """Hand over and raise `_Stopped` in the main thread, after some time or when the queue ends the job.

    First the one, while nothing is taken down yet: the next job waits for the end of this process.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if put_off(number, frame):
            return
        # Once: what is taken down from now on must not be interrupted.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Stopped(hand_over(number == signal.SIGALRM))

    before = {number: signal.signal(number, stop) for number in (signal.SIGALRM, signal.SIGTERM)}
    if seconds < float("inf"):
        signal.setitimer(signal.ITIMER_REAL, max(1.0, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            # Unless it is ignored by now. The caller notes the end of the work under a lock that
            # handing over takes as well.
            if signal.getsignal(number) is stop:
                signal.signal(number, handler)


if __name__ == "__main__":
    # Jobs that an earlier version queued name this module.
    runpy.run_module("eigenscape.cli.driver", run_name="__main__", alter_sys=True)
