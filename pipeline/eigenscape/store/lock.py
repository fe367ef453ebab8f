"""The lock of a directory: held by the process that works in it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import filelock

from eigenscape.base.files.held import is_held
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.errors import OutputError


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
        with suppress(FileNotFoundError), _opened(path) as opened:
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                if (holder := lock_holder(directory)) is None:
                    continue  # another process only asked who holds it
                on_wait(f"{directory.name} is being worked on by {holder}; waiting for it to end")
                lock.acquire()
            # The process that held the lock may have deleted the directory: then it is that of a file
            # without a name, and another process may hold one of the same name.
            if os.path.samestat(os.fstat(opened.fileno()), path.stat()):
                return lock
        lock.release()


def _opened(path: Path) -> TextIO:
    """Open a lock file, which is made if necessary."""
    try:
        return path.open("a")
    except PermissionError as error:
        if not path.exists():
            raise
        holder = lock_holder(path.parent)
        works = "no process works" if holder is None else f"{holder} works"
        raise OutputError(
            f"{path.parent}: belongs to another user, whose lock cannot be written ({error.strerror}); "
            f"{works} in it. Set output.directory or --run-dir to a directory of your own."
        ) from None


def lock_holder(path: Path) -> str | None:
    """Return who holds a run directory now, in words, or None.

    Raises
    ------
    StoreError
        The lock cannot be read.
    """
    file = path / "lock"
    if not is_held(file):
        return None
    with suppress(FileNotFoundError):  # the holder may have deleted the directory since
        return file.read_text(encoding="utf-8").strip() or "another process"
    return "another process"
