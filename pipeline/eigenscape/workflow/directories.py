"""Directories of runs, batches and studies: where they are, and how far they are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigenscape.clusters.submission import describe_driver
from eigenscape.errors import InputError
from eigenscape.job.jobfile import Job
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import path_of, read_manifest
from eigenscape.workflow.stages import STAGES

BATCH_TABLE = "batch.csv"
"""Name of the table in the directory of a batch."""

STUDY_FILE = "study.json"
"""Name of the description in the directory of a study."""


def run_directory(job: Job, keys: Mapping[str, str], run_dir: str | Path | None) -> Path:
    """Return the run directory of a job; its name contains the key of the whole job."""
    if run_dir is not None:
        return path_of(run_dir).resolve()
    return (parent_directory(job) / f"{job.name}-{keys['export'][:10]}").resolve()


def parent_directory(job: Job) -> Path:
    """Return where the run directories of a job are made."""
    return Path(job.resolve(job.output.directory)) if job.output.directory else Path("runs")


def is_run(path: Path) -> bool:
    """Return whether a directory is that of a run."""
    return (path / "manifest.json").exists()


def is_batch(path: Path) -> bool:
    """Return whether a directory is that of a batch."""
    return (path / BATCH_TABLE).exists()


def is_study(path: Path) -> bool:
    """Return whether a directory is that of a study."""
    return (path / STUDY_FILE).exists()


def status(path: Path) -> dict[str, Any]:
    """Return the state of a run directory and, if it was submitted, of its driver.

    Raises
    ------
    InputError
        There is no run in that directory.
    """
    driver = describe_driver(path)
    if driver is None and not is_run(path):
        raise InputError(
            f"{path}: no run directory (it has no manifest.json). Give a directory that "
            "`eigenscape run` made, such as runs/<job name>-<key>."
        )
    manifest = read_manifest(path)
    unfinished = {work.name.rpartition("-")[0] for work in (path / "work").glob("*-*")}
    stages = []
    for name in manifest.get("order", [stage.name for stage in STAGES]):
        record = manifest["stages"].get(name)
        state = "finished" if record else "begun" if name in unfinished else "to do"
        entry = {
            key: record[key] if record else None for key in ("seconds", "peak_bytes", "finished")
        }
        stages.append({"name": name, "state": state, **entry})
    done = all(stage["state"] == "finished" for stage in stages)
    command = "apply" if "applies" in manifest else "run"
    holder = lock_holder(path)
    left = f"{holder} works on it" if holder else f"the same `eigenscape {command}` continues it"
    return {
        "run": str(path),
        "name": manifest.get("name"),
        "state": "finished" if done else f"unfinished: {left}",
        "holder": holder,
        "stages": stages,
        "driver": driver,
        "intrinsic_dimension": _summary(manifest, "neighbors").get("intrinsic_dimension"),
        "scores": _summary(manifest, "learn").get("scores", {}),
    }


def _summary(manifest: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Return the summary of a finished stage, an empty one of a stage that is not finished."""
    record = manifest["stages"].get(stage)
    return dict(record["summary"]) if record else {}
