"""Tuning of a job: candidates are compared on half of the squares, and the best is scored on the others.

::

    runs/indian-pines-tuned/
        best.toml         the chosen job, with what is known of it
        table.csv         a row for each job that was tried
        accuracy.png      accuracy with its interval against seconds
        tune.json         how many seconds are spent, of how many, on what, and whether it has ended
        window.npy        mask of the part of a big scene that is tuned on
        judging.npy       mask of the labels of a big scene that no choice sees
        default/          what is compared for the job as it was given, where it names no methods
        variants/         a run directory for each job; equal stages are shared by hard links

The manifests of the variants record what is finished: a call after a kill continues and repeats nothing.
If the job or its files have changed, the budget begins anew.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import collected_quickly
from eigenscape.base.process.progress import Reporter, default_reporter
from eigenscape.base.shares import counted
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.workers.client import place_of
from eigenscape.errors import InputError
from eigenscape.job.files.overrides import changed_name
from eigenscape.job.jobfile import Job
from eigenscape.labels.nested import judging_pixels
from eigenscape.store.lock import hold
from eigenscape.store.manifest import path_of
from eigenscape.store.siblings import Siblings
from eigenscape.tuning.budget import Budget, as_seconds
from eigenscape.tuning.outcomes import Tuned
from eigenscape.tuning.picture import draw_tried
from eigenscape.tuning.report import write_job, write_tried
from eigenscape.tuning.stability import Stability
from eigenscape.tuning.status import output_files
from eigenscape.workflow.choice.accuracy import Accuracy
from eigenscape.workflow.choice.auto import (
    LEAST_LABELS,
    choose,
    is_compared_in_part,
    is_scattered,
)
from eigenscape.workflow.choice.candidates import (
    CLUSTERS,
    GRAPHLESS,
    LADDER,
    SCATTERED,
    Candidate,
    Ladder,
    candidate,
    fitted,
)
from eigenscape.workflow.choice.search import FINALISTS, Search
from eigenscape.workflow.choice.survey import Survey, survey
from eigenscape.workflow.choice.trials import run_candidate
from eigenscape.workflow.choice.tried import SHARED, Interval, lead
from eigenscape.workflow.choice.window import Window, set_aside, window_of
from eigenscape.workflow.directories import (
    TUNING_FILE,
    WINDOW_FILE,
    check_kept,
    check_ours,
    parent_directory,
)
from eigenscape.workflow.many.progress import StudyProgress
from eigenscape.workflow.objects import as_job
from eigenscape.workflow.stages import STAGES, check_inputs_unchanged, stage_keys

MOST_PIXELS = 2**16
"""Largest number of pixels used for tuning; of a larger scene, a part is used, unless few labels are
scattered over it."""


def tune(
    job: Job | Mapping[str, Any] | str | Path,
    *,
    budget: float | str = 600.0,
    on: ClusterOptions | str | Path | None = None,
    client: Any = None,
    run_dir: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Tuned:
    """Find the best of many jobs on a scene by blocked cross-validation, within a budget.

    Keys that the job gives are kept; values of the other keys are tried. The call continues an earlier call
    with the same directory. Without labels, and for methods that need none, jobs are compared by the
    stability of their clusters.

    Parameters
    ----------
    job
        A job with at least a scene and labels, as in `eigenscape.run`.
    budget
        Time limit, in seconds or as text such as "10min", including earlier calls on the same job and files.
        A candidate that has begun is completed, and the given job is scored and judged in any case.
    on, client
        Cluster or client to run on, as in `eigenscape.run`. A cluster is started only once.
    run_dir
        Directory of the tuning; ``runs/<name>-tuned`` by default.
    reporter
        As in `eigenscape.run`.

    Returns
    -------
    Tuned
        The chosen job, its accuracy, and all jobs that were tried.

    Raises
    ------
    InputError
        The scene cannot be read, or no job can be tuned on it.

    Notes
    -----
    The job is chosen on half of the labels, in squares of the scene. The other half is not used in any
    earlier draw; the accuracy of the chosen job is measured on it. With ``learn.test``, or a file in
    ``learn.train``, it is chosen on all labels to learn from, and measured on the others. `Tuned.gain`
    compares both jobs on the same draws of training pixels. Clusters are compared with the clusters of parts
    of the scene; the parts for the choice and for the final score differ.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> tuned = eigenscape.tune(job, budget=2)
    >>> tuned.judged["blocked"].mean > 50
    True
    """
    job = as_job(job)
    seconds = as_seconds(budget)
    reporter, on = reporter or default_reporter(), place_of(on, client)
    if job.study is not None:
        raise InputError(
            f"{job.name}: is a study, which names its variants. Tune a job without one."
        )
    path, is_open = tuning_directory(job, run_dir), job.open
    check_ours(path, TUNING_FILE)
    best = output_files(path)["job"]
    check_kept(job, best)
    began, keys = time.time(), stage_keys(job)
    check = partial(check_inputs_unchanged, job, keys, began)
    scene = survey(job)
    job = job.model_copy(update={"preset": None})  # what is chosen is said
    job = candidate(job, fitted(job, scene)).job
    clusters = job.learn.unsupervised or not scene.labelled
    with explain_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with hold(path, reporter.note):
        with explain_write_errors(path):
            (path / "variants").mkdir(exist_ok=True)
        spent = Budget(seconds, path / TUNING_FILE, keys["export"])
        if not spent.continues and best.exists():
            reporter.note(
                f"{best}: was chosen for another job, for other files or by another version, and will be "
                "replaced; the budget begins anew. To keep it, give another directory with --run-dir."
            )
        # From here on, what an earlier call has chosen is not the end.
        spent.note()
        window = window_of(job, path / WINDOW_FILE, MOST_PIXELS, job.learn.seed, judged=True)
        ladder = CLUSTERS if clusters else LADDER
        if not clusters and is_scattered(window, scene):
            ladder = SCATTERED
            (path / WINDOW_FILE).unlink(missing_ok=True)
            window = Window(job, "the whole scene, as labels are scattered over it")
        part, notes = window.job, [f"Tuned on {window.notes}."] if window.notes else []
        for note in notes:
            reporter.note(note)
        limits = job.limits
        connection = connect(on, limits.threads, limits.memory_bytes, reporter.note)
        siblings = Siblings(partial(_tried, path))
        with connection as executor, collected_quickly():
            kind = Stability if clusters else Accuracy
            scorer = kind(path, on, StudyProgress(reporter, 0, []), executor, siblings)
            split = "parts" if clusters else split_of(job, table=scene.table)
            search = Search(part, scene, split, scorer, spent, reporter)
            start: Mapping[str, Any] = {}
            if clusters and not job.learn.unsupervised:
                start = CLUSTERS.start
            elif is_open and not clusters:
                start = _choose_given(part, scene, split, scorer, ladder.start, reporter)
            given = candidate(part, start)
            try:
                return _tune(search, ladder, spent, job, given, path, notes, check)
            except BaseException:
                # Of what was stopped, too: its table says how far it came.
                write_tried(output_files(path)["table"], tuple(search.tried.values()), None, given)
                raise


def _choose_given(
    part: Job,
    scene: Survey,
    split: str,
    scorer: Accuracy | Stability,
    start: Mapping[str, Any],
    reporter: Reporter,
) -> Mapping[str, Any]:
    """Return what a run of an open job would choose by itself, about: it sees no labels that judge.

    On a part of the scene, labels would be halved in another way than on all of it. So those that judge
    are drawn first, and are labels to test on for the choice.
    """
    path, on, executor = scorer.path, scorer.on, scorer.executor
    if is_compared_in_part(scene) and not _judging_file(part):
        reading = candidate(part, start).job
        run, _ = run_candidate(
            reading, STAGES[:1], path / "variants", on=on, reporter=scorer.reporter,
            executor=executor, siblings=scorer.siblings,
        )  # fmt: skip
        judging = judging_pixels(run, part, split)
        part = set_aside(part, judging, path / "judging.npy")
    return choose(part, path / "default", on, reporter, executor, "choosing").values


def _tried(path: Path) -> Iterator[Path]:
    """Yield the directories of jobs that were tried, for the default too."""
    for parent in (path, path / "default"):
        if (variants := parent / "variants").is_dir():
            yield from variants.iterdir()


def tuning_directory(job: Job, run_dir: str | Path | None, overrides: Sequence[str] = ()) -> Path:
    """Return where a job is tuned; with overrides of its file elsewhere, so that the results of both stay."""
    if run_dir is not None:
        return path_of(run_dir).resolve()
    return (parent_directory(job) / f"{job.name}{changed_name(overrides)}-tuned").resolve()


def split_of(job: Job, *, table: bool) -> str:
    """Return how training pixels are drawn: by squares, unless there are none or the job says otherwise."""
    return job.learn.split if table or "split" in job.learn.model_fields_set else "blocked"


def _tune(
    search: Search,
    ladder: Ladder,
    budget: Budget,
    job: Job,
    given: Candidate,
    path: Path,
    notes: list[str],
    check: Callable[[], None],
) -> Tuned:
    first = search.add(given, "as given")
    # Quick jobs without a graph come first: whatever time the others take, the best of these is a finalist.
    quick = search.climb(GRAPHLESS) if ladder is not CLUSTERS else []
    if not search.untested:
        # It is scored in any case, and may leave no room for others.
        search.finish([first])
    best = [] if search.untested or search.unbeatable else search.climb(ladder)
    if search.untested:
        raise InputError(_too_few_labels(search, job))
    others = [*quick, *(one for one in best if one not in quick)]
    others = [one for one in others if one is not first]
    ranked = search.finish([first, *others[:FINALISTS]])
    if not ranked:
        reasons = "; ".join(sorted({one.reason for one in search.tried.values() if one.reason}))
        raise InputError(f"{job.name}: none of the jobs that were tried can work: {reasons}")
    if first.error:
        raise InputError(f"{job.name}: as it was given it cannot work: {first.reason}")
    leading, kept = ranked[0], ""
    ahead = lead(leading, first, elsewhere=True)
    if leading is not first and search.split != "parts" and not ahead.beyond_noise:
        # The best of many is ahead of any by luck.
        title = leading.candidate.title or "the next job"
        kept = f"Kept as given: {title} is ahead by {ahead}, which need not hold elsewhere."
        leading = first
    winner, tie = search.settle_tie(leading, ranked)
    tie = tie or kept
    chosen = winner.candidate
    judged, default = _judge(search, chosen, given)
    pairs = zip(judged[search.split], default[search.split], strict=True)
    shared = 0.0 if search.split == "parts" else SHARED
    gain = Interval.of([ours - theirs for ours, theirs in pairs], shared=shared)
    tried = tuple(search.tried.values())
    outputs = output_files(path)
    tuned = Tuned(
        path, candidate(job, chosen.values).job, chosen.values, tried,
        {split: Interval.of(shares) for split, shares in judged.items()},
        {split: Interval.of(shares) for split, shares in default.items()},
        gain, budget.spent, given.title, outputs=outputs,
    )  # fmt: skip
    tuned = replace(tuned, notes=(*describe(tuned, search.split), *filter(None, [tie]), *notes))
    check()
    write_job(outputs["job"], tuned.job, tuned.notes)
    write_tried(outputs["table"], tried, chosen, given)
    title, measured = (
        f"{job.name}: {counted(tuned.count, 'job')} tried",
        _AXES.get(search.split, _AXES[""]),
    )
    draw_tried(outputs["plot"], tried, chosen, given, title, measured)
    budget.note(finished=True)
    return tuned


def _too_few_labels(search: Search, job: Job) -> str:
    """Return why jobs cannot be compared: no draw leaves labels to test on."""
    labelled = search.scene.labelled
    where = "squares of the scene" if search.split == "blocked" else f"{search.split} draws"
    return (
        f"{job.name}: jobs cannot be compared: with {sum(labelled.values()):,} labels of {len(labelled)} "
        f"classes, {where} leave no labels to test on. Half of the labels are kept for the final score, and "
        f"the others are divided again: give about {LEAST_LABELS} labels for each class, in several places. "
        f"`eigenscape run` uses methods for few labels."
    )


def _judge(
    search: Search, chosen: Candidate, given: Candidate
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the accuracies of two jobs on what the choice has not seen, and on a random split beside it."""
    found = {search.split: search.judge([chosen, given], search.split)}
    if search.split == "blocked" and not _judging_file(search.job) and search.budget.allows(2):
        found["random"] = search.judge([chosen, given], "random")
    ours, theirs = ({split: both[number] for split, both in found.items()} for number in (0, 1))
    return ours, theirs


def describe(tuned: Tuned, split: str) -> list[str]:
    """Return what is to be said of a chosen job, in lines."""
    judged, default, gain = tuned.judged[split], tuned.default[split], tuned.gain
    what, draws = _WHAT.get(split, (f"Accuracy on pixels ({split} draws)", _TRAINING))
    if split != "parts" and (key := _judging_file(tuned.job)):
        what = _FILES[key]
    elif draws is _TRAINING and tuned.job.learn.train == "all":
        draws += ", about a quarter of the labels each"
    how = f"mean and 95 % interval of {judged.draws} {draws}"
    noise = f", {'beyond' if gain.beyond_noise else 'within'} noise"
    if judged.half is None:
        how, noise = (
            "one fit to all labels to learn from",
            " (of one fit each, the noise is not known)",
        )
    verdict = [
        f"{what} that were not used for tuning: {judged}",
        f"({how}).",
        f"{_baseline(tuned, split)}: {default}; gain {gain}{noise}.",
    ]
    if not judged.draws:
        verdict = [
            f"{what} that were not used for tuning: not measured, as no labels are left for it. The lead of "
            "the chosen job may be luck."
        ]
    lines = [
        f"Chosen by `eigenscape tune` among {counted(tuned.count, 'job')} in {tuned.seconds:.0f} s.",
        *verdict,
    ]
    if "random" in tuned.judged and split != "random":
        lines.append(f"Random split: {tuned.judged['random']}; as given {tuned.default['random']}.")
    return lines


def _baseline(tuned: Tuned, split: str) -> str:
    """Return what the chosen job is compared with."""
    if not tuned.given:
        return "The job as it was given"
    if split == "parts":
        # A run of the job as it was given chooses nothing: it writes eigenvectors.
        return f"Compared with {tuned.given}"
    return f"The job as it was given (without tuning, it would choose {tuned.given})"


def _judging_file(job: Job) -> str:
    """Return the key that names a file by which labels are parted, learn.test first; empty if none does."""
    if job.learn.test is not None:
        return "learn.test"
    return "" if job.learn.train_file is None else "learn.train"


_TRAINING = "draws of training pixels"
_FILES = {
    "learn.test": "Accuracy on the labels of learn.test",
    "learn.train": "Accuracy on the labels outside learn.train",
}
"""What the verdict measures where a file says it."""
_WHAT = {
    "blocked": ("Accuracy on squares of the scene", _TRAINING),
    "parts": ("Agreement of the clusters with those of parts of the scene", "parts"),
}
"""What the verdict measures, and over what its interval is, by the split of the draws."""

_AXES = {
    "blocked": "accuracy on the squares it was chosen by",
    "parts": "agreement of the clusters of parts with those of all",
    "": "accuracy on the pixels it was chosen by",
}
"""What jobs were compared by, by the split of the draws."""
