"""What the command line prints about batches."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from eigenscape.base.process.progress import console_reporter
from eigenscape.base.process.signals import stopped_by_sigterm
from eigenscape.batch.run import run_batch
from eigenscape.batch.sources import Source
from eigenscape.batch.table import batch_status
from eigenscape.clusters import ClusterOptions
from eigenscape.workflow.directories import BATCH_TABLE
from eigenscape.workflow.many.outcomes import count_states
from eigenscape.workflow.printing import console


def run_and_print(
    source: Source,
    on: ClusterOptions,
    run_dir: Path | None,
    *,
    at_once: int | None,
    watch: float | None,
    as_json: bool,
) -> int:
    """Run a batch and print its table; return the exit status, see `Outcomes.exit_status`."""
    with stopped_by_sigterm():
        result = run_batch(
            source, on=on, run_dir=run_dir, at_once=at_once, watch=watch,
            reporter=console_reporter(),
        )  # fmt: skip
    page = write_index(result.path) if result.count("done") else None
    if as_json:
        print(json.dumps(result.to_json()))
    else:
        _print_rows([outcome.row() for outcome in result.outcomes], result.path)
        if page is not None:
            print(f"report: {page}")
    for remark in result.remarks():
        print(f"eigenscape: {remark}", file=sys.stderr)
    return result.exit_status


def write_index(path: Path, output: Path | None = None) -> Path:
    """Write the page about all scenes of a batch, ``report.html`` by default; return where it is."""
    from eigenscape.workflow.finished.reports import report_many

    scenes = batch_status(path)["scenes"]
    return report_many(path, output, "batch", [{**row, "name": row["scene"]} for row in scenes])


def print_status(path: Path, *, as_json: bool) -> None:
    """Print what became of the scenes of a batch."""
    found = batch_status(path)
    if as_json:
        print(json.dumps(found))
        return
    _print_rows(found["scenes"], path)
    if found["holder"]:
        print(f"being worked on by {found['holder']}")


def _print_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
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
    counted = count_states(row["state"] for row in rows) or "no scene"
    screen.print(f"{counted}: {path / BATCH_TABLE}", highlight=False, soft_wrap=True)
