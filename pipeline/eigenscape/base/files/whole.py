"""Changes of files that are whole or did not happen, and what to say when the disk refuses them."""

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eigenscape.base.files import ledger
from eigenscape.base.process.namedpoints import reached
from eigenscape.errors import OutputError

DISCARDED = ".discarded"
"""Ending of directories that are being deleted."""


@contextmanager
def written_whole(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yield a name beside `path` to write to, which takes its place unless the block fails.

    A kill leaves the old file or none, not half of one. Power that fails may: see `sync_tree`.

    Parameters
    ----------
    path
        The file.
    temporary
        The name beside it; by default one of its own.
    """
    temporary = temporary or path.with_name(f".{path.stem}.tmp-{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        reached("file written", path)
        with ledger.replacing(path, temporary):
            temporary.replace(path)
            reached("file in place", path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is either the old one or the new one, whatever happens."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write below `path` into an `OutputError`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            full = f"{path}: the disk is full."
            raise OutputError(
                f"{full} Finished blocks are kept: free some space or set output.directory to another "
                "disk, and give the same command again.",
                f"{full} Free some space or set directory to another disk, and fit again.",
            ) from error
        if error.errno == errno.EFBIG:
            large = f"{path}: a file would be larger than this process or the file system allows."
            fix = "raise the limit (`ulimit -f` prints it) or set"
            raise OutputError(
                f"{large} Finished blocks are kept: {fix} output.directory to another file system, and give "
                "the same command again.",
                f"{large} {fix.capitalize()} directory to another file system, and fit again.",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise OutputError(
                f"{path}: cannot be written ({error.strerror}). "
                "Set output.directory or --run-dir to a directory that you may write."
            ) from error
        raise


def remove(*paths: str | Path) -> None:
    """Delete files of a workspace that later steps make anew, or nobody reads any more."""
    ledger.removing(paths)
    for path in paths:
        reached("file goes", path)
        Path(path).unlink(missing_ok=True)


def discard(workspace: Path) -> None:
    """Delete a workspace; one rename first, or a process killed midway would leave half of it."""
    discarded = workspace.with_name(f"{workspace.name}.{secrets.token_hex(4)}{DISCARDED}")
    workspace.rename(discarded)
    reached("workspace discarded", workspace)
    # On NFS, a file that is still open somewhere keeps its directory: `recover` deletes it later.
    shutil.rmtree(discarded, ignore_errors=True)
    remove_if_empty(workspace.parent)


def remove_if_empty(directory: Path) -> None:
    """Remove a directory that holds nothing any more."""
    with suppress(OSError):
        directory.rmdir()


@contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """Yield a directory beside `path` to fill, which takes its place unless the block fails.

    A kill leaves a directory with another name, or none at all: never half of one under its own.
    """
    temporary = path.with_name(f".{path.stem}.tmp-{secrets.token_hex(4)}{path.suffix}")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            remove_output(path)
        temporary.rename(path)
        reached("file in place", path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_output(path: Path) -> None:
    """Delete a file or a directory of ``outputs/``, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move(source: Path, target: Path) -> None:
    """Rename a file or directory over another, unless a process that was killed has done it."""
    if not source.exists():
        return
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    reached("part moved", target)


def sync_tree(root: Path) -> None:
    """Bring every file below a directory to the disk."""
    for path in root.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
