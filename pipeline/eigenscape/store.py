"""The run directory: arrays, keys, atomic commit, resume, lock and manifest.

::

    runs/indian-pines-1f0c.../
        job.toml          the resolved job
        manifest.json     what is finished: one record per stage. The only truth about it.
        log.jsonl         what happened when
        lock              held by the process at work
        store.zarr/       committed arrays (zarr v3)
        work/             one directory per unfinished stage, gone when the stage commits
        outputs/          committed files

A stage builds its arrays and files under ``work/<stage>-<key>/``. To commit, the record is written
there as ``COMMIT``, every array and file is renamed into place, and last the record enters the
manifest, itself replaced by one rename. A process killed before ``COMMIT`` leaves work that only
the same stage with the same key takes up again; one killed after it is finished by the next.

Committed arrays are never written again, so runs side by side share them by hard links.
"""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import filelock

from eigenscape.arrays import open_array
from eigenscape.errors import OutputError, StoreError
from eigenscape.files import (
    DISCARDED,
    discard,
    explain_write_errors,
    move,
    remove_if_empty,
    sync_tree,
    write_json,
)
from eigenscape.memory import CHUNK_ROWS, MOST_CHUNK_ROWS
from eigenscape.workspace import Workspace

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """What the manifest says about one finished stage."""

    key: str
    seconds: float
    peak_bytes: int
    arrays: tuple[str, ...]
    files: tuple[str, ...]
    summary: dict[str, Any]
    finished: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S%z"))


class Run:
    """A run directory.

    Parameters
    ----------
    path
        The directory.
    create
        Make it if it is not there, and check that it can be written. Runs that are only read from
        are left as they are.

    Raises
    ------
    OutputError
        It cannot be made or written.
    StoreError
        It is there and is not a run directory of this format.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        if create:
            with explain_write_errors(path):
                try:
                    path.mkdir(parents=True, exist_ok=True)
                except FileNotFoundError as error:
                    # A directory whose parent cannot hold one, such as /proc.
                    raise OutputError(
                        f"{path}: cannot be made there ({error.strerror}: {error.filename}). "
                        "Set output.directory or --run-dir to a directory that you may write."
                    ) from error
                probe = path / f".probe.tmp-{os.getpid()}"
                probe.touch()
                probe.unlink()
        self.reload()

    def reload(self) -> None:
        """Read the manifest again: another process may have finished stages meanwhile."""
        self.manifest = read_manifest(self.path)

    def record(self, stage: str) -> Record | None:
        """Return the record of a finished stage."""
        entry = self.manifest["stages"].get(stage)
        if entry is None:
            return None
        return Record(**{**entry, "arrays": tuple(entry["arrays"]), "files": tuple(entry["files"])})

    def is_finished(self, stage: str, key: str) -> bool:
        """Whether `stage` is finished with this `key` and all that it wrote is still there."""
        record = self.record(stage)
        return (
            record is not None
            and record.key == key
            and all((self.array_path(name) / "zarr.json").exists() for name in record.arrays)
            and all((self.path / "outputs" / name).exists() for name in record.files)
        )

    def array_path(self, name: str) -> Path:
        """Return the directory of a committed array."""
        return self.path / "store.zarr" / name

    def open(self, name: str) -> Any:
        """Open a committed zarr array for reading."""
        return open_array(self.array_path(name))

    def workspace(self, stage: str, key: str) -> Workspace:
        """Return the workspace of a stage, with whatever an earlier attempt finished in it."""
        # Blocks that were begun with other chunks would end within one.
        name = f"{stage}-{key}" + ("" if CHUNK_ROWS == MOST_CHUNK_ROWS else f".{CHUNK_ROWS}")
        with explain_write_errors(self.path):
            for other in self._workspaces(stage):
                if other.name != name:
                    discard(other)
            return Workspace(self.path / "work" / name)

    def commit(self, stage: str, workspace: Workspace, record: Record) -> None:
        """Put the arrays and files of a workspace into place and enter its record."""
        with explain_write_errors(self.path):
            sync_tree(workspace.path / "store")
            sync_tree(workspace.path / "files")
            replaced = self.manifest["stages"].get(stage)
            entry = {"stage": stage, "replaces": replaced, **asdict(record)}
            write_json(workspace.path / "COMMIT", entry)
            self._finish_commit(workspace.path)

    def recover(self) -> None:
        """Finish the commits that a killed process began; call it under the lock."""
        with explain_write_errors(self.path):
            for discarded in (self.path / "work").glob(f"*{DISCARDED}"):
                shutil.rmtree(discarded)
            for path in sorted((self.path / "work").glob("*/COMMIT")):
                self._finish_commit(path.parent)
            remove_if_empty(self.path / "work")
            for depth in ("", "store.zarr/", "store.zarr/*/", "store.zarr/*/*/"):
                for leftover in self.path.glob(f"{depth}.*.tmp-*"):
                    leftover.unlink()

    def tidy(self) -> None:
        """Remove what is left of workspaces, once every stage is finished."""
        shutil.rmtree(self.path / "work", ignore_errors=True)

    def _finish_commit(self, path: Path) -> None:
        entry = json.loads((path / "COMMIT").read_text(encoding="utf-8"))
        stage, replaced = entry.pop("stage"), entry.pop("replaces")
        if replaced is not None:
            # From here on the old result is not whole any more, so it must not look finished.
            if self.manifest["stages"].pop(stage, None) is not None:
                self.save_manifest()
            self._remove(replaced, keep=entry)
        self._make_groups(entry["arrays"])
        for name in entry["arrays"]:
            move(path / "store" / name, self.array_path(name))
        for name in entry["files"]:
            move(path / "files" / name, self.path / "outputs" / name)
        self.manifest["stages"][stage] = entry
        self.save_manifest()
        discard(path)

    def _remove(self, previous: dict[str, Any], keep: dict[str, Any]) -> None:
        for name in set(previous["arrays"]) - set(keep["arrays"]):
            shutil.rmtree(self.array_path(name), ignore_errors=True)
        for name in set(previous["files"]) - set(keep["files"]):
            (self.path / "outputs" / name).unlink(missing_ok=True)

    def _make_groups(self, arrays: Sequence[str]) -> None:
        root = self.path / "store.zarr"
        groups = {"", *(str(parent) for name in arrays for parent in Path(name).parents)} - {"."}
        for name in sorted(groups):
            path = root / name
            if not (path / "zarr.json").exists():
                path.mkdir(parents=True, exist_ok=True)
                write_json(
                    path / "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}}
                )

    def link_from(self, other: "Run", stage: str, key: str) -> bool:
        """Take a finished stage over from a run beside this one; return whether that worked.

        Arrays are shared by hard links: they are never written after their commit, so neither run
        can spoil the other, and each can be deleted on its own.
        """
        record = other.record(stage)
        if record is None or record.files or not other.is_finished(stage, key):
            return False
        with explain_write_errors(self.path):
            replaced = self.manifest["stages"].pop(stage, None)
            if replaced is not None:
                self.save_manifest()
                self._remove(replaced, keep={"arrays": (), "files": ()})
        try:
            for name in record.arrays:
                _link_array(other.array_path(name), self.array_path(name))
        except OSError:
            return False  # no hard links here, or the other run was being replaced
        other.reload()
        if not other.is_finished(stage, key):
            return False
        with explain_write_errors(self.path):
            self._make_groups(record.arrays)
            self.manifest["stages"][stage] = asdict(record)
            self.save_manifest()
        return True

    def save_manifest(self) -> None:
        """Replace the manifest by one rename."""
        write_json(self.path / "manifest.json", self.manifest)

    def _workspaces(self, stage: str) -> list[Path]:
        work = self.path / "work"
        return [path for path in work.glob(f"{stage}-*") if path.is_dir()]

    @contextmanager
    def lock(self, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Hold the run; the system releases the lock if the process dies.

        Parameters
        ----------
        on_wait
            Called once with a sentence that says who holds the run, before waiting for it.
        """
        with hold(self.path, on_wait):
            self.reload()
            self.recover()
            yield


@contextmanager
def hold(directory: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a directory; see `Run.lock`."""
    path = directory / "lock"
    with explain_write_errors(directory):
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_wait(
                f"{directory.name} is being worked on by {lock_holder(directory)}; waiting for "
                "it to end"
            )
            lock.acquire()
    try:
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {now}\n")
        yield
    finally:
        lock.release()


def _link_array(source: Path, target: Path) -> None:
    """Share an array by hard links; its metadata last, for with them it looks whole."""
    shutil.rmtree(target, ignore_errors=True)
    metadata = shutil.ignore_patterns("zarr.json")
    shutil.copytree(source, target, copy_function=os.link, ignore=metadata)
    os.link(source / "zarr.json", target / "zarr.json")


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run directory, an empty one where there is none.

    Raises
    ------
    StoreError
        The directory has a manifest that is damaged or of another format.
    """
    file = path / "manifest.json"
    try:
        manifest: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": FORMAT, "stages": {}}
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{file} is damaged ({error}). Delete the run directory {path} and run the job again."
        ) from None
    known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    if not known or not isinstance(manifest.get("stages"), dict):
        raise StoreError(
            f"{file} was not written by this version (format {FORMAT}). Give another --run-dir."
        )
    return dict(manifest)


def lock_holder(path: Path) -> str | None:
    """Return who holds a run directory now, in words, or None."""
    file = path / "lock"
    if not file.exists():
        return None
    try:
        with filelock.FileLock(file, timeout=0):
            return None
    except filelock.Timeout:
        return file.read_text(encoding="utf-8").strip() or "another process"
