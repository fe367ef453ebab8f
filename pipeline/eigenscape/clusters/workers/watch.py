"""Looks after the workers once a second: lost ones are replaced, silent ones ended, waiting is said."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from eigenscape.clusters.workers.supply import Supply
from eigenscape.errors import ClusterError

SILENT_S = 45.0
"""A worker is given up after this many seconds without a heartbeat. More than the 30 s of SLURM's time
slices, by which jobs take turns. Measurements of workers at work are in cluster/README.md."""
QUIET_S = 15.0
"""A worker is mentioned that has sent no heartbeat for so long."""

_LOOK_S = 1.0
_FIRST_LOOKS_S = 0.1
_SAY_S = 5.0
_KILL_S = 10.0
_BEATS = 10.0


class Clock:
    """Seconds during which this process ran: it stands while the process or its machine does.

    It has to be asked more often than once in `_STEP_S`.
    """

    _STEP_S = 5.0

    def __init__(self) -> None:
        self._last, self._sum = time.monotonic(), 0.0

    def __call__(self) -> float:
        """Return the seconds so far."""
        now = time.monotonic()
        self._sum += min(now - self._last, self._STEP_S)
        self._last = now
        return self._sum


class Watch:
    """A thread that looks after the workers of a scheduler until it is stopped.

    Parameters
    ----------
    client
        Connected to the scheduler.
    supply
        Where the workers come from.
    say
        Called with lost and silent workers, and with what is waited for.

    Attributes
    ----------
    workers
        Those that are there, by address: what the scheduler says of each.
    trouble
        Why no worker can come any more; None as long as some can.
    """

    def __init__(self, client: Any, supply: Supply, say: Callable[[str], None]) -> None:
        self._client, self._supply, self._say = client, supply, say
        self.workers: Mapping[str, Any] = {}
        self.trouble: Exception | None = None
        self._clock = Clock()
        self._present = self._said = self._clock()
        self._heard: dict[str, tuple[float, float]] = {}
        self._quiet: set[str] = set()
        self._told = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join(_KILL_S)

    def raise_trouble(self) -> None:
        """Raise what is wrong, if anything is."""
        if self.trouble is not None:
            raise self.trouble

    def await_worker(self, wait: float) -> None:
        """Wait until there is a worker.

        Raises
        ------
        ClusterError
            None comes in time, or none can come any more.
        """
        clock = Clock()
        while not self.workers:
            self.raise_trouble()
            if clock() > wait:
                raise ClusterError(
                    f"no worker came within {wait:g} s (wait in the cluster file). "
                    f"{self._supply.hint()}"
                )
            time.sleep(_FIRST_LOOKS_S)

    def _tend(self) -> None:
        while not self._stopped.wait(_LOOK_S if self.workers else _FIRST_LOOKS_S):
            if self._client.status in ("closing", "closed"):
                return
            try:
                if self._client.status == "running":
                    self._look()
            except (OSError, TimeoutError):
                pass  # the connection is lost: whoever runs tasks says so
            except Exception as error:
                if self._client.status == "running":
                    self.trouble = error
                    return

    def _look(self) -> None:
        # Not `scheduler_info`: the client replaces that every two seconds by one without workers.
        identity = self._client.sync(self._client.scheduler.identity, n_workers=-1)
        workers = identity["workers"]
        now = self._clock()
        self.workers = workers
        self._end_silent(now)
        self._supply.replace_lost([str(worker["name"]) for worker in workers.values()])
        if workers:
            self._present = now
        self._tell(now)

    def _tell(self, now: float) -> None:
        """Say what is waited for: what is new at once, and where no worker is there every few seconds."""
        waiting = self._supply.waiting()
        alone = not self.workers
        new = waiting != self._told and not alone
        if now - self._said < _SAY_S or not (alone or new):
            return
        self._said, self._told = now, waiting
        if alone:
            seconds = f"{now - self._present:.0f} s"
            self._say(f"no worker for {seconds}{': ' if waiting else ''}{waiting}")
        elif waiting:
            self._say(f"workers there: {len(self.workers)}; {waiting}")

    def _end_silent(self, now: float) -> None:
        """End workers that have sent no heartbeat for a while, so that others do their tasks."""
        silent = []
        # The more workers, the fewer heartbeats of each.
        limit = max(SILENT_S, _BEATS * (len(self.workers) / 200 + 1))
        for address, worker in self.workers.items():
            last, since = self._heard.get(address, (None, now))
            if last != worker["last_seen"]:
                self._heard[address] = (worker["last_seen"], now)
                self._quiet.discard(address)
            elif now - since > limit:
                silent.append(address)
            elif now - since > QUIET_S and address not in self._quiet:
                self._quiet.add(address)
                self._say(f"{_describe(worker)} has sent no heartbeat for {now - since:.0f} s")
        for address in set(self._heard) - set(self.workers):
            del self._heard[address]
        if silent:
            self._end(silent, limit)

    def _end(self, silent: Collection[str], limit: float) -> None:
        for address in silent:
            self._say(
                f"{_describe(self.workers[address])} has sent no heartbeat for {limit:.0f} s: it is ended, "
                "and its tasks are done elsewhere"
            )
        # Nannies kill their workers; where they do not answer the scheduler forgets these.
        answers = self._client.sync(
            self._client.scheduler.restart_workers,
            workers=list(silent), timeout=_KILL_S, wait_for_workers=False, on_error="return",
            stimulus_id=f"silent-{time.time()}",
        )  # fmt: skip
        for address in silent:
            if answers.get(address) != "OK":
                self._supply.end(str(self.workers[address]["name"]))
        self.workers = {
            address: worker for address, worker in self.workers.items() if address not in silent
        }


def _describe(worker: Mapping[str, Any]) -> str:
    return f"worker {worker['name']} on {worker['host']}"
