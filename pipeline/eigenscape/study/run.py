"""Run every variant of a study over the stages that they share; write its table and its plot.

::

    runs/mnist-table-3-1/
        study.json          the variants: directory, stage keys, state, reason of a failure
        table.csv, .parquet one row for each variant and protocol
        plot.png            and a file for each of [[study.pictures]]
        variants/           a run directory each; equal stages are shared by hard links

The manifests of the variants record what is finished. So a killed study can be continued, and if a list of
values becomes longer, only the new variants are computed. No result depends on the order of the variants.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eigenscape.base.files.tables import Row, read_table, write_table
from eigenscape.base.files.whole import explain_write_errors, write_json, written_whole
from eigenscape.base.memory import collected_quickly
from eigenscape.base.process.progress import Reporter, default_reporter
from eigenscape.base.shares import counted
from eigenscape.base.version import __version__
from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.workers.client import place_of
from eigenscape.errors import InputError, concerns_all_variants, reason_of
from eigenscape.job.jobfile import Job
from eigenscape.job.study import StudyOptions
from eigenscape.store.lock import hold
from eigenscape.store.run import Run
from eigenscape.study.machine import describe_machine
from eigenscape.study.measuring import measure, missing, read_measured
from eigenscape.study.outcomes import (
    StudyResult,
    VariantOutcome,
    check_study_directory,
    has_finished,
    plan_outcomes,
    settle_variant,
    siblings_of,
    study_directory,
    study_text,
)
from eigenscape.study.pictures.plot import draw_plot
from eigenscape.study.pictures.variants import draw_pictures
from eigenscape.study.rows import score_rows, stage_columns
from eigenscape.workflow.directories import STUDY_FILE
from eigenscape.workflow.many.outcomes import count_states, fields_of, finished_result
from eigenscape.workflow.many.progress import StudyProgress
from eigenscape.workflow.objects import as_job
from eigenscape.workflow.spine import run
from eigenscape.workflow.stages import STAGES

FORMAT = 1


def run_study(
    job: Job | Mapping[str, Any] | str | Path,
    *,
    on: ClusterOptions | str | Path | None = None,
    client: Any = None,
    run_dir: str | Path | None = None,
    reporter: Reporter | None = None,
) -> StudyResult:
    """Run a study, or continue an unfinished one.

    Parameters
    ----------
    job
        A job with a table ``[study]``, as in `eigenscape.run`.
    on, client
        Cluster or client to run on, as in `eigenscape.run`. A cluster is started only once.
    run_dir
        Directory of the study; ``runs/<name>`` by default.
    reporter
        Called with the progress; by default a table in a notebook, elsewhere lines to the logger
        ``eigenscape``.

    Returns
    -------
    StudyResult
        The outcomes of all variants. A failed variant is recorded with the reason; the others are still run.

    Raises
    ------
    InputError
        The study or its files are invalid; nothing was computed.
    ClusterError, ClusterLostError, OutputError, OSError
        No further variant can be run; the same call continues the study.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job(
    ...     {
    ...         "scene": {"path": "scene.tif", "labels": "scene_labels.tif"},
    ...         "study": {"grid": {"neighbors.k": [5, 6]}},
    ...     }
    ... )
    >>> [outcome.state for outcome in eigenscape.run_study(job).outcomes]
    ['done', 'done']
    """
    job = as_job(job)
    if job.study is None:
        raise InputError(
            f"{job.name}: is not a study, because it has no table [study]. Add one, such as study.grid = "
            '{"neighbors.k" = [4, 8]}, or run the job with eigenscape.run.'
        )
    reporter, on = reporter or default_reporter(), place_of(on, client)
    path = study_directory(job, run_dir)
    check_study_directory(path, job)
    outcomes = plan_outcomes(job, path)
    with explain_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    with hold(path, reporter.note):
        with explain_write_errors(path):
            (path / "variants").mkdir(exist_ok=True)
        known = _known_machines(path)
        outcomes = [replace(o, machine=known.get(o.path.name, "")) for o in outcomes]
        _describe(path, job, outcomes)
        study = _study_of(job)
        ended = {
            o.path: _skipped(o)
            for o in map(settle_variant, outcomes)
            if has_finished(o) and not missing(o, study)
        }
        progress = StudyProgress(reporter, len(outcomes), [o.keys for o in ended.values()])
        todo = [outcome for outcome in _by_shared_stages(outcomes) if outcome.path not in ended]
        try:
            if todo:
                _run_all(todo, ended, study, on, path, progress)
        finally:
            # Of what was stopped, too: its table says how far it came.
            result = _collect(path, job, [ended.get(o.path, o) for o in outcomes])
        states = count_states(outcome.state for outcome in result.outcomes)
        progress.finish(f"{counted(len(outcomes), 'variant')}, {states}: {path}")
    return result


def _run_all(
    todo: Sequence[VariantOutcome],
    ended: dict[Path, VariantOutcome],
    study: StudyOptions,
    on: ClusterOptions,
    path: Path,
    progress: StudyProgress,
) -> None:
    """Run the variants that are left, each with its outcome in `ended` when it ends."""
    siblings, limits = siblings_of(path), todo[0].variant.job.limits
    connection = connect(on, limits.threads, limits.memory_bytes, progress.note)
    with connection as executor, collected_quickly():
        machine = describe_machine(on, executor.width)
        for number, outcome in enumerate(todo):
            left = [other.keys for other in todo[number:]]
            progress.variant(outcome.variant.title, left)
            began = time.perf_counter()
            try:
                result = run(
                    outcome.variant.job, on=on, run_dir=outcome.path, reporter=progress,
                    executor=executor, siblings=siblings,
                )  # fmt: skip
                # Measured as the job that was run, whose methods may have been chosen only now.
                outcome = settle_variant(outcome)
                measure(outcome, study)
            except Exception as error:
                if concerns_all_variants(error):
                    raise
                reason = reason_of(error)
                ended[outcome.path] = replace(
                    outcome, state="failed", reason=reason, machine=machine
                )
                progress.note(f"failed: {reason}")
                continue
            computed = tuple(stage["name"] for stage in result.stages if not stage["reused"])
            progress.finished(result.stages, outcome.keys, time.perf_counter() - began)
            ended[outcome.path] = replace(
                outcome,
                **fields_of(result),
                state="done" if computed else "skipped",
                computed=computed,
                machine=machine if computed or not outcome.machine else outcome.machine,
            )


def _skipped(outcome: VariantOutcome) -> VariantOutcome:
    """Return the outcome of a variant that was finished before."""
    result = finished_result(Run(outcome.path, create=False))
    return replace(outcome, **fields_of(result), state="skipped")


def _by_shared_stages(outcomes: Sequence[VariantOutcome]) -> list[VariantOutcome]:
    """Order the variants so that those with the same early stages follow one another."""
    rank: dict[str, int] = {}
    for outcome in outcomes:
        for key in outcome.keys.values():
            rank.setdefault(key, len(rank))
    names = [stage.name for stage in STAGES]
    return sorted(outcomes, key=lambda outcome: [rank[outcome.keys[name]] for name in names])


def _collect(path: Path, job: Job, outcomes: Sequence[VariantOutcome]) -> StudyResult:
    """Write the table and the pictures of what is there, and note the state of every variant."""
    study = _study_of(job)
    outcomes = [settle_variant(outcome) for outcome in outcomes]
    rows = tuple(row for outcome in outcomes for row in _rows(outcome, study))
    outputs = write_table(path, rows)
    texts = read_table(outputs["csv"])
    outputs |= draw_plot(path / "plot.png", job, texts)
    _describe(path, job, outcomes)
    outputs |= draw_pictures(path, job, texts, outcomes)
    return StudyResult(path, tuple(outcomes), job.name, rows, outputs)


def _study_of(job: Job) -> StudyOptions:
    assert job.study is not None, "a study"
    return job.study


def _rows(outcome: VariantOutcome, study: StudyOptions) -> list[Row]:
    variant = outcome.variant
    head: Row = {"variant": variant.name, **{key: variant.values.get(key) for key in study.keys}}
    tail = {"title": variant.title, "run": outcome.path.name, "machine": outcome.machine}
    if outcome.state == "failed":
        return [{**head, "state": "failed", "reason": outcome.reason, **tail}]
    if not has_finished(outcome):
        return [{**head, "state": "to do", **tail}]
    directory = Run(outcome.path, create=False)
    records = {stage.name: directory.record(stage.name) for stage in STAGES}
    kept = {name: record for name, record in records.items() if record is not None}
    summaries = {name: record.summary for name, record in kept.items()}
    seconds = {name: record.seconds for name, record in kept.items()}
    peak = max(record.peak_bytes for record in kept.values())
    measured = {**read_measured(outcome, study), **stage_columns(summaries, seconds, peak)}
    return [
        {**head, "state": "finished", **scores, **measured, **tail}
        for scores in score_rows(summaries)
    ]


def _describe(path: Path, job: Job, outcomes: Sequence[VariantOutcome]) -> None:
    with explain_write_errors(path):
        # First, as it marks the directory as that of a study.
        write_json(
            path / STUDY_FILE,
            {
                "format": FORMAT,
                "eigenscape": __version__,
                "name": job.name,
                "title": _study_of(job).title,
                "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "variants": [
                    {
                        "title": outcome.variant.title,
                        "directory": outcome.path.name,
                        "keys": dict(outcome.keys),
                        "reason": outcome.reason if outcome.state == "failed" else None,
                    }
                    for outcome in outcomes
                ],
                # Of variants that are left out this time, too.
                "machines": _known_machines(path)
                | {outcome.path.name: outcome.machine for outcome in outcomes if outcome.machine},
            },
        )
        with written_whole(path / "job.toml") as temporary:
            temporary.write_text(study_text(job), encoding="utf-8")


def _known_machines(path: Path) -> dict[str, str]:
    try:
        described = json.loads((path / STUDY_FILE).read_text(encoding="utf-8"))
        return dict(described["machines"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # none yet, or not ours: it is written again
