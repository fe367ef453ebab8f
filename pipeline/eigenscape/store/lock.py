"""The lock of a directory: held by the process that works in it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from eigenscape.base.files.whole import explain_write_errors


@contextmanager
def hold(directory: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a directory; see `Run.lock`."""
    path = directory / "lock"
    with explain_write_errors(directory):
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_wait(
                f"{directory.name} is being worked on by {lock_holder(directory)}; waiting for "
                "it to end"
            )
            lock.acquire()
    try:
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {now}\n")
        yield
    finally:
        lock.release()


def lock_holder(path: Path) -> str | None:
    """Return who holds a run directory now, in words, or None."""
    file = path / "lock"
    if not file.exists():
        return None
    try:
        with filelock.FileLock(file, timeout=0):
            return None
    except filelock.Timeout:
        return file.read_text(encoding="utf-8").strip() or "another process"
