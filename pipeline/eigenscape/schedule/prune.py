"""Old runs, deleted by a rule: the newest finished ones of each job stay."""

import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from eigenscape.base.files.whole import DISCARDED, explain_write_errors
from eigenscape.batch.table import table_rows
from eigenscape.errors import InputError, StoreError
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import is_run, read_manifest
from eigenscape.workflow.directories import is_batch, status


@dataclass(frozen=True)
class Pruned:
    """What `prune_runs` did.

    Attributes
    ----------
    deleted
        Run directories that are gone, or would be.
    kept
        Those that stay, each with why.
    """

    deleted: tuple[Path, ...]
    kept: tuple[tuple[Path, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as the one JSON object that ``--json`` prints."""
        return {
            "deleted": [str(path) for path in self.deleted],
            "kept": [{"run": str(path), "because": why} for path, why in self.kept],
        }


def prune_runs(
    directory: Path, keep: int, *, names: Collection[str] | None = None, dry: bool = False
) -> Pruned:
    """Delete the finished runs of each job but the newest.

    Never deleted are runs that a process holds, runs that are not finished, those that the table of
    a batch, a symbolic link or a run of `eigenscape apply` beside them refers to, and studies.
    Stages that other runs share with a deleted one stay theirs: they are hard links.

    Parameters
    ----------
    directory
        Holds run directories, as ``runs`` does; or that of a batch.
    keep
        How many finished runs of each job stay. The newest is the one that was run last.
    names
        Jobs to look at; all by default.
    dry
        Delete nothing.

    Raises
    ------
    InputError
        There is no such directory, or it is a run itself.
    """
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory. Give one that holds runs, such as runs.")
    if is_run(directory):
        raise InputError(
            f"{directory}: is a run itself. Give the directory that holds it: {directory.parent}."
        )
    if is_batch(directory):
        directory = directory / "scenes"
    if not dry:
        _finish_deleting(directory)
    runs = _runs(directory)
    referred = _referred(directory, runs)
    deleted, kept = [], []
    counted: dict[str, int] = {}
    # Going over a finished run again touches its manifest.
    for path in sorted(runs, key=lambda path: _changed(path), reverse=True):
        name = runs[path].get("name", "")
        if names is not None and name not in names:
            continue
        if why := _why_kept(path, referred):
            kept.append((path, why))
        elif counted.get(name, 0) < keep:
            kept.append((path, "among the newest"))
        elif dry or _delete(path):
            deleted.append(path)
        else:
            kept.append((path, "in use"))
        counted[name] = counted.get(name, 0) + (not why or why == "referred to")
    return Pruned(tuple(deleted), tuple(kept))


def _runs(directory: Path) -> dict[Path, dict[str, Any]]:
    """Return the run directories in a directory, with their manifests."""
    runs = {}
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if path.is_symlink() or not is_run(path):
            continue
        with suppress(StoreError, OSError):
            runs[path.resolve()] = read_manifest(path)
    return runs


def _referred(directory: Path, runs: dict[Path, dict[str, Any]]) -> set[Path]:
    """Return what a link, a batch's table or a run that applies another one refers to."""
    found = {path.resolve() for path in directory.iterdir() if path.is_symlink()}
    for manifest in runs.values():
        applied = manifest.get("applies")
        if isinstance(applied, dict):
            applied = applied.get("run")
        if isinstance(applied, str):
            found.add(Path(applied).resolve())
    if is_batch(directory.parent):
        rows = table_rows(directory.parent)
        found |= {Path(row["run"]).resolve() for row in rows if "run" in row}
    return found


def _why_kept(path: Path, referred: set[Path]) -> str:
    """Return why a run is out of the question, or nothing."""
    if lock_holder(path) is not None:
        return "in use"
    if path in referred:
        return "referred to"
    if status(path)["state"] != "finished":
        return "not finished"
    return ""


def _changed(path: Path) -> float:
    try:
        return (path / "manifest.json").stat().st_mtime
    except OSError:
        return 0.0


def _delete(path: Path) -> bool:
    """Delete a run under its lock; it does not look finished from the first change on."""
    with explain_write_errors(path):
        try:
            with filelock.FileLock(path / "lock", timeout=0):
                (path / "manifest.json").unlink()
                hidden = path.with_name(f".{path.name}{DISCARDED}")
                path.rename(hidden)
                shutil.rmtree(hidden)
        except filelock.Timeout:
            return False
    return True


def _finish_deleting(directory: Path) -> None:
    """Delete what a prune that was killed has left."""
    for path in directory.glob(f".*{DISCARDED}"):
        shutil.rmtree(path, ignore_errors=True)
