"""The text about studies."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from eigenscape.base.memory import format_bytes
from eigenscape.base.shares import counted
from eigenscape.cli.printing.console import console

if TYPE_CHECKING:
    from eigenscape.job.jobfile import Job
    from eigenscape.study.outcomes import StudyResult
    from eigenscape.study.plan import StudyPlan

_MOST_LINES = 40


def print_study_plan(plan: "StudyPlan", name: str) -> None:
    """Print what a study of that name would compute and what its variants share."""
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
    screen.print(f"{name}: {counted(len(plan.variants), 'variant')}", highlight=False)
    screen.print(table)
    screen.print(f"directory {plan.run}", highlight=False, soft_wrap=True)


def print_study_status(found: Mapping[str, Any]) -> None:
    """Print which variants are finished, as `eigenscape.study.plan.study_status` returned."""
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
        f"{found['run']}: {found['finished']} of {counted(len(found['variants']), 'variant')}, "
        f"{found['state']}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def print_study(job: "Job", result: "StudyResult", page: Path | None) -> None:
    """Print the table of a study that has run, its files, and the page about it if there is one."""
    from eigenscape.base.files.tables import read_table
    from eigenscape.study.tabulate import tabulate
    from eigenscape.workflow.many.outcomes import count_states

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
    if page is not None:
        print(f"{'report':<12} {page}")
