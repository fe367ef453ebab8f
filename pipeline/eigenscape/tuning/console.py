"""What the command line prints about tuning."""

import json
from pathlib import Path

from rich.table import Table

from eigenscape.base.process.progress import console_reporter
from eigenscape.clusters import ClusterOptions
from eigenscape.job.jobfile import Job
from eigenscape.tuning.run import tune
from eigenscape.workflow.choice.tried import Interval
from eigenscape.workflow.printing import console

_MOST_LINES = 15


def tune_and_print(
    job: Job, on: ClusterOptions, run_dir: Path | None, budget: float, *, as_json: bool
) -> None:
    """Tune a job and print the best of what was tried, and the verdict."""
    tuned = tune(job, budget=budget, on=on, run_dir=run_dir, reporter=console_reporter())
    if as_json:
        print(json.dumps(tuned.to_json()))
        return
    screen = console()
    table = Table("accuracy", "draws", "seconds", "job")
    shown = sorted(tuned.tried, key=lambda one: (-one.drawn, -one.mean(one.drawn)))
    for one in [one for one in shown if one.accuracy][:_MOST_LINES]:
        table.add_row(
            str(Interval.of(one.accuracy)), str(one.drawn), f"{one.seconds:.1f}",
            one.candidate.title or "as given",
        )  # fmt: skip
    screen.print(table)
    for line in tuned.said:
        screen.print(line, highlight=False, soft_wrap=True)
    for one in tuned.tried:
        if one.error:
            screen.print(f"failed: {one.candidate.title}: {one.reason}", highlight=False)
    for name, path in tuned.outputs.items():
        screen.print(f"{name:<12} {path}", highlight=False, soft_wrap=True)
