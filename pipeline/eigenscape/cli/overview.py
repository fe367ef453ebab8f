"""The runs behind a path: a run directory, a directory of runs, or the run of a job file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eigenscape.base.commands import command_line
from eigenscape.base.files.whole import DISCARDED
from eigenscape.cli.kinds import kind_of
from eigenscape.errors import InputError, StoreError
from eigenscape.job.jobfile import load_job
from eigenscape.workflow.directories import parent_directory, run_directory
from eigenscape.workflow.stages import stage_keys


def directory_of(path: Path, overrides: Sequence[str] = ()) -> Path:
    """Return the run directory of a job file; a path of a directory is returned as it is.

    Parameters
    ----------
    path
        Of a directory or a job file.
    overrides
        As in `eigenscape.load_job`.

    Raises
    ------
    InputError
        It is no job, or a job without a run; directories of other runs of its name are listed.
    """
    if path.is_dir() or not path.exists():
        return path
    job = load_job(path, overrides)
    if job.study is not None:
        from eigenscape.study.outcomes import study_directory

        directory = study_directory(job, None)
    else:
        directory = run_directory(job, stage_keys(job), None)
    if directory.exists():
        return directory
    others = sorted(
        str(found.parent) for found in parent_directory(job).glob(f"{job.name}-*/manifest.json")
    )
    older = f" Runs with other options, files or code: {', '.join(others)}." if others else ""
    raise InputError(
        f"{path}: this job has not run in its present form: {directory} does not exist.{older} "
        f"`{command_line('run', path)}` starts it."
    )


def list_runs(path: Path) -> list[dict[str, Any]]:
    """Return ``run``, ``kind``, ``state`` and ``converged`` of each run directly below a directory.

    Studies, batches and tunings count as one run each; their ``converged`` is None, as is that of a run
    without eigenvectors. The kind of a directory that cannot be read is None.

    The list is empty if the directory is itself a run, a study or a batch.
    """
    if kind_of(path) is not None or not path.is_dir():
        return []
    found = []
    for entry in sorted(path.iterdir()):
        if entry.name.endswith(DISCARDED):
            continue
        kind, about = None, {}
        try:
            if (kind := kind_of(entry)) is None:
                continue
            about = kind.status(entry)
            state = about["state"]
        except (StoreError, InputError) as error:
            state = f"unknown: {error}"
        except PermissionError as error:
            state = f"unknown: cannot be read ({error.strerror})"
        found.append(
            {
                "run": str(entry),
                "kind": None if kind is None else kind.name,
                "state": state,
                "converged": about.get("converged"),
            }
        )
    return found
