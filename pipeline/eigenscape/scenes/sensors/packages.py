"""A product as it lies on the disk: a folder, a zip or a tar file, or files beside each other.

What an archive says of its members is checked before one is opened: names that leave the archive, links,
sizes that its bytes cannot hold, encryption. Nothing is unpacked: GDAL reads members through /vsizip/ and
/vsitar/.
"""

import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, Literal

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import is_address, is_contained
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import is_zarr, reading

MOST_MEMBERS = 20_000
"""Files of a product that are looked at; the largest, a Sentinel-2 SAFE, has some hundred."""

_DEEPEST = 8
_DEFLATED = 1032
"""Bytes that one byte of a deflated member can stand for at most (RFC 1951; zlib's own bound)."""

_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")

Kind = Literal["folder", "zip", "tar"]


@dataclass(frozen=True)
class Package:
    """Files of a product.

    Attributes
    ----------
    path
        The folder or the archive.
    kind
        What it is.
    names
        Its files, relative to it, with "/" between folders, sorted.
    """

    path: str
    kind: Kind
    names: tuple[str, ...]

    def match(self, pattern: str) -> list[str]:
        """Return the names whose last part matches a regular expression wholly, case aside."""
        wanted = re.compile(pattern, re.IGNORECASE)
        return [name for name in self.names if wanted.fullmatch(PurePosixPath(name).name)]

    def one(self, pattern: str, what: str) -> str:
        """Return the only such name.

        Raises
        ------
        SceneError
            There is none, or several.
        """
        found = self.match(pattern)
        if len(found) != 1:
            listed = f": {', '.join(found[:4])}" if found else ""
            raise SceneError(
                f"{self.path}: has {len(found) or 'no'} files that could be {what}{listed}. Give one product "
                "as it was downloaded: its folder, its zip file, or its metadata file."
            )
        return found[0]

    def metadata(self, pattern: str, sensor: str, give: str) -> str | None:
        """Return the only such name, None where there is none.

        Parameters
        ----------
        pattern
            As of `match`.
        sensor, give
            What errors call its products, and what to give of one.

        Raises
        ------
        SceneError
            There are several, so these are several products.
        """
        found = self.match(pattern)
        if len(found) > 1:
            raise SceneError(
                f"{self.path}: holds {len(found)} products of {sensor} ({found[0]} ...). Give the {give} of "
                "one."
            )
        return found[0] if found else None

    def address(self, name: str) -> str:
        """Return what GDAL opens for one of the names."""
        if self.kind == "folder":
            return os.path.join(self.path, *name.split("/"))
        # GDAL names members of "tar cf product.tar ." without the folder in which they were packed.
        return f"/vsi{self.kind}/{{{self.path}}}/{name.removeprefix('./')}"

    def files(self, *names: str) -> tuple[str, ...]:
        """Return the files on disk that hold some of the names."""
        if self.kind == "folder":
            return tuple(dict.fromkeys(self.address(name) for name in names))
        return (self.path,)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file.

        Raises
        ------
        SceneError
            It is longer than `most` bytes, or damaged.
        """
        if self.kind == "folder":
            check_exists(self.address(name))
        with reading(self.path), self._open(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise SceneError(
                f"{self.path}: {name} is longer than {most:,} bytes, which no metadata of a product are. "
                "Download the product again."
            )
        return content

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if self.kind == "folder":
            with open(self.address(name), "rb") as stream:
                yield stream
        elif self.kind == "zip":
            with zipfile.ZipFile(self.path) as archive, archive.open(name) as stream:
                yield stream
        else:
            with tarfile.open(self.path, "r:") as tar:
                member = tar.extractfile(name)
                assert member is not None, "members are files"
                yield member


def open_package(path: str) -> Package | None:
    """Return the files of a folder, a zip or a tar file; None for what is none of these.

    Raises
    ------
    SceneError
        The archive is damaged, compressed as a whole, or what it says of its members cannot be.
    """
    if is_contained(path) or is_address(path) or not os.path.exists(path):
        return None
    state = os.stat(path)
    if stat.S_ISREG(state.st_mode) and path.lower().endswith(_COMPRESSED):
        raise SceneError(
            f"{path}: a compressed tar file can only be read from its beginning to its end. Unpack it, and "
            "give the folder of one product, or the zip or tar file that was in it."
        )
    if stat.S_ISDIR(state.st_mode) and is_zarr(path):
        return None
    if not stat.S_ISDIR(state.st_mode) and not path.lower().endswith((".zip", ".tar")):
        return None
    if stat.S_ISDIR(state.st_mode):
        # Not kept: what comes into a folder below does not show in its time of change.
        return Package(path, "folder", tuple(sorted(_walk(path))))
    return _listed(path, state.st_mtime_ns, state.st_size)


def folder_of(path: str) -> Package:
    """Return the files that lie beside a file, itself included."""
    folder = os.path.dirname(os.path.abspath(path))
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if os.path.isfile(entry.path)]
    return Package(folder, "folder", tuple(sorted(names)))


@lru_cache(maxsize=16)
def _listed(path: str, modified: int, size: int) -> Package:
    """List the files; a changed archive is another entry."""
    with reading(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return Package(path, "zip", _checked(path, _zip_members(path, archive, size)))
        with tarfile.open(path, "r:") as tar:
            return Package(path, "tar", _checked(path, _tar_members(path, tar, size)))


def _walk(path: str) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(path):
        below = os.path.relpath(folder, path)
        parts = () if below == "." else tuple(below.split(os.sep))
        if len(parts) >= _DEEPEST:
            folders.clear()
        for name in files:
            count += 1
            if count > MOST_MEMBERS:
                # No product: whoever looks for one finds none.
                return
            yield "/".join((*parts, name))


def _zip_members(path: str, archive: zipfile.ZipFile, size: int) -> Iterator[str]:
    for member in archive.infolist():
        if member.is_dir():
            continue
        if stat.S_ISLNK(member.external_attr >> 16):
            raise _wrong(path, f"{member.filename!r} is a link")
        if member.flag_bits & 1:
            raise _wrong(path, f"{member.filename!r} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _wrong(path, f"{member.filename!r} is packed by a method other than deflate")
        packed = member.compress_size
        if packed > size or member.file_size > _DEFLATED * packed + 1024:
            raise _wrong(
                path,
                f"{member.filename!r} has {member.file_size:,} bytes in {packed:,} of the archive",
            )
        yield member.filename


def _tar_members(path: str, archive: tarfile.TarFile, size: int) -> Iterator[str]:
    for number, member in enumerate(archive):
        if number > MOST_MEMBERS:
            raise _wrong(path, f"it has more than {MOST_MEMBERS:,} files")
        if member.isdir():
            continue
        if not member.isreg():
            raise _wrong(path, f"{member.name!r} is a link or a device")
        if member.size > size:
            raise _wrong(path, f"{member.name!r} has {member.size:,} bytes, the archive {size:,}")
        yield member.name


def _checked(path: str, members: Iterator[str]) -> tuple[str, ...]:
    names: list[str] = []
    for name in members:
        parts = name.split("/")
        outside = name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name)
        if outside or not name or any(sign in name for sign in '\\\0{}\n\r"'):
            raise _wrong(path, f"{name[:200]!r} is not the name of a file within it")
        if len(names) >= MOST_MEMBERS:
            raise _wrong(path, f"it has more than {MOST_MEMBERS:,} files")
        names.append(name)
    if len(set(names)) < len(names):
        raise _wrong(path, "two of its files have one name")
    return tuple(sorted(names))


def _wrong(path: str, what: str) -> SceneError:
    return SceneError(
        f"{path}: the archive cannot be used: {what}. Download it again, or unpack it and give the folder."
    )
