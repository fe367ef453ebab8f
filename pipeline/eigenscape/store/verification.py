"""`verify`: check of all files of a run directory against their checksums."""

from pathlib import Path
from typing import Any

from eigenscape.base.files.sums import holds, size_in
from eigenscape.base.files.whole import DISCARDED
from eigenscape.errors import StoreError
from eigenscape.store.integrity import find_damage
from eigenscape.store.journal import Journal
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import (
    HasPath,
    Record,
    path_of,
    read_commit,
    read_manifest,
    require_run,
)
from eigenscape.store.tree import broken_groups


def verify(run: str | Path | HasPath) -> dict[str, Any]:
    """Read every file of a run directory and compare it with its checksum.

    Parameters
    ----------
    run
        Run directory, or the result of `eigenscape.run`.

    Returns
    -------
    dict
        ``run``: the run directory. ``whole``: whether all files are intact. ``stages``: name, number of
        files, bytes and ``damage`` (a text for each damaged file) of every finished stage. ``unfinished``:
        name and ``damage`` of unfinished stages; empty while a process works in the directory
        (``holder``). ``other``: damage to files that belong to no stage. ``again``: stages that the next
        `run` computes again.

    Raises
    ------
    InputError
        There is no run in that directory.
    StoreError
        Its manifest is damaged.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> eigenscape.verify(eigenscape.run(job).path)["whole"]
    True
    """
    path = path_of(run)
    require_run(path)
    # The holder first: a run that ends in between is finished in the manifest.
    holder = lock_holder(path)
    manifest = read_manifest(path)
    records = {name: Record.from_json(entry) for name, entry in manifest["stages"].items()}
    stages = [
        {
            "name": name,
            "files": len(record.sums),
            "bytes": sum(map(size_in, record.sums.values())),
            "damage": find_damage(path, record),
        }
        for name, record in records.items()
    ]
    unfinished = [] if holder else [_unfinished(work) for work in _workspaces(path)]
    arrays = {name for record in records.values() for name in record.arrays}
    groups = broken_groups(path / "store.zarr", arrays)
    other = [f"{file.relative_to(path)} is damaged" for file in groups]
    if "job" in manifest and not holds(path / "job.toml", [manifest["job"]]):
        other.append("job.toml is damaged")
    damaged = [part for part in (*stages, *unfinished) if part["damage"]]
    return {
        "run": str(path),
        "whole": not damaged and not other,
        "stages": stages,
        "unfinished": unfinished,
        "other": other,
        "again": [part["name"] for part in damaged],
        "holder": holder,
    }


def _workspaces(path: Path) -> list[Path]:
    """Return the workspaces of a run, but for those that are being deleted."""
    return [work for work in sorted(path.glob("work/*-*")) if work.suffix != DISCARDED]


def _unfinished(work: Path) -> dict[str, Any]:
    commit = work / "COMMIT"
    damage = _uncommitted(work, commit) if commit.exists() else Journal(work).damage()
    texts = [f"work/{work.name}/{name} is damaged" for name in damage]
    return {"name": work.name.rpartition("-")[0], "damage": texts}


def _uncommitted(work: Path, commit: Path) -> list[str]:
    """Return the damaged files of a stage whose commit was begun: each part is in its place, or here."""
    entry = read_commit(commit)
    if entry is None:
        return [commit.name]
    places = (("store.zarr/", "store/"), ("outputs/", "files/"))
    damaged = []
    for name, total in entry["sums"].items():
        here = next(own + name.removeprefix(to) for to, own in places if name.startswith(to))
        if not (holds(work / here, [total]) or holds(work.parents[1] / name, [total])):
            damaged.append(here)
    return damaged


def find_wrong(path: Path) -> list[str]:
    """Return a text for each damaged file of a run, beginning with its path in the run directory."""
    manifest = read_manifest(path)
    texts = [
        text for entry in manifest["stages"].values()
        for text in find_damage(path, Record.from_json(entry))
    ]  # fmt: skip
    works = map(_unfinished, _workspaces(path))
    return texts + [text for work in works for text in work["damage"]]


def require_whole(path: Path, exclude: str) -> None:
    """Raise an error if a finished stage of a run is damaged.

    Parameters
    ----------
    path
        Run directory.
    exclude
        A stage that is not checked.

    Raises
    ------
    StoreError
        With the first file that is damaged, and the fix.
    """
    manifest = read_manifest(path)
    for name, entry in manifest["stages"].items():
        if name != exclude and (damage := find_damage(path, Record.from_json(entry))):
            raise StoreError(f"{path / damage[0]}. {_mending(name)}")
    if "job" in manifest and not holds(path / "job.toml", [manifest["job"]]):
        raise StoreError(f"{path / 'job.toml'} is damaged. {_mending(None)}")


def _mending(stage: str | None) -> str:
    what = f"the stage {stage} again, and nothing else" if stage else "it again"
    return f"The `eigenscape run` that made the run makes {what}."
