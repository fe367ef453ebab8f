"""The lock of a directory: held by the process that works in it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from eigenscape.base.files.whole import explain_write_errors


@contextmanager
def hold(directory: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a directory, which is made again if it was deleted; see `Run.lock`."""
    with explain_write_errors(directory):
        lock = _acquired(directory, on_wait)
    try:
        with explain_write_errors(directory):
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            text = f"process {os.getpid()} on {socket.gethostname()} since {now}\n"
            (directory / "lock").write_text(text, encoding="utf-8")
        yield
    finally:
        lock.release()


def _acquired(directory: Path, on_wait: Callable[[str], None]) -> filelock.BaseFileLock:
    """Return the acquired lock of a directory that is there."""
    path = directory / "lock"
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        with suppress(FileNotFoundError), path.open("a") as opened:
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                on_wait(
                    f"{directory.name} is being worked on by {lock_holder(directory)}; waiting for "
                    "it to end"
                )
                lock.acquire()
            # The process that held the lock may have deleted the directory: then it is that of a file
            # without a name, and another process may hold one of the same name.
            if os.path.samestat(os.fstat(opened.fileno()), path.stat()):
                return lock
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
        with suppress(FileNotFoundError):  # the holder may have deleted the directory since
            return file.read_text(encoding="utf-8").strip() or "another process"
        return "another process"
