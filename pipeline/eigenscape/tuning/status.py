"""How far a tuning is, from the files of its directory; light, as it is asked while jobs are at work."""

import json
from pathlib import Path
from typing import Any

from eigenscape.errors import StoreError
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import is_run, read_manifest
from eigenscape.workflow.directories import TUNING_FILE

_SCORES = "choosing-"
"""What the names of stages that score a job for the choice begin with."""


def output_files(path: Path) -> dict[str, Path]:
    """Return the files that a tuning writes into its directory when it ends."""
    return {"job": path / "best.toml", "table": path / "table.csv", "plot": path / "accuracy.png"}


def tuning_status(path: Path) -> dict[str, Any]:
    """Return the state of a tuning, the number of jobs that it has compared, its time and its files.

    ``budget_seconds`` is None if an earlier version has written the directory.
    """
    # The holder first: a tuning that ends in between has its files.
    holder = lock_holder(path)
    outputs = {name: str(file) for name, file in output_files(path).items() if file.exists()}
    try:
        clock = json.loads((path / TUNING_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        clock = {}  # only the time is lost
    state = "unfinished: the same `eigenscape tune` continues it"
    if holder:
        state = f"unfinished: {holder} works on it"
    elif "job" in outputs and clock.get("finished", True):
        # A job alone may have been chosen before the files changed; earlier versions wrote no more.
        state = "finished"
    return {
        "run": str(path),
        "state": state,
        "holder": holder,
        "compared": sum(map(_is_scored, (path / "variants").glob("*"))),
        "spent_seconds": clock.get("spent_seconds"),
        "budget_seconds": clock.get("budget_seconds"),
        "outputs": outputs,
    }


def _is_scored(variant: Path) -> bool:
    try:
        stages = read_manifest(variant)["stages"] if is_run(variant) else ()
    except StoreError:
        return False  # damaged: `tune` computes it again
    return any(name.startswith(_SCORES) for name in stages)
