"""Where workers come from, and how lost ones are replaced."""

import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from eigenscape.clusters.jobqueue import JobState
from eigenscape.errors import ClusterError

AWAY_S = 2.0
"""When the workers of a job have been away so long, the queue is asked for the job."""
HUNG_S = 60.0
"""A job that runs is given up when its workers have been away so long: a nanny starts one in less."""
ASK_S = 10.0
"""How often the queue is asked for jobs whose workers have not come yet."""
MOST_FAILURES = 3
"""Jobs in a row that may end before their worker comes, if none ever came."""


class Supply(Protocol):
    """Where workers come from."""

    def mend(self, names: Collection[str]) -> None:
        """Replace what is lost.

        Parameters
        ----------
        names
            Names of the workers that are there.

        Raises
        ------
        ClusterError
            No worker can come any more.
        """
        ...

    def hint(self) -> str:
        """Return what to look at if no worker comes, as a sentence or more."""
        ...


class Unmended:
    """Workers that come and go without us: those of a scheduler that runs already.

    Parameters
    ----------
    advice
        What to look at if there are none.
    """

    def __init__(self, advice: str) -> None:
        self._advice = advice

    def mend(self, names: Collection[str]) -> None:
        """Leave it to those who started them."""

    def hint(self) -> str:
        """Return the advice."""
        return self._advice


class Jobs:
    """Jobs of a queue: those that are lost, refused or vanish are submitted again.

    Neither `scale` of distributed nor its adaptive scaling replaces a job that is cancelled before
    its worker came, or a lost job of several processes.

    Parameters
    ----------
    cluster
        Its jobs are made by `noting_refusals`.
    state
        Says of one of its jobs whether it is there.
    workers
        Workers to keep up; None where an adaptive scaling decides.
    advice
        What to look at if no worker comes.
    """

    def __init__(
        self, cluster: Any, state: Callable[[Any], JobState], workers: int | None, advice: str
    ) -> None:
        self._cluster, self._state, self._workers, self._advice = cluster, state, workers, advice
        self._seen: dict[Any, float] = {}
        self._asked: dict[Any, float] = {}
        self._worked, self._failures, self._trouble, self._retry = False, 0, "", 0.0

    def mend(self, names: Collection[str]) -> None:
        """Submit again what is lost.

        Raises
        ------
        ClusterError
            A job is refused, or several end before their worker comes, and never was there one. Later
            that may be a queue that is down for a while.
        """
        now = time.monotonic()
        if names:
            self._worked, self._failures, self._trouble = True, 0, ""
        jobs = list(self._cluster.workers.items())
        lost = [name for name, job in jobs if self._is_lost(name, job, names, now)]
        if self._failures >= MOST_FAILURES and not self._worked:
            raise ClusterError(self.hint())
        if lost:
            for name in lost:
                self._seen.pop(name, None)
                self._asked.pop(name, None)
            self._cluster.sync(self._cluster.scale_down, lost)
        missing = self._workers is not None and (lost or len(jobs) < len(self._cluster.worker_spec))
        if missing and now >= self._retry:
            self._cluster.scale(self._workers)
            self._retry = now + min(1.0 + 5.0 * self._failures, 30.0)

    def hint(self) -> str:
        """Return what went wrong last, if anything did, and the advice."""
        return f"{self._trouble} {self._advice}".strip()

    def _is_lost(self, name: Any, job: Any, present: Collection[str], now: float) -> bool:
        """Whether a job will bring no worker any more."""
        if any(worker == str(name) or worker.startswith(f"{name}-") for worker in present):
            self._seen[name] = self._asked[name] = now
            return False
        if job.refused is not None:
            return self._failed(job.refused, MOST_FAILURES)
        pause = AWAY_S if name in self._seen else ASK_S / (1 + self._failures)
        if now - self._asked.setdefault(name, now) < pause:
            return False
        self._asked[name] = now
        state = self._state(job)
        if name in self._seen:
            # One that waits was put back into the queue, and will come again under its name.
            return state == "gone" or (state != "waiting" and now - self._seen[name] > HUNG_S)
        return state == "gone" and self._failed(f"{job} ended before its worker came.")

    def _failed(self, trouble: str, failures: int = 1) -> bool:
        self._failures += failures
        self._trouble = trouble
        return True


def noting_refusals(job: Any, explain: Callable[[Exception], str]) -> Any:
    """Return a class of jobs that keep why they could not be submitted, for `Jobs` to act on.

    dask-jobqueue's raise it within the event loop, which only logs it.

    Parameters
    ----------
    job
        One of dask-jobqueue's classes.
    explain
        Says what the error of a submission means.
    """
    from distributed.core import Status

    class Noting(job):  # type: ignore[misc]
        refused: str | None = None

        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                self.refused = explain(error)
                self.status = Status.running  # as far as the cluster is concerned

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

        def __repr__(self) -> str:
            return f"job {self.job_id}"

    Noting.__name__ = job.__name__
    return Noting
