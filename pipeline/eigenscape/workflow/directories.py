"""Directories of runs, batches and studies: where they are, and how far they are."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigenscape.base.files.sums import file_sum
from eigenscape.base.shares import listed
from eigenscape.clusters.submission import FILE as SUBMISSION_FILE
from eigenscape.clusters.submission import describe_driver
from eigenscape.errors import OutputError
from eigenscape.job.jobfile import Job
from eigenscape.store.lock import lock_holder
from eigenscape.store.manifest import path_of, read_manifest, require_run
from eigenscape.workflow.stages import STAGES

BATCH_TABLE = "batch.csv"
"""Name of the table in the directory of a batch."""

SCHEDULES = "schedules"
"""Name of the folder with the locks and logs of schedules: beside the runs of a job, in that of a batch."""

STUDY_FILE = "study.json"
"""Name of the description in the directory of a study."""


_LAST_BYTES = 2**16
"""Bytes of the log in which its last entry is sought."""

TUNING_FILE = "tune.json"
"""Name of the description in the directory of a tuning."""

WINDOW_FILE = "window.npy"
"""Name of the mask of the part of a big scene by which methods are chosen, or that is tuned on."""

WIDER_FILE = "room.npy"
"""Name of that of the wider part by which a choice goes on where the first one is not sufficient."""

_LEFT_AT_ONCE = {
    "lock", "log.jsonl", "work", "variants", "scenes", "failures", WINDOW_FILE, WIDER_FILE,
}  # fmt: skip
"""What a run, batch, study or tuning may have written when it is killed before its own file above; and all
that a choice of methods writes, which has no such file."""


def run_directory(job: Job, keys: Mapping[str, str], run_dir: str | Path | None) -> Path:
    """Return the run directory of a job; its name contains the key of the whole job."""
    if run_dir is not None:
        return path_of(run_dir).resolve()
    return (parent_directory(job) / f"{job.name}-{keys['export'][:10]}").resolve()


def parent_directory(job: Job) -> Path:
    """Return where the run directories of a job are made."""
    return Path(job.resolve(job.output.directory)) if job.output.directory else Path("runs")


def is_batch(path: Path) -> bool:
    """Return whether a directory is that of a batch."""
    return (path / BATCH_TABLE).exists()


def is_study(path: Path) -> bool:
    """Return whether a directory is that of a study."""
    return (path / STUDY_FILE).exists()


def is_tuning(path: Path) -> bool:
    """Return whether a directory is that of a tuning."""
    return (path / TUNING_FILE).exists()


def check_run_directory(path: Path, job: Job) -> None:
    """Refuse to run a job in a directory in which it would replace files of the user.

    Raises
    ------
    OutputError
        The directory holds other files than a run, or its ``job.toml`` is the job file, changed by hand.
    """
    # A store without a manifest is a damaged run, which is computed again.
    check_ours(path, "manifest.json", SUBMISSION_FILE, "store.zarr")
    copy = path / "job.toml"
    # As an earlier run wrote it, it is a copy and may be replaced.
    if _is_file_of(job, copy) and read_manifest(path).get("job") != file_sum(copy):
        raise _replaces_job(copy)


def check_ours(path: Path, *marks: str) -> None:
    """Refuse a directory with files, unless one of them marks it as made by the same kind of work.

    Parameters
    ----------
    path
        The directory; it may be missing or empty.
    marks
        Names of the files that mark it.

    Raises
    ------
    OutputError
        The directory holds other files.
    """
    if others := _other_files(path, marks):
        ours = f", and no {marks[0]} of an earlier call" if marks else ""
        raise OutputError(
            f"{path}: holds {listed(others, 3)}{ours}. Files that are not eigenscape's could be replaced "
            "there. Give a new or an empty directory with --run-dir."
        )


def is_ours(path: Path, *marks: str) -> bool:
    """Return whether `check_ours` accepts a directory."""
    return not _other_files(path, marks)


def check_kept(job: Job, file: Path, text: str | None = None) -> None:
    """Refuse to write over the job file that was read.

    Parameters
    ----------
    job
        The job that was read.
    file
        The file to write.
    text
        Its new content; the job file may have it already.

    Raises
    ------
    OutputError
        It is the job file, with another content.
    """
    if _is_file_of(job, file) and file.read_text(encoding="utf-8") != text:
        raise _replaces_job(file)


def _replaces_job(file: Path) -> OutputError:
    return OutputError(
        f"{file}: is the job file itself, and the command would replace it. Give another directory with "
        "--run-dir, or move the job file."
    )


def _is_file_of(job: Job, file: Path) -> bool:
    return file.exists() and file.resolve() == (job.base / f"{job.name}.toml").resolve()


def _other_files(path: Path, marks: tuple[str, ...]) -> list[str]:
    # Nothing of ours replaces hidden files, such as .gitignore.
    names = sorted(one.name for one in path.glob("*") if not one.name.startswith("."))
    if any(mark in names for mark in marks):
        return []
    ours = _LEFT_AT_ONCE if "lock" in names else set()
    if BATCH_TABLE in marks:
        ours = ours | {SCHEDULES}  # there before the first batch that a schedule starts
    return [name for name in names if name not in ours]


def status(path: Path) -> dict[str, Any]:
    """Return the state of a run directory and, if it was submitted, of its driver.

    ``converged`` is None as long as no eigenvectors are computed.

    Raises
    ------
    InputError
        There is no run in that directory.
    """
    driver = describe_driver(path)
    if driver is None:
        require_run(path)
    # The holder first: a run that ends in between is finished in the manifest.
    holder = lock_holder(path)
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
    error = None if done or holder else _last_error(path)
    if holder:
        left = f"unfinished: {holder} works on it"
    elif error:
        left = f"stopped by an error: {error}"
    elif driver:
        left = f"unfinished: {_left_to_driver(driver)}"
    else:
        left = f"unfinished: the same `eigenscape {command}` continues it"
    return {
        "run": str(path),
        "name": manifest.get("name"),
        "state": "finished" if done else left,
        "error": error,
        "converged": _summary(manifest, "spectrum").get("converged"),
        "holder": holder,
        "stages": stages,
        "driver": driver,
        "intrinsic_dimension": _summary(manifest, "neighbors").get("intrinsic_dimension"),
        "scores": _summary(manifest, "learn").get("scores", {}),
    }


def _left_to_driver(driver: Mapping[str, Any]) -> str:
    """Return what becomes of a run whose driver was submitted, while no process works in its directory."""
    if driver["at_work"] or driver["job"] in ("waiting", "running"):
        return f"job {driver['job_id']} of its driver is {driver['job']}"
    again = "the same `eigenscape submit` continues it"
    return (
        f"its driver ended ({driver['message']}); {again}" if driver["driver"] == "ended" else again
    )


def _last_error(path: Path) -> str | None:
    """Return the error that ended the last attempt at a run, None if nothing or something else did."""
    try:
        with (path / "log.jsonl").open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LAST_BYTES))
            entry = json.loads(stream.read().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None  # no log, or a process was killed while it wrote
    is_error = isinstance(entry, dict) and entry.get("event") == "error"
    return str(entry["text"]) if is_error else None


def _summary(manifest: Mapping[str, Any], stage: str) -> dict[str, Any]:
    """Return the summary of a finished stage, an empty one of a stage that is not finished."""
    record = manifest["stages"].get(stage)
    return dict(record["summary"]) if record else {}
