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

import errno
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from eigenscape.errors import OutputError, StoreError
from eigenscape.memory import ROW_TILE

FORMAT = 1
_CHUNK_BYTES = 8 * 2**20
_CHUNK_ROWS = 2**17
_MOST_CHUNKS = 512
_DISCARDED = ".discarded"


def chunk_rows(rows: int, row_bytes: float) -> int:
    """Return the rows of one chunk of a (sample, ...) array: 8 MiB or 2**17 rows, if 512 suffice.

    A multiple of `ROW_TILE` that depends on the array alone, never on the memory limit, so that a
    run can be resumed under another limit.
    """
    wanted = max(min(_CHUNK_BYTES / max(row_bytes, 1.0), _CHUNK_ROWS), rows / _MOST_CHUNKS)
    return max(1, round(wanted / ROW_TILE)) * ROW_TILE


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


class Workspace:
    """Where one stage works until it commits.

    Attributes
    ----------
    path
        Its directory; everything else in it is scratch that vanishes at the commit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for part in ("store", "files", "scratch"):
            (path / part).mkdir(parents=True, exist_ok=True)
        self._journal = path / "journal.jsonl"

    def create_array(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        whole: bool = False,
        **attributes: Any,
    ) -> str:
        """Create the zarr array `name` unless an earlier attempt did; return its path.

        Parameters
        ----------
        name
            Path in the store, for example ``"features/values"``.
        shape, dtype
            As in NumPy; the first axis is the one that is chunked.
        whole
            Store it as one uncompressed chunk, which `open_memmap` can map.
        attributes
            Attributes of the array; ``dims`` names its axes.
        """
        path = self.path / "store" / name
        if not (path / "zarr.json").exists():
            width = int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize
            rows = shape[0] if whole else chunk_rows(shape[0], width)
            chunks = (max(1, min(rows, shape[0])), *(max(1, size) for size in shape[1:]))
            dims = attributes.pop("dims", None)
            zarr.create_array(
                store=str(path),
                shape=tuple(shape),
                dtype=np.dtype(dtype),
                chunks=chunks,
                compressors=None,
                dimension_names=dims,
                attributes=attributes,
                fill_value=0,
                overwrite=True,
            )
        return str(path)

    def scratch(self, name: str) -> Path:
        """Return the path of a scratch file, its directory made."""
        path = self.path / "scratch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def file(self, name: str) -> Path:
        """Return the path of a file that the commit moves to ``outputs/``."""
        return self.path / "files" / name

    def finished_blocks(self) -> dict[str, Any]:
        """Return the results of the blocks that earlier attempts finished, by block name."""
        if not self._journal.exists():
            return {}
        blocks = {}
        for line in self._journal.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a killed process
            blocks[entry["block"]] = entry["result"]
        return blocks

    def finish_block(self, block: str, result: Any) -> None:
        """Note that a block is finished, so that no later attempt computes it again."""
        with self._journal.open("a", encoding="utf-8") as stream:
            # A line begun by a killed process is ended first, or this entry would be lost with it.
            stream.write("\n" if stream.tell() and not self._ends_line() else "")
            stream.write(json.dumps({"block": block, "result": result}) + "\n")

    def _ends_line(self) -> bool:
        with self._journal.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) == b"\n"

    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays made so far."""
        root = self.path / "store"
        return tuple(sorted(str(path.parent.relative_to(root)) for path in root.rglob("zarr.json")))

    def files(self) -> tuple[str, ...]:
        """Return the names of the output files made so far, not those that a killed writer began."""
        names = (path.name for path in (self.path / "files").iterdir())
        return tuple(sorted(name for name in names if not name.startswith(".")))


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
                path.mkdir(parents=True, exist_ok=True)
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
        with explain_write_errors(self.path):
            for other in self._workspaces(stage):
                if other.name != f"{stage}-{key}":
                    _discard(other)
            return Workspace(self.path / "work" / f"{stage}-{key}")

    def commit(self, stage: str, workspace: Workspace, record: Record) -> None:
        """Put the arrays and files of a workspace into place and enter its record."""
        with explain_write_errors(self.path):
            _sync_tree(workspace.path / "store")
            _sync_tree(workspace.path / "files")
            replaced = self.manifest["stages"].get(stage)
            entry = {"stage": stage, "replaces": replaced, **asdict(record)}
            write_json(workspace.path / "COMMIT", entry)
            self._finish_commit(workspace.path)

    def recover(self) -> None:
        """Finish the commits that a killed process began; call it under the lock."""
        with explain_write_errors(self.path):
            for discarded in (self.path / "work").glob(f"*{_DISCARDED}"):
                shutil.rmtree(discarded)
            for path in sorted((self.path / "work").glob("*/COMMIT")):
                self._finish_commit(path.parent)
            _remove_if_empty(self.path / "work")
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
            _move(path / "store" / name, self.array_path(name))
        for name in entry["files"]:
            _move(path / "files" / name, self.path / "outputs" / name)
        self.manifest["stages"][stage] = entry
        self.save_manifest()
        _discard(path)

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
        workspace = self.workspace(stage, key)
        try:
            for name in record.arrays:
                target = workspace.path / "store" / name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(other.array_path(name), target, copy_function=os.link)
        except OSError:
            _discard(workspace.path)  # no hard links here, or the other run was being replaced
            return False
        other.reload()
        if not other.is_finished(stage, key):
            _discard(workspace.path)
            return False
        self.commit(stage, workspace, record)
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
        path = self.path / "lock"
        with explain_write_errors(self.path):
            lock = filelock.FileLock(path)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                on_wait(
                    f"{self.path.name} is being worked on by {lock_holder(self.path)}; waiting for "
                    "it to end"
                )
                lock.acquire()
        try:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            path.write_text(f"process {os.getpid()} on {socket.gethostname()} since {now}\n")
            self.reload()
            self.recover()
            yield
        finally:
            lock.release()


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


def open_array(path: str | Path) -> Any:
    """Open a zarr array of a run or workspace for reading and for writing whole chunks."""
    # Typed as Any: zarr's own type says that any slice of an array may be a str or a scalar.
    return zarr.open_array(str(path), mode="r+")


def open_memmap(path: str | Path) -> NDArray[Any]:
    """Map an array that was created with ``whole=True``: shared by threads, workers and runs."""
    array = open_array(path)
    assert array.chunks == tuple(max(1, size) for size in array.shape), "only whole arrays map"
    files = [file for file in (Path(path) / "c").rglob("*") if file.is_file()]
    if not files:
        return np.zeros(array.shape, array.dtype)  # all fill value: zarr stores no chunk for it
    return np.memmap(files[0], dtype=array.dtype, mode="r", shape=array.shape)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is either the old one or the new one, whatever happens."""
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write below `path` into an `OutputError`."""
    try:
        yield
    except OSError as error:
        # NumPy's tofile says no more than "84976 requested and 82912 written".
        cut_short = error.errno is None and "requested and" in str(error)
        if cut_short or error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutputError(
                f"{path}: the disk is full. Finished blocks are kept: free some space or set "
                "output.directory to another disk, and give the same command again."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise OutputError(
                f"{path}: cannot be written ({error.strerror}). "
                "Set output.directory or --run-dir to a directory that you may write."
            ) from error
        raise


def _discard(workspace: Path) -> None:
    """Delete a workspace; one rename first, or a process killed midway would leave half of it."""
    discarded = workspace.with_name(workspace.name + _DISCARDED)
    workspace.rename(discarded)
    shutil.rmtree(discarded)
    _remove_if_empty(workspace.parent)


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _move(source: Path, target: Path) -> None:
    if not source.exists():
        assert target.exists(), f"{target} was neither built nor committed"
        return  # moved by the process that was killed
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def _sync_tree(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
