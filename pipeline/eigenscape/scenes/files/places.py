"""Checks that a path of a job exists and can be read: a file or directory, no pipe or device."""

import glob
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import check_address, check_sources, is_address, is_contained
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_exists(path: str) -> None:
    """Refuse a local path that does not exist, is no file or directory, cannot be read or is empty.

    What a reader would open beside it is looked at too: files of the same stem, those in a zarr store,
    and the sources of a VRT.

    Raises
    ------
    SceneError
        With what is wrong and what to do.
    """
    if is_contained(path):
        return
    if is_address(path):
        check_address(path)
        return
    if not os.path.lexists(path):
        raise SceneError(f"{path}: no such file. Relative paths are relative to the job file.")
    try:
        os.stat(path)
    except OSError as error:
        raise SceneError(
            f"{path}: cannot be opened ({error.strerror}). Correct the path, or the symbolic link that "
            "it is."
        ) from None
    _check_kind(path)
    if not os.access(path, os.R_OK):
        raise SceneError(f"{path}: cannot be read: permission denied. Give yourself read access.")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise SceneError(f"{path}: the file is empty (0 bytes). Copy or download it again.")
    for other in _beside(path):
        _check_kind(other)
    check_sources(path)


def _check_kind(path: str) -> None:
    """Refuse what is neither a file nor a directory; what is not there is left to the reader."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    kind = next((name for holds, name in _KINDS if holds(mode)), None)
    if kind is not None:
        raise SceneError(
            f"{path}: is {kind}, which cannot be read in parts. Give a file, or write what comes from "
            "it to one first."
        )


def _beside(path: str) -> Iterator[str]:
    """Yield what readers look for beside a file, or all of a zarr store."""
    if os.path.isdir(path):
        if is_zarr(path):
            yield from map(str, Path(path).rglob("*"))
        return
    yield from glob.iglob(f"{glob.escape(os.path.splitext(path)[0])}.*")
