"""The choice of a run: made once, and kept in its manifest.

A run that goes on does not choose again. What is tried lies beside the run until it is finished.
"""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import anonymous_bytes, release
from eigenscape.base.process.progress import Reporter
from eigenscape.clusters import ClusterOptions, Executor
from eigenscape.errors import SceneError, StoreError
from eigenscape.job.jobfile import Job
from eigenscape.store.lock import hold
from eigenscape.store.manifest import read_manifest
from eigenscape.store.run import Run
from eigenscape.workflow.choice.auto import Choice, choose
from eigenscape.workflow.choice.candidates import candidate
from eigenscape.workflow.directories import check_ours, is_ours
from eigenscape.workflow.stages import check_inputs_unchanged, stage_keys

HELD_BYTES = 96 * 2**20
"""Bytes that a process holds after a choice: libraries and compiled kernels of all methods. Measured with
tests/bench/performance/memory.py: 39 to 64 MiB on scenes of 2,000 and 160,000 pixels, 92 MiB on one of
20,000."""

_FIRST_STAGE = 120 * 2**20
"""Bytes of libraries that the plan of the first stage counts already."""

ENTRY = "choice"
"""Key of the choice in the manifest."""


def settle(job: Job, choice: Choice) -> Job:
    """Return a job with its methods as they were chosen."""
    closed = job.model_copy(update={"preset": None})
    return candidate(closed, choice.values).job


def settled(job: Job, keys: dict[str, str], path: Path) -> tuple[Job, dict[str, str]]:
    """Return a job as its run directory has settled it, and its keys.

    Where nothing was chosen yet, or is to be chosen, they are those that were given.
    """
    choice = known_choice(keys, path) if job.open else None
    if choice is None:
        return job, keys
    job = settle(job, choice)
    return job, stage_keys(job)


def known_choice(keys: Mapping[str, str], path: Path) -> Choice | None:
    """Return what an earlier call has chosen for the job of some keys, None if none has."""
    try:
        entry = read_manifest(path).get(ENTRY)
    except StoreError:
        return None  # `run` says what is wrong with it
    if entry is None or entry["job"] != keys["export"]:
        return None
    return Choice(entry["values"], tuple(entry["said"]))


def trial_parent(path: Path) -> Path:
    """Return where the jobs are tried that a run chooses among."""
    return path.with_name(f"{path.name}-choice")


def make_choice(
    job: Job,
    keys: Mapping[str, str],
    path: Path,
    *,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None = None,
) -> tuple[Job, dict[str, str], tuple[str, ...]]:
    """Choose the methods that a job leaves open, or take those that an earlier call has chosen.

    Parameters
    ----------
    job, keys
        An open job, and its keys.
    path
        Its run directory.
    on, reporter, executor
        As in `eigenscape.run`.

    Returns
    -------
    job
        The job with its methods.
    keys
        Its keys, of the files by which they were chosen.
    notes
        How they were chosen, in lines.

    Raises
    ------
    InputError
        The scene or its labels cannot be read.
    SceneError
        A file has changed since the keys were made: what was tried is deleted.
    """
    began = time.time()
    if (choice := known_choice(keys, path)) is not None:
        return *_settle_unchanged(job, keys, choice, began), choice.notes
    parent = trial_parent(path)
    check_ours(parent)
    with explain_write_errors(parent):
        parent.mkdir(parents=True, exist_ok=True)
    with hold(parent, reporter.note):
        if (choice := known_choice(keys, path)) is None:
            choice = choose(job, parent, on, reporter, executor)
            try:
                chosen, chosen_keys = _settle_unchanged(job, keys, choice, began)
            except SceneError:
                # The directory of the next call has another key in its name.
                forget_trials(path)
                raise
            directory = Run(path)
            with directory.lock(reporter.note):
                directory.manifest[ENTRY] = choice.to_json(keys["export"])
                directory.save_manifest()
        else:
            chosen, chosen_keys = _settle_unchanged(job, keys, choice, began)
    for line in choice.notes:
        reporter.note(line)
    return chosen, chosen_keys, choice.notes


def _settle_unchanged(
    job: Job, keys: Mapping[str, str], choice: Choice, began: float
) -> tuple[Job, dict[str, str]]:
    """Return a job with its methods and its keys, of the files that the keys of the open job describe."""
    chosen = settle(job, choice)
    chosen_keys = stage_keys(chosen)
    # Last: a file that changes later is noticed by the stage that reads it.
    check_inputs_unchanged(job, keys, began)
    return chosen, chosen_keys


def held_bytes() -> int:
    """Return the memory that this process holds after a choice, in libraries and kernels, as measured."""
    release()
    return max(HELD_BYTES, anonymous_bytes() - _FIRST_STAGE)


def forget_trials(path: Path) -> None:
    """Delete what was tried for a run that is finished."""
    parent = trial_parent(path)
    if is_ours(parent):
        shutil.rmtree(parent, ignore_errors=True)
