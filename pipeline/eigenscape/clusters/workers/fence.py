"""Protection against late writes by a worker whose tasks were given to others.

A driver gives up a worker that it has not heard of for a while; others then do its tasks, and later
steps write new files under old names. The worker may only have been stopped (SIGSTOP, ``scontrol
suspend``, a machine that sleeps), and would go on where it was. So while it has a task

* an alarm is set that is put off every second: a process that was stopped for longer than the driver
  waits is ended by the system before it takes another step;
* a worker that has lost its scheduler, or was sent away by it, ends at once.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LEASE_S = 35.0
"""A process is ended when it stood for so long: less than `eigenscape.clusters.workers.watch.SILENT_S`."""

_RENEW_S = 1.0

_lock = threading.Lock()
_under_way: Counter[tuple[str, str]] = Counter()
_alarmed: dict[tuple[str, str], bool] = {}
_renewing: threading.Thread | None = None


@contextmanager
def fenced(directory: str | None, call: str, *, alarm: bool = True) -> Iterator[None]:
    """Do a task within: with an alarm set, and counted by `under_way`.

    Parameters
    ----------
    directory
        Where the task works.
    call
        Tells the tasks of one call of `eigenscape.clusters.workers.dask.Workers.run` from others.
    alarm
        Whether this process may be ended. Not where the driver is in it: then both stand still together.
    """
    global _renewing
    entry = (directory or "", call)
    with _lock:
        _under_way[entry] += 1
        _alarmed[entry] = alarm
        if alarm:
            _put_off()
        if alarm and _renewing is None:
            _renewing = threading.Thread(target=_renew, args=(_own_worker(),), daemon=True)
            _renewing.start()
    try:
        yield
    finally:
        with _lock:
            _under_way[entry] -= 1
            if not _under_way[entry]:
                del _under_way[entry], _alarmed[entry]
            if alarm:
                _put_off()


def under_way(directory: str | None = None, call: str | None = None) -> int:
    """Return how many tasks this process works on below a directory, or of one call."""
    with _lock:
        return sum(
            count
            for (where, which), count in _under_way.items()
            if (call is None or which == call)
            and (directory is None or _overlap(Path(where), Path(directory)))
        )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _put_off() -> None:
    """Set the alarm anew, or take it away when there is no task. Nothing here handles SIGALRM."""
    if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
        signal.setitimer(signal.ITIMER_REAL, LEASE_S if any(_alarmed.values()) else 0.0)


def _renew(worker: Any) -> None:
    global _renewing
    while True:
        time.sleep(_RENEW_S)
        with _lock:
            if not any(_alarmed.values()):
                _renewing = None
                return
            _put_off()
            if worker is not None and worker.status.name in ("closing", "closed", "failed"):
                # Its threads would work on for half a minute.
                os._exit(1)


def _own_worker() -> Any:
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None  # the task was called by hand
