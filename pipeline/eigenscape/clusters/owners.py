"""Files that decide what runs as this user: nobody else may have written them."""

import os
import stat
from pathlib import Path

from eigenscape.errors import ClusterError


def check_own(path: Path, why: str, fix: str) -> None:
    """Refuse a file that another user than this one or root has written, or may write.

    Parameters
    ----------
    path
        The file.
    why
        What is done with it, as the end of a sentence.
    fix
        What to do instead, a sentence.

    Raises
    ------
    ClusterError
        It belongs to somebody else, or everybody may write it.
    FileNotFoundError
        There is none.
    """
    state = path.stat()
    if state.st_uid not in (0, os.geteuid()):
        fault = f"it belongs to the user {state.st_uid}"
    elif stat.S_IMODE(state.st_mode) & 0o002:
        fault = f"everybody may write it (chmod o-w {path.name})"
    else:
        return
    raise ClusterError(f"{path}: {fault}, and {why}. {fix}")
