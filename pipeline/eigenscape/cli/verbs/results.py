"""``eigenscape results``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.cli.arguments import Small, exit_status


def results_command(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY...", help="Study files (TOML).")],
    page: Annotated[Path, typer.Option("--page", metavar="FILE", help="Page to write.")] = Path(
        "jobs/RESULTS.md"
    ),
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", metavar="DIR", help="Parent directory of the studies' run directories."
        ),
    ] = None,
    small: Small = False,
) -> None:
    """Write a page that compares the results of studies with the published ones."""
    with exit_status():
        from eigenscape.base.shares import counted
        from eigenscape.job.jobfile import load_job
        from eigenscape.study.results import write_results

        missing = write_results([load_job(study, small=small) for study in studies], page, runs)
        print(f"{page}: {counted(len(studies) - len(missing), 'study')}")
        for name in missing:
            print(f"eigenscape: {name} has not run yet", file=sys.stderr)
