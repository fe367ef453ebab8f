"""The text about batches."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from eigenscape.cli.printing.console import console
from eigenscape.workflow.directories import BATCH_TABLE

if TYPE_CHECKING:
    from eigenscape.batch.outcomes import BatchResult


def print_batch(result: "BatchResult", page: Path | None) -> None:
    """Print the outcome of each scene, and the page about them if there is one."""
    from eigenscape.workflow.many.outcomes import count_states

    counted = count_states(outcome.state for outcome in result.outcomes)
    _print_rows(result.path, counted, [outcome.row() for outcome in result.outcomes])
    if page is not None:
        print(f"report: {page}")


def print_batch_status(found: Mapping[str, Any]) -> None:
    """Print what became of the scenes of a batch, as `eigenscape.batch.table.batch_status` returned."""
    _print_rows(Path(found["run"]), found["state"], found["scenes"])
    if found["holder"]:
        print(f"being worked on by {found['holder']}")


def _print_rows(path: Path, counted: str, rows: Sequence[Mapping[str, Any]]) -> None:
    screen = console()
    table = Table("scene", "state", "seconds", "accuracy", "measured on", "run", "reason")
    for row in rows:
        accuracy, seconds, run = row["overall_accuracy"], row["seconds"], row["run"]
        table.add_row(
            row["scene"],
            row["state"],
            "" if seconds is None else f"{float(seconds):.1f}",
            "" if accuracy is None else f"{100 * float(accuracy):.1f} %",
            row["measured_on"] or "",
            "" if run is None else Path(run).name,
            row["reason"] or "",
        )
    screen.print(table, highlight=False)
    screen.print(f"{counted or 'no scene'}: {path / BATCH_TABLE}", highlight=False, soft_wrap=True)
