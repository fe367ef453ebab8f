"""Whether a process holds the lock of a file, which may belong to another user."""

import errno
import fcntl
from pathlib import Path

from eigenscape.errors import StoreError

_HELD = (errno.EAGAIN, errno.EACCES)
"""What systems answer where another process holds a lock."""


def is_held(file: Path) -> bool:
    """Return whether a process holds the lock of a file; nobody holds that of a missing one.

    Permission to read the file is enough.

    Raises
    ------
    StoreError
        The file cannot be read, or its file system has no locks.
    """
    try:
        stream = file.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(
            f"{file}: cannot be read ({error.strerror}), so that it is unknown whether a process works "
            "in the directory. Ask its owner for permission to read it."
        ) from None
    with stream:
        try:
            # Shared: NFS gives that to readers, and two processes that ask do not meet each other.
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return True
            raise StoreError(
                f"{file}: cannot be locked ({error.strerror}), so that it is unknown whether a process works "
                "in the directory. Use a file system with locks (flock)."
            ) from None
    return False
