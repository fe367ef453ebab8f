"""The manifest of a run directory: a record per finished stage, and its own checksum."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eigenscape.base.files.sums import json_sum
from eigenscape.base.files.whole import write_json
from eigenscape.errors import InputError, StoreError

FORMAT = 3

_CHECKSUM = "checksum"

_TICK_NS = 2 * 10**9
"""Two times of change that differ on every file system."""


@dataclass(frozen=True)
class Record:
    """The entry of one finished stage in the manifest.

    Attributes
    ----------
    key
        Content key of the stage.
    seconds, peak_bytes
        Time of the stage, and peak of anonymous memory of any process.
    arrays, files
        Names of the arrays in the store and of the files in ``outputs/``.
    summary
        Report of the stage, as JSON values.
    finished
        Local time of the commit, ISO 8601.
    sums
        Checksum of every file of the arrays and outputs, by path in the run directory.
    """

    key: str
    seconds: float
    peak_bytes: int
    arrays: tuple[str, ...]
    files: tuple[str, ...]
    summary: dict[str, Any]
    finished: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    sums: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> "Record":
        """Return a record from the JSON values that `dataclasses.asdict` made of it."""
        return cls(**{**entry, "arrays": tuple(entry["arrays"]), "files": tuple(entry["files"])})


class HasPath(Protocol):
    """A result of `eigenscape.run`, or anything else with the path of a run directory."""

    @property
    def path(self) -> Path:
        """The run directory."""
        ...


def path_of(run: "str | os.PathLike[str] | HasPath") -> Path:
    """Return the path of a run directory, given as a path or as a result.

    Raises
    ------
    InputError
        The argument is something else.
    """
    if isinstance(run, str | os.PathLike):
        return Path(run)
    path = getattr(run, "path", None)
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"a run of type {type(run).__name__}: give a run directory, such as runs/<job name>-<key>, or "
            "the result of eigenscape.run."
        )
    return Path(path)


def is_run(path: Path) -> bool:
    """Return whether a directory is that of a run."""
    return (path / "manifest.json").exists()


def require_run(path: Path) -> None:
    """Raise an error if a directory is not that of a run.

    Raises
    ------
    InputError
        With the fix.
    """
    if not is_run(path):
        # Of a directory of runs, a batch or a study.
        runs = [*path.glob("*/manifest.json")] or [*path.glob("*/*/manifest.json")]
        known = min((str(run.parent) for run in runs), default="runs/<job name>-<key>")
        raise InputError(
            f"{path}: no run directory (it has no manifest.json). Give a directory that "
            f"`eigenscape run` made, such as {known}."
        )


def applied_run(path: Path, manifest: Mapping[str, Any]) -> Path | None:
    """Return the run that a run of `eigenscape apply` applies, None if it applies none.

    Parameters
    ----------
    path, manifest
        Of the run that applies it. Both may have been moved or copied together since: a run of the same name
        beside it is meant first.
    """
    applied = manifest.get("applies")
    if isinstance(applied, dict):
        applied = applied.get("run")
    if not isinstance(applied, str):
        return None
    beside = path.parent / Path(applied).name
    return beside if is_run(beside) else Path(applied)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run directory, an empty one where there is none.

    Raises
    ------
    StoreError
        The directory has a manifest that is damaged, of another format, or cannot be read.
    """
    file = path / "manifest.json"
    try:
        manifest: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": FORMAT, "stages": {}}
    except PermissionError as error:
        raise StoreError(
            f"{file}: cannot be read ({error.strerror}). Ask its owner for permission to read it, or give "
            "another --run-dir."
        ) from None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise StoreError(f"{file} is not the manifest of a run. Give another --run-dir.")
    if manifest["format"] != FORMAT:
        raise StoreError(
            f"{file} is of format {manifest['format']}, and this version reads and writes format "
            f"{FORMAT}. The run is left as it is, and its outputs stay valid. To compute it anew, give "
            "another --run-dir."
        )
    if manifest.pop(_CHECKSUM, None) != json_sum(manifest):
        raise _damaged(path, "its checksum is that of other content")
    return manifest


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Replace the manifest of a run directory by one rename."""
    write_json(path / "manifest.json", {**manifest, _CHECKSUM: json_sum(manifest)})


def changed_ns(path: Path) -> int:
    """Return when the manifest of a run was last written, in nanoseconds; 0 where none can be seen."""
    try:
        return (path / "manifest.json").stat().st_mtime_ns
    except OSError:
        return 0


def date_after_others(path: Path, name: str) -> None:
    """Make the manifest of a run that has just ended the newest of its job, whatever the clock says.

    The newest runs are kept when old ones are deleted. A clock that was set back would make this run look
    older than those before it.

    Parameters
    ----------
    path
        Run directory.
    name
        Name of the job. Its runs may lie in directories of any name.
    """
    own = changed_ns(path)
    with suppress(OSError):
        dates = [
            date
            for other in path.parent.iterdir()
            # Only manifests that are newer are read.
            if other.name != path.name
            and (date := changed_ns(other)) >= own
            and _is_of_job(other, name)
        ]
        if dates:
            os.utime(path / "manifest.json", ns=(max(dates) + _TICK_NS,) * 2)


def _is_of_job(path: Path, name: str) -> bool:
    try:
        return bool(read_manifest(path).get("name") == name)
    except (StoreError, OSError):
        return False  # `prune_runs` leaves it alone, too


def write_commit(path: Path, entry: dict[str, Any]) -> None:
    """Write the entry that a commit is to make in the manifest."""
    write_json(path, [entry, json_sum(entry)])


def read_commit(path: Path) -> dict[str, Any] | None:
    """Return the entry of a commit, None if it is damaged or of another stage."""
    try:
        entry, total = json.loads(path.read_text(encoding="utf-8"))
        # What follows a point is the size of its chunks.
        workspace = path.parent.name.partition(".")[0]
        whole = total == json_sum(entry) and workspace == f"{entry['stage']}-{entry['key']}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return dict(entry) if whole else None


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path / 'manifest.json'} is damaged ({why}). Delete the run directory {path} and run the "
        "job again."
    )
