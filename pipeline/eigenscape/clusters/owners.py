"""Files that decide what runs as this user: they are refused if they are not its own."""

import os
import stat
from pathlib import Path

from eigenscape.errors import ClusterError


def check_own(path: Path, why: str, fix: str) -> None:
    """Refuse a file that does not belong to this user or root, or that everybody can write to.

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
        It belongs to somebody else, or everybody can write to it.
    FileNotFoundError
        There is none.
    """
    state = path.stat()
    if state.st_uid not in (0, os.geteuid()):
        fault = f"it belongs to the user {state.st_uid}"
    elif stat.S_IMODE(state.st_mode) & 0o002:
        fault = f"everybody can write to it (chmod o-w {path.name})"
    else:
        return
    raise ClusterError(f"{path}: {fault}, and {why}. {fix}")
