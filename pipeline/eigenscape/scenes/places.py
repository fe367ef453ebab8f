"""Whether what a job names is there and can be read: a file or a directory, not what a reader waits on."""

import glob
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from eigenscape.errors import SceneError
from eigenscape.scenes.arrays import is_zarr

_CONTAINED = re.compile(r'[A-Za-z0-9_]+:"')
"""How GDAL names a raster within a file, which was looked at before."""

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
    if not is_local(path):
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
    for source in vrt_sources(path):
        _check_kind(source)


def is_local(path: str) -> bool:
    """Return whether a path is one of this machine, not an address or a file within another."""
    return "://" not in path and not path.startswith("/vsi") and not _CONTAINED.match(path)


def vrt_sources(path: str) -> list[str]:
    """Return the local files that a VRT names, and those that VRTs among them name; of others none."""
    return list(_sources(path, {path}))


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


def _sources(path: str, seen: set[str]) -> Iterator[str]:
    if not path.lower().endswith(".vrt") or not os.path.isfile(path):
        return
    try:
        elements = list(ElementTree.parse(path).getroot().iter("SourceFilename"))
    except (ElementTree.ParseError, ValueError, LookupError):
        # GDAL says what is wrong with it.
        return
    for element in elements:
        relative = element.get("relativeToVRT", "0") == "1"
        name = (element.text or "").strip()
        source = os.path.join(os.path.dirname(path), name) if relative else name
        if source in seen or "\0" in source or not is_local(source) or not os.path.lexists(source):
            continue
        seen.add(source)
        yield source
        yield from _sources(source, seen)
