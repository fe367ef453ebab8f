"""``learn.method = "auto"``: a job whose methods are open becomes one that says them, before its stages run.

A handful of jobs is tried on the scene, or on a part of a large one, by draws of its own labels; the same on
every machine, so the choice depends on the scene and the seed alone. It is kept in the manifest of the run,
and a run that goes on does not choose again. What is tried lies beside the run until it is finished.
"""

import shutil
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import anonymous_bytes, collected_quickly, release
from eigenscape.base.process.progress import Reporter, Silent
from eigenscape.clusters import ClusterOptions, Executor, connect
from eigenscape.errors import SceneError, StoreError
from eigenscape.job.choices import show
from eigenscape.job.jobfile import Job
from eigenscape.labels.nested import Part
from eigenscape.learn.propagate.sizes import EXACT_ROWS
from eigenscape.scenes.ingest.content import check_two_classes
from eigenscape.store.lock import hold
from eigenscape.store.manifest import read_manifest
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.accuracy import Accuracy
from eigenscape.workflow.choice.candidates import (
    AUTO,
    FEW_LABELS,
    GRAPHLESS,
    PROBE,
    ROOM,
    VAST,
    Ladder,
    candidate,
    fitted,
)
from eigenscape.workflow.choice.search import QUICK_PIXELS, Search, Unlimited
from eigenscape.workflow.choice.survey import Survey, survey
from eigenscape.workflow.choice.tried import Interval, Tried, lead
from eigenscape.workflow.choice.window import Window, window_of
from eigenscape.workflow.directories import ROOM_FILE, WINDOW_FILE, check_ours, is_ours
from eigenscape.workflow.stages import check_inputs_unchanged, stage_keys

MOST_PIXELS = 4096
"""Pixels of the part of a scene by which methods are chosen; a small image is taken whole."""

MOST_COMPARED = 2**15
"""Labelled pixels that jobs are compared by, at most: more would take longer than the run. Measured: 354 s
with 108,111 pixels, six jobs and ten draws each."""

MOST_ROOM = EXACT_ROWS
"""Pixels of a scene, or of a larger part of one, in which jobs with graphs are compared with others, at most.
Harmonic functions and regularisation take few iterations there."""

MOST_SOLVED = 2**20
"""Pixels of a scene in which eigenvectors are computed for the comparison, at most. Measured: 47 s with
640,976 pixels, which the run does not spend again if that job is chosen."""

_HELD = 0.9
"""Share of the labels that the larger part holds at least."""

_SUFFICIENT = 2**13
"""Labelled pixels of the larger part that are enough, whatever the scene has beside."""

LEAST_LABELS = 10
"""Labelled pixels of a class, on average, below which nothing is tried."""

_MOST_NOISE = 20.0
"""Half of the interval of an accuracy by four draws, in percent, above which a part is doubtful: that of the
best job on the part, and that of a support vector machine in the whole scene. Measured with several seeds and
draws of a tenth, on the part: 4 to 10 on EnMAP and Urban, 7 to 31 on Indian Pines, 4 to 26 on polygons of
Landsat, 1 to 5 on a historical map with 17 polygons. In the whole scene: 6 to 8 on EnMAP, 4 to 7 on Indian
Pines, 14 to 23 on the polygons, 37 to 42 on the map, where the best job of the part has 30 points less than a
machine."""

_MOST_LACKING = 0.01
"""Share of the labelled pixels whose classes a part may lack: mistakes with them cannot be seen there.
Measured: 0 to 0.2 % on Indian Pines, EnMAP and Urban, 2.5 % on polygons of Landsat, where the method that is
best on the part has 20 points less in the whole scene."""

HELD_BYTES = 96 * 2**20
"""Bytes that a process holds after a choice: libraries and compiled kernels of all methods. Measured with
tests/bench/memory.py: 39 to 64 MiB on scenes of 2,000 and 160,000 pixels, 92 MiB on one of 20,000."""

_FIRST_STAGE = 120 * 2**20
"""Bytes of libraries that the plan of the first stage counts already."""

ENTRY = "choice"
"""Key of the choice in the manifest."""


@dataclass(frozen=True)
class Choice:
    """Methods that were chosen for a job.

    Attributes
    ----------
    values
        Keys, and what they are.
    notes
        How they were chosen, in lines.
    """

    values: Mapping[str, Any]
    notes: tuple[str, ...]

    def to_json(self, key: str) -> dict[str, Any]:
        """Return what the manifest says of it, for a job with a key."""
        return {"job": key, "values": dict(self.values), "said": list(self.notes)}


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


def plan_choice(job: Job) -> tuple[list[Job], tuple[str, ...]]:
    """Return the candidates, about, and the notes that list them; none of both without labels."""
    scene = survey(job)
    job = candidate(job, fitted(job, scene)).job
    if not scene.labelled:
        return [], ()
    check_two_classes(scene.labelled, scene.names)
    if has_few_labels(scene):
        return [candidate(job, FEW_LABELS).job], ("methods for few labels: nothing is tried",)
    tried = [
        (rung.name, option.keys_on(scene))
        for rung in AUTO.rungs
        for option in rung.options
        if option.keys and option.fits(job, scene)
    ]
    jobs = [candidate(job, {**AUTO.start, **keys}).job for _, keys in tried]
    further = sum(option.fits(job, scene) for option in ROOM.rungs[0].options)
    how, things = (
        ("cross-validation", "samples") if scene.table else ("blocked cross-validation", "pixels")
    )
    return jobs, (
        f"methods are chosen before the first stage, by {how} on "
        f"{_compared(scene):,} of {scene.pixels:,} {things}, in steps:",
        *(
            f"  {name}: {', '.join(f'{key} = {show(value)}' for key, value in keys.items())}"
            for name, keys in tried
        ),
        *(
            (
                f"  if this part is not sufficient: up to {further} further methods, on all or more of "
                "the scene",
            )
            if not scene.table and is_compared_in_part(scene)
            else ()
        ),
    )


def has_few_labels(scene: Survey) -> bool:
    """Whether the labels are so few that nothing is tried, and `FEW_LABELS` is taken."""
    return sum(scene.labelled.values()) < LEAST_LABELS * len(scene.labelled)


def is_compared_in_part(scene: Survey) -> bool:
    """Whether jobs are compared on a part of a scene, at first at least."""
    return scene.pixels > _compared(scene)


def _compared(scene: Survey) -> int:
    """Return the number of pixels, or samples, by which the jobs are compared first."""
    return scene.pixels if scene.small else min(scene.pixels, MOST_PIXELS)


def choose(
    job: Job,
    parent: Path,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None,
    part: Part = "all",
) -> Choice:
    """Choose the methods that a job leaves open; what is tried stays in a directory.

    Parameters
    ----------
    job, on, reporter, executor
        See `make_choice`.
    parent
        The directory.
    part
        Labels that the choice may see: all, or those that no verdict is held on.
    """
    scene = survey(job)
    small = fitted(job, scene)
    job = candidate(job, small).job
    if not scene.labelled:
        return Choice(
            {**small, "learn.method": job.learn.method},
            ("no labels: the methods are the defaults",),
        )
    check_two_classes(scene.labelled, scene.names)
    total, classes = sum(scene.labelled.values()), len(scene.labelled)
    if has_few_labels(scene):
        note = f"methods for few labels ({total} of {classes} classes), nothing was tried"
        return Choice({**small, **FEW_LABELS}, (note,))
    with explain_write_errors(parent):
        (parent / "variants").mkdir(parents=True, exist_ok=True)
    window = window_of(job, parent / WINDOW_FILE, _compared(scene), job.learn.seed)
    where = window.notes
    limits = job.limits
    connection = (
        nullcontext(executor) if executor is not None
        else connect(on, limits.threads, limits.memory_bytes, reporter.note)
    )  # fmt: skip
    siblings = Siblings((parent / "variants").iterdir)
    with connection as connected, collected_quickly():
        scorer = Accuracy(parent, on, Silent(), connected, siblings)
        split = job.learn.split if scene.table or _splits(job) else "blocked"

        def climb(ladder: Ladder, tried_on: Job) -> tuple[Search, list[Tried]]:
            search = Search(
                tried_on, scene, split, scorer, Unlimited(), reporter, name="choice", part=part,
                final_draws=ladder.rungs[-1].draws,
            )  # fmt: skip
            return search, search.climb(ladder)

        # A few labels in a part decide nothing: then the whole scene, or a larger part, decides.
        # Where a part is doubtful, or no job with a graph is clearly ahead of those without, its best job
        # is compared with others there, if that is not too long.
        best: list[Tried] = []
        partial = bool(where) and not scene.table
        if not partial or window.labelled >= LEAST_LABELS * classes:
            search, best = climb(AUTO, window.job)
        room = _room(job, scene, parent) if partial else None
        if room is not None and (
            not best
            or _is_doubtful(search, best[0], window)
            or any(map(_is_noisy, climb(PROBE, room.job)[1]))
        ):
            wider, found = climb(room.ladder, room.job)
            rivals = (
                [wider.add(candidate(room.job, best[0].candidate.values), "part")] if best else []
            )
            found = wider.finish([*found, *rivals]) if rivals else found
            if found or not best:
                where, search, best = room.notes, wider, found
        tie = ""
        if best and best[0].accuracy:
            chosen, tie = search.settle_tie(best[0], search.tried.values())
            best = [chosen]
    failures = [one.error for one in search.tried.values() if one.error is not None]
    if not best and failures:
        raise failures[0]
    if not best or not best[0].accuracy:
        note = f"methods for few labels ({total} of {classes} classes): none was left to test on"
        return Choice({**small, **FEW_LABELS}, (note,))
    return Choice({**small, **best[0].candidate.values}, _describe(search, best[0], where, tie))


@dataclass(frozen=True)
class _Room:
    """Where the best job of a doubtful part is compared with others.

    Attributes
    ----------
    job
        The job there.
    notes
        What it is, in words.
    ladder
        The other jobs.
    """

    job: Job
    notes: str
    ladder: Ladder


def _room(job: Job, scene: Survey, parent: Path) -> _Room | None:
    """Return the whole scene, or a larger part that holds its labels; None where that takes too long."""
    total = sum(scene.labelled.values())
    most = MOST_ROOM if total <= MOST_COMPARED else MOST_ROOM * MOST_COMPARED // total
    larger = window_of(job, parent / ROOM_FILE, most, job.learn.seed)
    reason = "because a smaller part is not sufficient"
    if not larger.notes:
        return _Room(job, f"the whole scene, {reason}", ROOM)
    if not _leaves_out(larger, total):
        return _Room(larger.job, f"{larger.notes}, {reason}", ROOM)
    if total > MOST_COMPARED:
        return None
    # Labels that are scattered over a large scene: spreading them on graphs of all of it takes too long.
    ladder = VAST if scene.pixels <= MOST_SOLVED else GRAPHLESS
    return _Room(job, f"the whole scene, {reason}", ladder)


def is_scattered(part: Window, scene: Survey) -> bool:
    """Return whether a part of an image leaves out labels, and jobs can be compared by all of them."""
    total = sum(scene.labelled.values())
    can = not scene.table and scene.pixels <= MOST_SOLVED and total <= MOST_COMPARED
    return can and bool(part.notes) and _leaves_out(part, total)


def _leaves_out(part: Window, total: int) -> bool:
    return part.lacking > _MOST_LACKING or part.labelled < min(_HELD * total, _SUFFICIENT)


def _is_doubtful(search: Search, best: Tried, window: Window) -> bool:
    """Whether the best job on a part may not be the best one in the whole scene."""
    if _is_noisy(best) or window.lacking > _MOST_LACKING or not best.has_graph:
        return True
    rivals = [one for one in search.tried.values() if one.accuracy and not one.has_graph]
    # None, where the best job left no room for a lead.
    return not rivals or any(
        not one.far_behind and not lead(best, one).beyond_noise for one in rivals
    )


def _is_noisy(one: Tried) -> bool:
    half = Interval.of(one.accuracy).half if one.accuracy else None
    return half is None or half > _MOST_NOISE


def _splits(job: Job) -> bool:
    return "split" in job.learn.model_fields_set


def _describe(search: Search, best: Tried, where: str, tie: str) -> tuple[str, ...]:
    """Return what was chosen, by what margin, and on what."""
    others = [one for one in search.tried.values() if one is not best and one.accuracy]
    first = next(iter(search.tried.values()))
    count = sum(one.drawn > 0 for one in search.tried.values())
    lines = [
        f"methods chosen among {count} on {where or 'the scene'}: "
        + ", ".join(f"{key} = {show(value)}" for key, value in best.candidate.values.items()),
    ]
    if others:
        over = ""
        if best is not first and first.accuracy:
            over = f", {lead(best, first)} over {first.candidate.title}"
        half = " with half of the labels to learn from:" if search.job.learn.train == "all" else ""
        second = max(others, key=lambda one: one.mean(one.drawn))
        lines.append(
            f"accuracy there{half} {Interval.of(best.accuracy)}{over}; the next: "
            f"{100 * second.mean(second.drawn):.1f} % ({second.candidate.title})"
        )
        if second.slow and second.mean(second.drawn) > best.mean(best.drawn):
            lines.append(
                f"the next is ahead by no more than {lead(second, best)}, and takes much longer in a scene "
                f"of more than {QUICK_PIXELS:,} pixels"
            )
    return (*lines, tie) if tie else tuple(lines)
