"""``learn.method = "auto"``: a job whose methods are open becomes one that says them, before its stages run.

A handful of jobs is tried on the scene, or on a part of a large one, by draws of its own labels; the same on
every machine, so the choice depends on the scene and the seed alone. Where and how long it is kept:
`eigenscape.workflow.choice.kept`.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import collected_quickly
from eigenscape.base.process.progress import Reporter, Silent
from eigenscape.clusters import ClusterOptions, Executor, connect
from eigenscape.job.jobfile import Job
from eigenscape.labels.nested import Part
from eigenscape.learn.propagate.sizes import EXACT_ROWS
from eigenscape.scenes.ingest.content import check_two_classes
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.accuracy import Accuracy
from eigenscape.workflow.choice.candidates import (
    AUTO,
    FEW_LABELS,
    GRAPHLESS,
    PROBE,
    WIDER,
    WITH_EIGENVECTORS,
    Ladder,
    candidate,
    fitted,
)
from eigenscape.workflow.choice.descriptions import (
    NO_LABELS,
    NOTHING_TO_TRY,
    describe_choice,
    describe_few_labels,
    describe_plan,
)
from eigenscape.workflow.choice.search import Search, Unlimited
from eigenscape.workflow.choice.survey import Survey, survey
from eigenscape.workflow.choice.tried import Interval, Tried, lead
from eigenscape.workflow.choice.window import Window, window_of
from eigenscape.workflow.directories import WIDER_FILE, WINDOW_FILE

MOST_PIXELS = 4096
"""Pixels of the part of a scene by which methods are chosen; a small image is taken whole."""

MOST_COMPARED = 2**15
"""Labelled pixels that jobs are compared by, at most: more would take longer than the run. Measured: 354 s
with 108,111 pixels, six jobs and ten draws each."""

MOST_WIDER = EXACT_ROWS
"""Pixels of a scene, or of a wider part of one, in which jobs with graphs are compared with others, at most.
Harmonic functions and regularisation take few iterations there."""

MOST_SOLVED = 2**20
"""Pixels of a scene in which eigenvectors are computed for the comparison, at most. Measured: 47 s with
640,976 pixels, which the run does not spend again if that job is chosen."""

_HELD = 0.9
"""Share of the labels that the wider part holds at least."""

_SUFFICIENT = 2**13
"""Labelled pixels of the wider part that are enough, whatever the scene has beside."""

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


@dataclass(frozen=True)
class _Surveyed:
    """An open job, and what is known before anything is tried.

    Attributes
    ----------
    scene
        What its scene is.
    small
        Keys that a scene of few pixels needs.
    job
        The job with these.
    untried
        The choice where nothing is to be tried, as labels are missing or few; otherwise None.
    """

    scene: Survey
    small: Mapping[str, Any]
    job: Job
    untried: Choice | None


def _survey_job(job: Job) -> _Surveyed:
    """Survey the scene of a job; decide at once where there is nothing to compare jobs by."""
    scene = survey(job)
    small = fitted(job, scene)
    job = candidate(job, small).job
    untried = None
    if not scene.labelled:
        untried = Choice({**small, "learn.method": job.learn.method}, (NO_LABELS,))
    else:
        check_two_classes(scene.labelled, scene.names)
        if has_few_labels(scene):
            note = f"{describe_few_labels(scene)}, nothing was tried"
            untried = Choice({**small, **FEW_LABELS}, (note,))
    return _Surveyed(scene, small, job, untried)


def plan_choice(job: Job) -> tuple[list[Job], tuple[str, ...]]:
    """Return the candidates, about, and the notes that list them; none of both without labels."""
    surveyed = _survey_job(job)
    job, scene = surveyed.job, surveyed.scene
    if not scene.labelled:
        return [], ()
    if surveyed.untried is not None:
        return [candidate(job, FEW_LABELS).job], (NOTHING_TO_TRY,)
    tried = [
        (rung.name, option.keys_on(scene))
        for rung in AUTO.rungs
        for option in rung.options
        if option.keys and option.fits(job, scene)
    ]
    jobs = [candidate(job, {**AUTO.start, **keys}).job for _, keys in tried]
    further = None
    if not scene.table and is_compared_in_part(scene):
        further = sum(option.fits(job, scene) for option in WIDER.rungs[0].options)
    return jobs, describe_plan(scene, _compared(scene), tried, further)


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
        See `eigenscape.workflow.choice.kept.make_choice`.
    parent
        The directory.
    part
        Labels that the choice may see: all, or those that no verdict is held on.
    """
    surveyed = _survey_job(job)
    if surveyed.untried is not None:
        return surveyed.untried
    job, scene, small = surveyed.job, surveyed.scene, surveyed.small
    with explain_write_errors(parent):
        (parent / "variants").mkdir(parents=True, exist_ok=True)
    window = window_of(job, parent / WINDOW_FILE, _compared(scene), job.learn.seed)
    limits = job.limits
    connection = (
        nullcontext(executor) if executor is not None
        else connect(on, limits.threads, limits.memory_bytes, reporter.note)
    )  # fmt: skip
    siblings = Siblings((parent / "variants").iterdir)
    with connection as connected, collected_quickly():
        scorer = Accuracy(parent, on, Silent(), connected, siblings)
        climb = partial(_climb, job, scene, scorer, reporter, part)
        found = _search_part(climb, scene, window)
        if window.notes and not scene.table:
            found = _search_wider_part(climb, found, job, scene, window, parent)
        best, tie = (None, "") if found is None else found.settle_tie()
    if best is None and found is not None and found.failures:
        raise found.failures[0]
    if found is None or best is None or not best.accuracy:
        note = f"{describe_few_labels(scene)}: none was left to test on"
        return Choice({**small, **FEW_LABELS}, (note,))
    notes = describe_choice(found.search, best, found.where, tie)
    return Choice({**small, **best.candidate.values}, notes)


@dataclass(frozen=True)
class _Found:
    """The jobs that were compared in one place.

    Attributes
    ----------
    search
        What was tried.
    best
        Jobs that the last rung has kept, the best first; none where all have failed.
    where
        Part of the scene by which they were compared, in words; empty for a small scene.
    """

    search: Search
    best: list[Tried]
    where: str

    @property
    def failures(self) -> list[Exception]:
        """Errors of the jobs that failed."""
        return [one.error for one in self.search.tried.values() if one.error is not None]

    def settle_tie(self) -> tuple[Tried | None, str]:
        """Return the job to take, None if there is none, and what decided if it was not the squares."""
        if not self.best:
            return None, ""
        if not self.best[0].accuracy:
            return self.best[0], ""
        return self.search.settle_tie(self.best[0], self.search.tried.values())


def _climb(
    job: Job,
    scene: Survey,
    scorer: Accuracy,
    reporter: Reporter,
    part: Part,
    ladder: Ladder,
    tried_on: Job,
    where: str,
) -> _Found:
    """Try the jobs of a ladder on a job of the scene or of a part of it."""
    search = Search(
        tried_on, scene, job.learn.split if scene.table or _splits(job) else "blocked", scorer,
        Unlimited(), reporter, name="choice", part=part, final_draws=ladder.rungs[-1].draws,
    )  # fmt: skip
    return _Found(search, search.climb(ladder), where)


def _search_part(
    climb: Callable[[Ladder, Job, str], _Found], scene: Survey, window: Window
) -> _Found | None:
    """Return the best job on the first part, or in a small scene; None if the part has few labels."""
    # A few labels in a part decide nothing: then the whole scene, or a wider part, decides.
    enough = window.labelled >= LEAST_LABELS * len(scene.labelled)
    if enough or scene.table or not window.notes:
        return climb(AUTO, window.job, window.notes)
    return None


def _search_wider_part(
    climb: Callable[[Ladder, Job, str], _Found],
    found: _Found | None,
    job: Job,
    scene: Survey,
    window: Window,
    parent: Path,
) -> _Found | None:
    """Return the best job in the whole scene or a wider part, if the first part is not sufficient.

    Where that part is doubtful, or no job with a graph is clearly ahead of those without, its best job is
    compared with others, if that is not too long.

    Parameters
    ----------
    climb
        Tries the jobs of a ladder.
    found
        What was found on the first part; returned where that is sufficient.
    job, scene, parent
        As in `choose`.
    window
        The first part.
    """
    wider = _wider_part(job, scene, parent)
    if wider is None:
        return found
    first = found.best[0] if found is not None and found.best else None
    if (
        found is not None
        and first is not None
        and not _is_doubtful(found.search, first, window)
        and not any(map(_is_noisy, climb(PROBE, wider.job, "").best))
    ):
        return found
    there = climb(wider.ladder, wider.job, wider.notes)
    if first is None:
        return there
    rival = there.search.add(candidate(wider.job, first.candidate.values), "part")
    best = there.search.finish([*there.best, rival])
    return replace(there, best=best) if best else found


@dataclass(frozen=True)
class WiderPart:
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


def _wider_part(job: Job, scene: Survey, parent: Path) -> WiderPart | None:
    """Return the whole scene, or a wider part that holds its labels; None where that takes too long."""
    total = sum(scene.labelled.values())
    most = MOST_WIDER if total <= MOST_COMPARED else MOST_WIDER * MOST_COMPARED // total
    larger = window_of(job, parent / WIDER_FILE, most, job.learn.seed)
    reason = "because a smaller part is not sufficient"
    if not larger.notes:
        return WiderPart(job, f"the whole scene, {reason}", WIDER)
    if not _leaves_out(larger, total):
        return WiderPart(larger.job, f"{larger.notes}, {reason}", WIDER)
    if total > MOST_COMPARED:
        return None
    # Labels that are scattered over a large scene: spreading them on graphs of all of it takes too long.
    ladder = WITH_EIGENVECTORS if scene.pixels <= MOST_SOLVED else GRAPHLESS
    return WiderPart(job, f"the whole scene, {reason}", ladder)


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
