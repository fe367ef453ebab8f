"""The text about tuning."""

from rich.table import Table

from eigenscape.cli.printing.console import console
from eigenscape.tuning.outcomes import Tuned
from eigenscape.workflow.choice.tried import Interval

_MOST_LINES = 15


def print_tuned(tuned: Tuned) -> None:
    """Print the best of what was tried, and the verdict."""
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
