"""Checks that a path of a job exists and can be read: a file or directory, no pipe or device."""

import glob
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.files.outside import check_address, check_sources, is_address, is_contained
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


_MOST_NAMED = 5
"""Members of an archive in a message."""


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
        raise SceneError(
            f"{path}: no such file.{told_missing(path)} Relative paths are relative to the job file."
        )
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


def told_missing(path: str, further: Iterable[str] = ()) -> str:
    """Return how much of a missing local path exists, and a likely name there, as sentences after others.

    Parameters
    ----------
    path
        An absolute path.
    further
        Other names that may be meant, if only the last part is missing.
    """
    missing = Path(path)
    while not _exists(missing.parent):
        missing = missing.parent
    folder = missing.parent
    if not os.path.isdir(folder):
        return f" {folder} is a file, no folder."
    try:
        names = os.listdir(folder)
    except OSError as error:
        return f" The folder {folder} cannot be listed ({error.strerror})."
    alone = str(missing) == path
    question = did_you_mean(missing.name, [*(further if alone else ()), *names], cutoff=0.5)
    return f" The folder {folder} exists, {missing.name} in it does not.{question}"


def _exists(path: Path) -> bool:
    # A name that is too long raises: `os.path.exists` would take it for one that is missing.
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def told_packed(path: str) -> str | None:
    """Return that a file is packed and how a raster in it is read; None of others."""
    with open(path, "rb") as stream:
        start = stream.read(265)
    if start.startswith(b"\x1f\x8b") and not path.endswith((".tar.gz", ".tgz")):
        return (
            f"is compressed by gzip. Unpack it (gunzip FILE), or give a raster as /vsigzip/{path}"
        )
    if start.startswith(b"PK\x03\x04"):
        with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")][:_MOST_NAMED]
            inside = f"; it holds {', '.join(members)}" if members else ""
            member = members[0] if members else "MEMBER"
            return (
                f"is a zip archive and no known product{inside}. Unpack it (unzip FILE), or give a raster "
                f"in it as /vsizip/{path}/{member}"
            )
    if start[257:262] == b"ustar" or path.endswith((".tar.gz", ".tgz")):
        return (
            "is a tar archive and no known product. Unpack it (tar xf FILE), or give a raster in it as "
            f"/vsitar/{path}/MEMBER"
        )
    return None


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
