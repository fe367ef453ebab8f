"""What the command line prints about studies."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from eigenscape.base.memory import format_bytes
from eigenscape.base.process.progress import console_reporter
from eigenscape.clusters import ClusterOptions
from eigenscape.job.jobfile import Job
from eigenscape.study.outcomes import StudyResult
from eigenscape.study.plan import plan_study, study_status
from eigenscape.study.run import run_study
from eigenscape.study.tabulate import tabulate
from eigenscape.workflow.many.outcomes import count_states
from eigenscape.workflow.printing import console

_MOST_LINES = 40


def run_and_print(job: Job, on: ClusterOptions, run_dir: Path | None, *, as_json: bool) -> int:
    """Run a study and print its table; return the exit status, see `Outcomes.exit_status`."""
    result = run_study(job, on=on, run_dir=run_dir, reporter=console_reporter())
    page = write_index(result.path) if result.count("done") else None
    if as_json:
        print(json.dumps(result.to_json()))
    else:
        _print_result(job, result)
        if page is not None:
            print(f"{'report':<12} {page}")
    for remark in result.remarks():
        print(f"eigenscape: {remark}", file=sys.stderr)
    return result.exit_status


def write_index(path: Path, output: Path | None = None) -> Path:
    """Write the page about all variants of a study, ``report.html`` by default; return where it is."""
    from eigenscape.workflow.finished.reports import report_many

    rows = [
        {**row, "name": row["title"], "run": row["directory"]}
        for row in study_status(path)["variants"]
    ]
    return report_many(path, output, "study", rows)


def plan_and_print(job: Job, on: ClusterOptions, run_dir: Path | None, *, as_json: bool) -> None:
    """Print what a study would compute and what its variants share."""
    plan = plan_study(job, on=on, run_dir=run_dir)
    if as_json:
        print(json.dumps(plan.to_json()))
        return
    screen = console()
    table = Table("stage", "different", "finished", "to compute", "projected peak", "to write")
    for stage in plan.stages:
        table.add_row(
            stage.name,
            str(stage.different),
            str(stage.finished),
            str(stage.different - stage.finished),
            format_bytes(stage.peak_bytes),
            format_bytes(stage.disk_bytes),
        )
    screen.print(f"{job.name}: {len(plan.variants)} variants", highlight=False)
    screen.print(table)
    screen.print(f"directory {plan.run}", highlight=False, soft_wrap=True)


def print_status(path: Path, *, as_json: bool) -> None:
    """Print which variants of a study are finished."""
    found = study_status(path)
    if as_json:
        print(json.dumps(found))
        return
    screen = console()
    table = Table("variant", "state", "finished stages")
    others = [v for v in found["variants"] if v["state"] != "finished"]
    for variant in others[:_MOST_LINES]:
        table.add_row(variant["title"], variant["state"], ", ".join(variant["stages"]))
    if others:
        screen.print(table)
    if len(others) > _MOST_LINES:
        screen.print(f"and {len(others) - _MOST_LINES} more", highlight=False)
    for variant in others:
        if variant["reason"]:
            screen.print(f"{variant['title']}: {variant['reason']}", highlight=False)
    screen.print(
        f"{path}: {found['finished']} of {len(found['variants'])} variants, {found['state']}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _print_result(job: Job, result: StudyResult) -> None:
    from eigenscape.base.files.tables import read_table

    screen = console()
    shown = tabulate(job, read_table(result.outputs["csv"]))
    table = Table(*[shown.corner, *shown.header])
    for name, cells in shown.lines:
        table.add_row(name, *cells)
    screen.print(table)
    for line in shown.caption:
        screen.print(line, highlight=False, soft_wrap=True)
    counted = count_states(outcome.state for outcome in result.outcomes)
    screen.print(f"{len(result.outcomes)} variants: {counted}", highlight=False)
    for name, path in result.outputs.items():
        screen.print(f"{name:<12} {path}", highlight=False, soft_wrap=True)


def write_and_print(studies: Sequence[Job], target: Path, runs: Path | None) -> None:
    """Write the page of results and print where."""
    from eigenscape.study.results import write_results

    missing = write_results(studies, target, runs)
    print(f"{target}: {len(studies) - len(missing)} studies")
    for name in missing:
        print(f"eigenscape: {name} has not run yet", file=sys.stderr)
