"""Temporary directories, all of a process in one that it holds a lock on.

A killed process cannot delete what it made; its lock ends with it, however it ends and in
whatever container it ran. So any process that finds a directory without a holder may sweep it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

SHARED = Path("/dev/shm")
_PREFIX = "eigenscape-"
_LOCK = "lock"

_homes: dict[tuple[int, Path], Path] = {}
"""By process and place: a fork has a home of its own."""
_making = threading.Lock()


def temporary_place(parent: Path | None = None) -> Path:
    """Return this process's own directory for temporary files; delete those of processes that are no more.

    Parameters
    ----------
    parent
        Where it lies: the system's place for temporary files by default.
    """
    system = Path(tempfile.gettempdir())
    for place in {parent or system, system, SHARED}:
        sweep(place)
    with _making:
        return _home(parent or system)


def sweep(place: Path) -> None:
    """Delete the directories of processes that are no more, of this user and below `place`."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                _sweep_home(Path(entry.path))


def _sweep_home(path: Path) -> None:
    # Without a lock it is no home, or one that is being made. What cannot be opened is another's.
    with suppress(OSError):
        if path.lstat().st_uid != os.getuid():
            return
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)


def _home(place: Path) -> Path:
    """Return this process's directory below `place`, made and locked when it is wanted first."""
    key = (os.getpid(), place)
    while key not in _homes or not (_homes[key] / _LOCK).exists():
        home = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        # Held open, and so locked, for as long as the process is there.
        lock = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(OSError):  # a file system without locks: nobody sweeps it
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have swept it between the two calls: then once more.
        if (home / _LOCK).exists():
            _homes[key] = home
            atexit.register(remove_own, home, os.getpid())
        else:
            os.close(lock)
    return _homes[key]


def remove_own(path: Path, owner: int) -> None:
    """Delete a directory in the process that made it: a fork of it ends by the same functions."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
