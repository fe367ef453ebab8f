"""The table of a batch on disk: whole after every scene."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eigenscape.batch.outcomes import TABLE, Outcome, count_states
from eigenscape.errors import StoreError
from eigenscape.files import explain_write_errors
from eigenscape.lock import lock_holder
from eigenscape.stages import STAGES
from eigenscape.store import Run
from eigenscape.study.table import read_table, write_csv

COLUMNS = ("scene", "state", "reason", "run", "seconds", "overall_accuracy", "class_map")


def write_outcomes(directory: Path, outcomes: Sequence[Outcome]) -> Path:
    """Write ``batch.csv``, and the traceback of each scene that failed below ``failures/``."""
    with explain_write_errors(directory):
        write_csv(directory / TABLE, [outcome.row() for outcome in outcomes], COLUMNS)
    return directory / TABLE


def write_trace(directory: Path, outcome: Outcome) -> None:
    """Keep where the code was when a scene failed; forget it once the scene is done."""
    path = directory / "failures" / f"{outcome.scene.name}.txt"
    with explain_write_errors(directory):
        if outcome.state == "failed":
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{outcome.reason}\n\n{outcome.trace}", encoding="utf-8")
        else:
            path.unlink(missing_ok=True)


def is_batch(path: Path) -> bool:
    """Return whether a directory is that of a batch."""
    return (path / TABLE).exists()


def batch_status(path: Path) -> dict[str, Any]:
    """Say what became of the scenes of a batch, as its table and their run directories have it.

    Raises
    ------
    StoreError
        The table is not one of a batch.
    """
    rows = read_table(path / TABLE)
    if any(not {"scene", "state"} <= row.keys() for row in rows):
        raise StoreError(
            f"{path / TABLE} was not written by this version. Give the same `eigenscape batch` again, "
            "or another --run-dir."
        )
    for row in rows:
        if row["state"] in ("done", "skipped") and not _is_there(Path(row["run"])):
            row["state"] = "to do"
    return {
        "run": str(path),
        "state": count_states(rows),
        "holder": lock_holder(path),
        "scenes": [{name: row.get(name) for name in COLUMNS} for row in rows],
    }


def _is_there(path: Path) -> bool:
    """Return whether all that a run wrote is still there."""
    run = Run(path, create=False)
    records = {stage.name: run.record(stage.name) for stage in STAGES}
    return all(record and run.is_finished(name, record.key) for name, record in records.items())
