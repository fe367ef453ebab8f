"""The run directory: arrays, keys, atomic commit, resume, lock and manifest.

::

    runs/indian-pines-1f0c.../
        job.toml          the resolved job
        manifest.json     one record for each finished stage; only these stages count as finished
        log.jsonl         log of the run
        lock              held by the process at work
        store.zarr/       committed arrays (zarr v3)
        work/             one directory per unfinished stage, gone when the stage commits
        outputs/          committed files

A stage builds its arrays and files under ``work/<stage>-<key>/``. To commit, the record is written
there as ``COMMIT``, every array and file is renamed into place, and last the record enters the
manifest, itself replaced by one rename. A process killed before ``COMMIT`` leaves work that only
the same stage with the same key takes up again; one killed after it is finished by the next.

Committed arrays are never written again, so runs side by side share them by hard links.

The record holds a checksum of every file, and a run begins with reading what it finds finished: a stage
with a damaged file is computed again. What unfinished stages leave: `eigenscape.store.journal`.
"""

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base import html
from eigenscape.base.files.sums import file_sum
from eigenscape.base.files.whole import (
    DISCARDED,
    discard,
    explain_write_errors,
    move,
    remove_if_empty,
    remove_output,
    sync_tree,
)
from eigenscape.base.memory import CHUNK_ROWS, MOST_CHUNK_ROWS, format_bytes
from eigenscape.base.shares import listed
from eigenscape.errors import OutputError
from eigenscape.store.arrays import open_array
from eigenscape.store.integrity import find_damage
from eigenscape.store.lock import hold
from eigenscape.store.manifest import (
    Record,
    read_commit,
    read_manifest,
    write_commit,
    write_manifest,
)
from eigenscape.store.tree import link_array, make_groups, remove_others
from eigenscape.store.workspace import Workspace


class Run:
    """A run directory.

    Parameters
    ----------
    path
        The directory.
    create
        Create the directory if it does not exist, and check that it is writable. Not for runs that are only
        read.
    checksums
        Whether records hold checksums of all files. Without them, no other process can resume a stage or take
        it over.

    Raises
    ------
    OutputError
        The directory cannot be created or written.
    StoreError
        The directory exists but is not a run directory of this format.
    """

    def __init__(self, path: Path, *, create: bool = True, checksums: bool = True) -> None:
        self.path, self.checksums = path, checksums
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
                # A random name: processes of several machines may have one number. Another process may
                # take the file for a leftover and delete it.
                probe = path / f".probe.tmp-{secrets.token_hex(4)}"
                probe.touch()
                probe.unlink(missing_ok=True)
        self.reload()

    def _repr_html_(self) -> str:
        records = [(name, self.record(name)) for name in self.manifest["stages"]]
        rows = [
            (name, f"{found.seconds:.1f} s", format_bytes(found.peak_bytes), found.finished)
            for name, found in records
            if found is not None
        ]
        left = [
            name for name in self.manifest.get("order", ()) if name not in self.manifest["stages"]
        ]
        about = {
            "directory": html.link(self.path, str(self.path)),
            "eigenscape": self.manifest.get("eigenscape"),
            "to do": ", ".join(left),
        }
        heads = ("stage", "time", "peak", "finished")
        name = self.manifest.get("name", self.path.name)
        return html.card("Run", name, html.facts(about), html.table(heads, rows))

    def reload(self) -> None:
        """Read the manifest again: another process may have finished stages meanwhile."""
        self.manifest = read_manifest(self.path)

    def record(self, stage: str) -> Record | None:
        """Return the record of a finished stage."""
        entry = self.manifest["stages"].get(stage)
        if entry is None:
            return None
        return Record.from_json(entry)

    def is_finished(self, stage: str, key: str) -> bool:
        """Return whether `stage` is finished with this `key` and all its arrays and files exist.

        The contents of the files are not checked: see `damage`.
        """
        record = self.record(stage)
        return (
            record is not None
            and record.key == key
            and all(self.has(name) for name in record.arrays)
            and all((self.path / "outputs" / name).exists() for name in record.files)
        )

    def damage(self, stage: str) -> list[str]:
        """Check all files of a finished stage; return a text for each damaged file."""
        record = self.record(stage)
        return [] if record is None else find_damage(self.path, record)

    def mend(self, keys: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Delete the damaged finished stages, so that they are computed again.

        Parameters
        ----------
        keys
            Keys of the stages of the job; records with other keys are not checked.
        tell
            Called with a sentence for each stage that is damaged.
        """
        for stage, key in keys.items():
            record = self.record(stage)
            if record is None or record.key != key:
                continue
            if damage := self.damage(stage):
                damaged = listed((str(self.path / name) for name in damage), 1)
                tell(f"{damaged}. The stage {stage} is computed again.")
                self._forget(stage)
        make_groups(self.path / "store.zarr", self._arrays())

    def _forget(self, stage: str) -> None:
        with explain_write_errors(self.path):
            replaced = self.manifest["stages"].pop(stage, None)
            if replaced is not None:
                self.save_manifest()
                self._remove(replaced, keep={"arrays": (), "files": ()})

    def array_path(self, name: str) -> Path:
        """Return the directory of a committed array."""
        return self.path / "store.zarr" / name

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return (self.array_path(name) / "zarr.json").exists()

    def open(self, name: str) -> Any:
        """Open a committed zarr array for reading."""
        return open_array(self.array_path(name))

    def read(self, name: str) -> NDArray[Any] | None:
        """Return a whole array, None if there is none of this name."""
        return np.asarray(self.open(name)[...]) if self.has(name) else None

    def workspace(
        self, stage: str, key: str, tell: Callable[[str], None] = lambda _: None
    ) -> Workspace:
        """Return the workspace of a stage, with the blocks that an earlier attempt finished.

        The workspace is checked first. If it is damaged, `tell` is called with a message, and the workspace
        is emptied.
        """
        # Blocks that were begun with other chunks would end within one.
        name = f"{stage}-{key}" + ("" if CHUNK_ROWS == MOST_CHUNK_ROWS else f".{CHUNK_ROWS}")
        path = self.path / "work" / name
        with explain_write_errors(self.path):
            for other in self._workspaces(stage):
                if other.name != name:
                    discard(other)
            if not path.exists():
                return Workspace(path)
            workspace = Workspace(path)
            if damage := workspace.journal.damage():
                tell(
                    f"{path / damage[0]} is damaged: what an earlier attempt at the stage {stage} has "
                    "finished is computed again."
                )
                discard(path)
                workspace = Workspace(path)
            workspace.journal.tidy()
            return workspace

    def commit(self, stage: str, workspace: Workspace, record: Record) -> None:
        """Put the arrays and files of a workspace into place and enter its record.

        Parameters
        ----------
        stage, workspace, record
            The finished stage, its workspace and its record.
        """
        with explain_write_errors(self.path):
            sync_tree(workspace.path / "store")
            sync_tree(workspace.path / "files")
            replaced = self.manifest["stages"].get(stage)
            if self.checksums:
                record = replace(record, sums=workspace.sums())
            entry = {"stage": stage, "replaces": replaced, **asdict(record)}
            write_commit(workspace.path / "COMMIT", entry)
            self._finish_commit(workspace.path, entry)

    def recover(self, tell: Callable[[str], None] = lambda _: None) -> None:
        """Finish the commits that a killed process began; call it under the lock.

        Parameters
        ----------
        tell
            Called with a sentence for each commit that is damaged, and so did not happen.
        """
        with explain_write_errors(self.path):
            for discarded in (self.path / "work").glob(f"*{DISCARDED}"):
                # On NFS, a file that is still open somewhere keeps its directory.
                shutil.rmtree(discarded, ignore_errors=True)
            for path in sorted((self.path / "work").glob("*/COMMIT")):
                entry = read_commit(path)
                if entry is None:
                    tell(f"{path} is damaged: its stage is computed again.")
                    discard(path.parent)
                else:
                    self._finish_commit(path.parent, entry)
            remove_others(self.path / "store.zarr", self._arrays())
            remove_if_empty(self.path / "work")
            for depth in ("", "store.zarr/", "store.zarr/*/", "store.zarr/*/*/"):
                for leftover in self.path.glob(f"{depth}.*.tmp-*"):
                    leftover.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove the rest of workspaces, once every stage is finished."""
        shutil.rmtree(self.path / "work", ignore_errors=True)

    def _finish_commit(self, path: Path, entry: dict[str, Any]) -> None:
        stage, replaced = entry.pop("stage"), entry.pop("replaces")
        if replaced is not None:
            # From here on the old result is not whole any more, so it must not look finished.
            if self.manifest["stages"].pop(stage, None) is not None:
                self.save_manifest()
            self._remove(replaced, keep=entry)
        make_groups(self.path / "store.zarr", entry["arrays"])
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
            remove_output(self.path / "outputs" / name)

    def link_from(self, other: "Run", stage: str, key: str) -> bool:
        """Take a finished stage over from another run; return whether that was possible.

        Arrays are shared by hard links: they are never written after their commit, so neither run
        can spoil the other, and each can be deleted on its own.
        """
        record = other.record(stage)
        if record is None or record.files or not other.is_finished(stage, key):
            return False
        if other.damage(stage):
            return False  # the links would share it
        self._forget(stage)
        try:
            for name in record.arrays:
                link_array(other.array_path(name), self.array_path(name))
        except OSError:
            return False  # no hard links here, or the other run was being replaced
        other.reload()
        if not other.is_finished(stage, key):
            return False
        with explain_write_errors(self.path):
            make_groups(self.path / "store.zarr", record.arrays)
            self.manifest["stages"][stage] = asdict(record)
            self.save_manifest()
        return True

    @contextmanager
    def replacing(self, stage: str, name: str) -> Iterator[Path]:
        """Replace an output file of a finished stage, as a context manager; call it under the lock.

        Parameters
        ----------
        stage
            The stage.
        name
            Name of the file in ``outputs/``; it may be new.

        Yields
        ------
        Path
            Path to which the caller must write the complete file.
        """
        path, listed = self.path / "outputs" / name, f"outputs/{name}"
        with explain_write_errors(self.path):
            entry = self.manifest["stages"][stage]
            # Nothing vouches for the file while it is replaced: a kill between the two files is no damage.
            if entry["sums"].pop(listed, None) is not None:
                self.save_manifest()
            path.parent.mkdir(exist_ok=True)
            yield path
            entry["files"] = sorted({*entry["files"], name})
            entry["sums"][listed] = file_sum(path)
            self.save_manifest()

    def save_manifest(self) -> None:
        """Replace the manifest by one rename."""
        with explain_write_errors(self.path):
            write_manifest(self.path, self.manifest)

    def _arrays(self) -> set[str]:
        """Return the names of all committed arrays."""
        return {name for entry in self.manifest["stages"].values() for name in entry["arrays"]}

    def _workspaces(self, stage: str) -> list[Path]:
        work = self.path / "work"
        found = work.glob(f"{stage}-*")
        return [path for path in found if path.is_dir() and path.suffix != DISCARDED]

    @contextmanager
    def lock(self, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Hold the run; the system releases the lock if the process dies.

        Parameters
        ----------
        on_wait
            Called with a sentence that names the holder of the run, before waiting for it; and with one for
            each commit that turns out to be damaged.
        """
        with hold(self.path, on_wait):
            self.reload()
            self.recover(on_wait)
            yield
