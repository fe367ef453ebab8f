"""The text about tuning."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from eigenscape.base.shares import counted
from eigenscape.cli.printing.console import console

if TYPE_CHECKING:
    from eigenscape.tuning.outcomes import Tuned

_MOST_LINES = 15


def print_tuned(tuned: "Tuned") -> None:
    """Print the best of what was tried, and the verdict."""
    from eigenscape.workflow.choice.tried import Interval

    screen = console()
    table = Table("accuracy", "draws", "seconds", "job")
    shown = sorted(tuned.tried, key=lambda one: (-one.drawn, -one.mean(one.drawn)))
    for one in [one for one in shown if one.accuracy][:_MOST_LINES]:
        table.add_row(
            str(Interval.of(one.accuracy)), str(one.drawn), f"{one.seconds:.1f}",
            one.candidate.title or "as given",
        )  # fmt: skip
    screen.print(table)
    for line in tuned.notes:
        screen.print(line, highlight=False, soft_wrap=True)
    for one in tuned.tried:
        if one.error:
            screen.print(f"failed: {one.candidate.title}: {one.reason}", highlight=False)
    for name, path in tuned.outputs.items():
        screen.print(f"{name:<12} {path}", highlight=False, soft_wrap=True)


def print_tuning_status(found: Mapping[str, Any]) -> None:
    """Print how far a tuning is, as `eigenscape.tuning.status.tuning_status` returned."""
    screen = console()
    screen.print(f"{found['run']}: tuning, {found['state']}", highlight=False, soft_wrap=True)
    spent, budget = found["spent_seconds"], found["budget_seconds"]
    time = "" if spent is None else f" in {spent:.0f} s"
    time += f" of {budget:.0f} s" if time and budget is not None else ""
    jobs = counted(found["compared"], "job")
    screen.print(f"{jobs} compared{time}", highlight=False)
    for name, path in found["outputs"].items():
        screen.print(f"{name:<12} {path}", highlight=False, soft_wrap=True)
