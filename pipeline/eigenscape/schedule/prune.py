"""Old runs, deleted by a rule: the newest finished ones of each job stay."""

import json
import os
import secrets
import shutil
import stat
import tomllib
from collections import Counter
from collections.abc import Collection, Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from eigenscape.base.files.whole import DISCARDED
from eigenscape.batch.table import table_rows
from eigenscape.errors import EigenscapeError, InputError, OutputError, StoreError
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import applied_run, changed_ns, is_run, read_manifest
from eigenscape.workflow.directories import is_batch, status


@dataclass(frozen=True)
class Pruned:
    """What `prune_runs` did.

    Attributes
    ----------
    deleted
        Run directories that are gone, or would be.
    kept
        Those that stay by the rule, each with why.
    failed
        Those that this user may not read or delete, each with why.
    """

    deleted: tuple[Path, ...]
    kept: tuple[tuple[Path, str], ...]
    failed: tuple[tuple[Path, str], ...] = ()

    @property
    def exit_status(self) -> int:
        """Exit status of the command: 0, or that of an `OutputError` if some runs could not be deleted."""
        return OutputError.exit_status if self.failed else 0

    def to_json(self) -> dict[str, Any]:
        """Return it as the one JSON object that ``--json`` prints."""
        return {
            "deleted": [str(path) for path in self.deleted],
            "kept": [{"run": str(path), "because": why} for path, why in self.kept],
            "failed": [{"run": str(path), "because": why} for path, why in self.failed],
        }


def prune_runs(
    directory: Path, keep: int, *, names: Collection[str] | None = None, dry: bool = False
) -> Pruned:
    """Delete the finished runs of each job but the newest.

    Runs are of one job if their names and scenes are equal, and those of the runs that they apply, if any.
    A run whose job cannot be read is the only one of its job.

    Never deleted are runs that a process holds, runs that are not finished, those that the table of
    a batch, a symbolic link or a run of `eigenscape apply` beside them refers to, and studies.
    Stages that other runs share with a deleted one stay theirs: they are hard links. Runs that this user
    may not delete stay whole, and the others are deleted.

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
    runs, unread = _runs(directory)
    referred = _referred(directory, runs)
    deleted: list[Path] = []
    # Whose runs these are cannot be known.
    kept = unread if names is None else []
    failed: list[tuple[Path, str]] = []
    counted: Counter[Any] = Counter()
    # Going over a finished run again touches its manifest.
    for path in sorted(runs, key=changed_ns, reverse=True):
        name = runs[path].get("name", "")
        if (names is not None and name not in names) or not path.exists():
            continue
        job, why = _job_of(path, runs[path]), _why_kept(path, referred)
        if not why and counted[job] < keep:
            kept.append((path, "among the newest"))
        elif why:
            kept.append((path, why))
        elif refusal := _refusal(path):
            failed.append((path, refusal))
        else:
            try:
                if not dry:
                    _delete(path)
                deleted.append(path)
            except filelock.Timeout:
                kept.append((path, "in use"))
            except OSError as error:
                failed.append((path, _reason(error)))
        counted[job] += not why or why == "referred to"
    return Pruned(tuple(deleted), tuple(kept), tuple(failed))


def _runs(directory: Path) -> tuple[dict[Path, dict[str, Any]], list[tuple[Path, str]]]:
    """Return the run directories in a directory with their manifests, and those that cannot be read."""
    runs: dict[Path, dict[str, Any]] = {}
    unread = []
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if path.is_symlink() or path.name.endswith(DISCARDED):
            continue
        try:
            if is_run(path):
                runs[path.resolve()] = read_manifest(path)
        except FileNotFoundError:
            continue  # deleted this moment
        except (StoreError, OSError) as error:
            unread.append((path.resolve(), _reason(error)))
    return runs, unread


def _referred(directory: Path, runs: dict[Path, dict[str, Any]]) -> set[Path]:
    """Return what a link, a batch's table or a run that applies another one refers to."""
    found = {path.resolve() for path in directory.iterdir() if path.is_symlink()}
    applied = (applied_run(path, manifest) for path, manifest in runs.items())
    found |= {model.resolve() for model in applied if model is not None}
    if is_batch(directory.parent):
        rows = table_rows(directory.parent)
        found |= {Path(row["run"]).resolve() for row in rows if "run" in row}
    return found


def _job_of(path: Path, manifest: dict[str, Any]) -> Hashable:
    """Return what the runs of one job have in common: name, scene, and the job of the run that they apply."""
    try:
        job = tomllib.loads((path / "job.toml").read_text(encoding="utf-8"))
        scene = json.dumps(job["scene"]["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return path
    applied = applied_run(path, manifest)
    model: Hashable = applied
    if applied is not None:
        # A model that is trained again has another directory, and its maps are those of the same job.
        with suppress(StoreError, OSError):
            model = _job_of(applied, read_manifest(applied))
    return manifest.get("name", ""), scene, model


def _why_kept(path: Path, referred: set[Path]) -> str:
    """Return why a run is out of the question, or nothing."""
    try:
        if lock_holder(path) is not None:
            return "in use"
        if path in referred:
            return "referred to"
        return "" if status(path)["state"] == "finished" else "not finished"
    except (EigenscapeError, OSError) as error:
        return _reason(error)


def _refusal(path: Path) -> str:
    """Return why this user may not delete a run, or nothing; before any of its files is gone."""
    lock = path / "lock"
    try:
        if lock.exists() and not _may(lock, os.R_OK | os.W_OK):
            return _unwritable(lock)
        inside = [
            (Path(folder), dirs + files) for folder, dirs, files in os.walk(path, onerror=_throw)
        ]
        for folder, names in [(path.parent, [path.name]), *inside]:
            if not _may(folder, os.W_OK | os.X_OK):
                return _unwritable(folder)
            if others := [name for name in names if not _may_remove(folder, name)]:
                return f"{folder / others[0]} belongs to another user, who alone may delete it"
    except OSError as error:
        return _reason(error)
    return ""


def _unwritable(path: Path) -> str:
    """Return that a path cannot be written, and why where that is known."""
    because = ""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        because = ": its file system is read-only"
    elif path.stat().st_uid != os.geteuid():
        because = ": it belongs to another user"
    return f"{path} cannot be written{because}"


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=True)


def _may_remove(folder: Path, name: str) -> bool:
    """Return whether this user may remove a name from a folder that it may write."""
    state, own = folder.stat(), os.geteuid()
    if not state.st_mode & stat.S_ISVTX or own in (0, state.st_uid):
        return True
    return (folder / name).lstat().st_uid == own


def _delete(path: Path) -> None:
    """Delete a run under its lock; one rename first, or a kill midway would leave half of it."""
    with filelock.FileLock(path / "lock", timeout=0):
        # Without the name of the run, which may be as long as a name can be.
        hidden = path.with_name(f".{secrets.token_hex(8)}{DISCARDED}")
        path.rename(hidden)
        shutil.rmtree(hidden)


def _finish_deleting(directory: Path) -> None:
    """Delete what a prune that was killed has left."""
    for path in directory.glob(f".*{DISCARDED}"):
        shutil.rmtree(path, ignore_errors=True)


def _reason(error: Exception) -> str:
    """Return what refused to read or to delete something, in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _throw(error: OSError) -> None:
    raise error
