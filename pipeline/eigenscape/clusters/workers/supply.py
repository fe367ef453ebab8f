"""The supply of workers: replacement of lost workers, and reasons for waiting."""

import asyncio
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from eigenscape.base.shares import listed
from eigenscape.clusters.workers.reports import JobState, Reporting
from eigenscape.errors import ClusterError

AWAY_S = 2.0
"""Seconds without the workers of a job after which the queue is asked for the state of the job."""
HUNG_S = 60.0
"""Seconds without the workers of a running job after which the job is given up; a nanny restarts a worker
faster."""
ASK_S = 5.0
"""Seconds between two questions to the queue about a job without workers."""
MOST_ASKED = 4
"""Jobs for which the queue is asked at a time."""
MOST_FAILURES = 3
"""Number of successive jobs that may end before their worker connects, if no worker has ever connected."""
REFUSED_S = 40.0
"""Seconds for which the queue may refuse jobs before the run ends, if no worker has ever connected."""
_MOST_PAUSE_S = 30.0
_MOST_PAUSE_ALONE_S = 8.0


class Supply(Protocol):
    """The supply of workers."""

    def replace_lost(self, names: Collection[str]) -> None:
        """Replace lost workers.

        Parameters
        ----------
        names
            Names of the connected workers.

        Raises
        ------
        ClusterError
            No worker can come any more.
        """
        ...

    def end(self, name: str) -> None:
        """End a worker that no longer answers, and its nanny or job."""
        ...

    def waiting(self) -> str:
        """Return a message about the jobs that are waited for, with the reason; empty if there are none."""
        ...

    def hint(self) -> str:
        """Return advice for the case that no worker connects, in one or more sentences."""
        ...


class ExternalSupply:
    """A supply that replaces nothing, for workers that are managed elsewhere.

    Parameters
    ----------
    advice
        Advice for the case that there are no workers.
    """

    def __init__(self, advice: str) -> None:
        self._advice = advice

    def replace_lost(self, names: Collection[str]) -> None:
        """Leave it to those who started them."""

    def end(self, name: str) -> None:
        """Leave it alone: it ends by itself if it ever goes on (`eigenscape.clusters.workers.fence`)."""

    def waiting(self) -> str:
        """Return an empty text: it is unknown when workers will connect."""
        return ""

    def hint(self) -> str:
        """Return the advice."""
        return self._advice


@dataclass
class _Watched:
    """What is known of one job.

    Attributes
    ----------
    job
        One of the cluster's.
    seen, asked
        When its workers were there last, if ever, and when the queue was asked for it.
    state, reason
        What the queue said.
    lost
        Whether it will bring no worker any more.
    """

    job: Any
    asked: float
    seen: float | None = None
    state: JobState = "waiting"
    reason: str = ""
    lost: bool = False

    def is_due(self, now: float) -> bool:
        """Whether to ask the queue for it."""
        pause = AWAY_S if self.seen is not None and self.asked <= self.seen else ASK_S
        return not self.lost and now - self.asked >= pause


class Jobs:
    """Jobs of a queue: those that are lost, refused or vanish are submitted again.

    Neither `scale` of distributed nor its adaptive scaling replaces a job that is cancelled before
    its worker came, or a lost job of several processes. So the number of jobs is kept here, and a job
    that is lost stays in the cluster's list until another takes its place.

    Parameters
    ----------
    cluster
        Its jobs note why they are refused: see `eigenscape.clusters.workers.refusals`.
    reports
        Says of one of its jobs how it is.
    jobs
        Jobs to keep up; None where an adaptive scaling decides.
    advice
        What to look at if no worker comes.
    say
        Called with what happens to jobs.
    """

    def __init__(
        self,
        cluster: Any,
        reports: Reporting,
        jobs: int | None,
        advice: str,
        say: Callable[[str], None],
    ) -> None:
        self._cluster, self._reports, self._jobs = cluster, reports, jobs
        self._advice, self._say = advice, say
        self._watched: dict[Any, _Watched] = {}
        self._made = 0
        self._change: Future[None] | None = None
        # Of the last jobs: how often in a row none brought a worker, since when, and why.
        self._failures, self._since, self._trouble = 0, 0.0, ""
        self._failed_now, self._hopeless, self._present = False, False, False
        self._worked, self._retry, self._silenced = False, 0.0, 0.0

    def replace_lost(self, names: Collection[str]) -> None:
        """Submit again what is lost.

        Raises
        ------
        ClusterError
            Jobs are refused, or end before their worker comes, again and again, and never was there
            one. Later that may be a queue that is down for a while.
        """
        now = time.monotonic()
        self._find(names, now)
        self._ask(now)
        if self._hopeless and not self._worked:
            raise ClusterError(f"{self._trouble} {self._advice}")
        self._replace(now)

    def end(self, name: str) -> None:
        """Give up the job of a worker: it is cancelled, and another takes its place."""
        for number, watched in self._watched.items():
            if _brought(number, name):
                watched.lost = True

    def waiting(self) -> str:
        """Return the jobs whose workers are not there, with what the queue says of them."""
        groups: dict[str, list[str]] = {}
        for watched in list(self._watched.values()):
            if watched.lost or (watched.seen is not None and watched.seen >= watched.asked):
                continue
            groups.setdefault(_describe(watched), []).append(str(watched.job))
        told = [f"{listed(jobs, 3)}: {how}" for how, jobs in groups.items()]
        if self._change is not None and not self._change.done():
            told.append("jobs are being submitted")
        if self._trouble and (pause := self._retry - time.monotonic()) > 0:
            told.append(f"{self._trouble.rstrip('.')}; submitted again in {pause:.0f} s")
        return "; ".join(told)

    def hint(self) -> str:
        """Return what is waited for, or what went wrong last, and the advice."""
        told = self.waiting()
        told = f"{told[0].upper()}{told[1:].rstrip('.')}." if told else self._trouble
        return f"{told} {self._advice}".strip()

    def _find(self, names: Collection[str], now: float) -> None:
        """Note which jobs have workers, and which were refused."""
        self._present = bool(names)
        jobs = {
            name: job
            for name in list(self._cluster.worker_spec)
            if (job := self._cluster.workers.get(name)) is not None
        }
        for name in set(self._watched) - set(jobs):
            del self._watched[name]
        for name, job in jobs.items():
            watched = self._watched.setdefault(name, _Watched(job, now - ASK_S + AWAY_S))
            if any(_brought(name, worker) for worker in names):
                watched.seen = watched.asked = now
                self._worked, self._failures, self._trouble = True, 0, ""
            elif job.refused is not None and not watched.lost:
                watched.lost = True
                self._fail(job.refused, now)
                self._hopeless = job.hopeless or now - self._since > REFUSED_S

    def _ask(self, now: float) -> None:
        """Ask the queue for some of the jobs whose workers are not there."""
        due = [name for name, watched in self._watched.items() if watched.is_due(now)]
        if now < self._silenced:
            return
        for name in sorted(due, key=lambda name: self._watched[name].asked)[:MOST_ASKED]:
            watched = self._watched[name]
            watched.asked = now
            report = self._reports.ask(watched.job)
            watched.state, watched.reason = report.state, report.reason
            if report.state == "unknown":
                self._silenced = now + ASK_S  # it would not answer for the others either
                return
            away = None if watched.seen is None else now - watched.seen
            if report.state == "failed":
                watched.lost = True
                self._fail(f"{watched.job} cannot run: {report.reason.rstrip('.')}.", now)
                self._hopeless = self._failures >= MOST_FAILURES
            elif report.state == "gone" and away is None:
                watched.lost = True
                words = self._reports.last_words(watched.job)
                words = f"The last line of its log: {words}." if words else "Its log is empty."
                self._fail(f"{watched.job} ended before its worker came. {words}", now)
                self._hopeless = self._failures >= MOST_FAILURES
            # One that waits was put back into the queue, and will come again under its name.
            elif away is not None and (
                report.state == "gone" or (report.state != "waiting" and away > HUNG_S)
            ):
                watched.lost = True
                self._say(f"{watched.job} of workers is lost: another takes its place")

    def _fail(self, trouble: str, now: float) -> None:
        """Note that a job brought no worker."""
        if trouble != self._trouble:
            self._say(trouble)
        self._trouble = trouble
        if not self._failures:
            self._since = now
        if not self._failed_now:  # once for all jobs that were submitted together
            self._failed_now = True
            self._failures += 1
            most = _MOST_PAUSE_S if self._present else _MOST_PAUSE_ALONE_S
            self._retry = now + min(2.0**self._failures, most)

    def _replace(self, now: float) -> None:
        """Take lost jobs off the cluster's list and put others there, unless it is too early."""
        if self._change is not None and self._change.done():
            self._change = None
        lost = [name for name, watched in self._watched.items() if watched.lost]
        kept = len(self._cluster.worker_spec) - len(lost)
        fresh = 0 if self._jobs is None else max(0, self._jobs - kept)
        if self._change is not None or now < self._retry or not (lost or fresh):
            return
        for name in lost:
            del self._watched[name]
        names = range(self._made, self._made + fresh)
        self._made += fresh
        self._failed_now = False
        self._change = asyncio.run_coroutine_threadsafe(
            self._exchange(lost, names), self._cluster.loop.asyncio_loop
        )

    async def _exchange(self, lost: Collection[Any], fresh: Collection[int]) -> None:
        # Under names that no job ever had: a lost one may still come back under its own.
        for name in lost:
            self._cluster.worker_spec.pop(name, None)
        for number in fresh:
            self._cluster.worker_spec[number] = self._cluster.new_spec
        await self._cluster


def _brought(job: Any, worker: str) -> bool:
    return worker == str(job) or worker.startswith(f"{job}-")


def _describe(watched: _Watched) -> str:
    reason = f" ({watched.reason})" if watched.reason else ""
    if watched.state == "unknown":
        return "the queue does not answer"
    if watched.state == "running":
        return f"running, its workers are not there yet{reason}"
    return f"waiting{reason}"
