"""The table of a batch on disk: whole after every scene.

A directory may see several sets of scenes, one batch after the other: rows of scenes that are not among
those of this batch stay as they are. Batches of one directory hold its lock, so none reads a table
that another one is about to write.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eigenscape.base.files.tables import Row, read_table, text_of, write_csv
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.batch.outcomes import SceneOutcome, files_of
from eigenscape.batch.sources import Scene, stem_of, with_name
from eigenscape.errors import StoreError
from eigenscape.scenes.registry import is_registered
from eigenscape.store.lock import lock_holder
from eigenscape.store.run import Run
from eigenscape.workflow.directories import BATCH_TABLE
from eigenscape.workflow.many.outcomes import count_states
from eigenscape.workflow.stages import STAGES

COLUMNS = (
    "scene", "state", "reason", "run", "seconds", "overall_accuracy", "measured_on", "class_map", "files",
)  # fmt: skip


def earlier_rows(directory: Path) -> list[dict[str, str]]:
    """Return what earlier batches of a directory have left: nothing without a table of theirs."""
    rows = table_rows(directory) if (directory / BATCH_TABLE).exists() else []
    return [row for row in rows if {"scene", "state"} <= row.keys()]


def table_rows(directory: Path) -> list[dict[str, str]]:
    """Return the rows of the table of a directory, which may have been moved or copied since.

    The runs in ``scenes/`` are named where they are now: the table has the paths of the place where it
    was written.
    """
    rows, scenes = read_table(directory / BATCH_TABLE), directory.resolve() / "scenes"
    for row in rows:
        if (written := row.get("run")) and (here := scenes / Path(written).name).exists():
            row["run"] = str(here)
            if class_map := row.get("class_map"):
                row["class_map"] = str(here / "outputs" / Path(class_map).name)
    return rows


def keep_names(scenes: Sequence[Scene], earlier: Iterable[Mapping[str, str]]) -> list[Scene]:
    """Return the scenes of a batch under the names that its table has for them.

    A scene whose stem another one has as well, or no longer has, would get another name, and be computed
    again in another directory.

    Parameters
    ----------
    scenes
        As a source finds them.
    earlier
        See `earlier_rows`.
    """
    known: dict[tuple[str, str], set[str]] = {}
    for row in earlier:
        key = row.get("files", ""), stem_of(row["scene"])
        known.setdefault(key, set()).add(row["scene"])
    taken = {scene.name for scene in scenes}
    kept = []
    for scene in scenes:
        files = text_of(files_of(scene))
        names = known.get((files, stem_of(scene.name)), set())
        # Several: the same files with other keys of the job, which have names of their own.
        if files and len(names) == 1 and not names & taken:
            (name,) = names
            taken.add(name)
            scene = with_name(scene, name)
        kept.append(scene)
    return kept


class BatchTable:
    """The rows of ``batch.csv``: earlier ones of other scenes, and one for each outcome.

    The rows are made once: that of a scene with many files takes long.

    Parameters
    ----------
    directory
        Of the batch.
    outcomes
        Of the scenes of this batch.
    earlier
        See `earlier_rows`. Those of the same name and files are replaced. Those without a run in the
        directory, and whose files are gone, are left out: nothing is left to look at or to run.
    """

    def __init__(
        self,
        directory: Path,
        outcomes: Sequence[SceneOutcome],
        earlier: Iterable[Mapping[str, str]] = (),
    ) -> None:
        self._directory = directory
        self._rows = [outcome.row() for outcome in outcomes]
        self._others = list(_others(earlier, self._rows, directory))

    def put(self, number: int, outcome: SceneOutcome) -> None:
        """Replace the row of an outcome, by its place among the outcomes."""
        self._rows[number] = outcome.row()

    def write(self) -> None:
        """Write the file."""
        with explain_write_errors(self._directory):
            write_csv(self._directory / BATCH_TABLE, [*self._others, *self._rows], COLUMNS)


def _others(
    earlier: Iterable[Mapping[str, str]], rows: Sequence[Row], directory: Path
) -> Iterator[Row]:
    """Yield the earlier rows that are about none of the scenes of some rows."""
    files: dict[str, set[str]] = {}
    for row in rows:
        files.setdefault(row["scene"], set()).add(text_of(row["files"]))
    for old in earlier:
        own, given = files.get(old["scene"]), old.get("files", "")
        # The files of a scene are unknown if its job cannot be read.
        if own is not None and (not given or given in own or "" in own):
            continue
        done = old["state"] in ("done", "skipped")
        inside = directory in Path(old.get("run", "")).parents
        if inside if done else any(map(_is_given, _paths(given))):
            yield dict(old)


def _paths(files: str) -> list[str]:
    if not files.startswith("["):
        return [files]
    paths: list[str] = json.loads(files)
    return paths


def _is_given(path: str) -> bool:
    return "://" in path or is_registered(path) or not path or Path(path).exists()


def write_trace(directory: Path, outcome: SceneOutcome) -> None:
    """Keep where the code was when a scene failed; forget it once the scene is done."""
    path = directory / "failures" / f"{outcome.scene.name}.txt"
    with explain_write_errors(directory):
        if outcome.state == "failed":
            path.parent.mkdir(exist_ok=True)
            text = f"{outcome.reason}\n\n{outcome.trace}"
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            path.unlink(missing_ok=True)


def batch_status(path: Path) -> dict[str, Any]:
    """Say what became of the scenes of a batch, as its table and their run directories have it.

    Raises
    ------
    StoreError
        The table is not one of a batch.
    """
    rows = table_rows(path)
    if any(not {"scene", "state"} <= row.keys() for row in rows):
        raise StoreError(
            f"{path / BATCH_TABLE} was not written by this version. Give the same `eigenscape batch` again, "
            "or another --run-dir."
        )
    for row in rows:
        if row["state"] not in ("done", "skipped"):
            continue
        try:
            if not _is_there(Path(row["run"])):
                row["state"] = "to do"
        except StoreError as error:
            # One damaged run says nothing about the others.
            row |= {"state": "failed", "reason": str(error)}
    return {
        "run": str(path),
        "state": count_states(row["state"] for row in rows) or "no scene",
        "holder": lock_holder(path),
        "scenes": [{name: row.get(name) for name in COLUMNS} for row in rows],
    }


def _is_there(path: Path) -> bool:
    """Return whether all that a run wrote is still there."""
    run = Run(path, create=False)
    records = {stage.name: run.record(stage.name) for stage in STAGES}
    return all(record and run.is_finished(name, record.key) for name, record in records.items())
