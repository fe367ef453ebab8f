"""``eigenscape status``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.cli.arguments import Json, Set, exit_status


def status_command(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Run directory, directory of runs, or job file."),
    ],
    set_: Set = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show the progress until the run ends.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the progress of a run, study or batch; or list runs.

    Exit status with --follow: 0 finished, 1 unfinished and without a driver.
    """
    with exit_status():
        from eigenscape.cli.overview import directory_of, list_runs
        from eigenscape.workflow.directories import is_batch, is_study, status
        from eigenscape.workflow.printing import print_status

        run = directory_of(path, set_ or ())
        if follow:
            from eigenscape.cli.following import follow_and_print

            raise typer.Exit(follow_and_print(run, as_json=as_json))
        if found := list_runs(run):
            if as_json:
                print(json.dumps({"directory": str(run), "runs": found}))
            else:
                for entry in found:
                    print(f"{entry['run']}: {entry['kind']}, {entry['state']}")
        elif is_batch(run):
            from eigenscape.batch.console import print_status as print_batch_status

            print_batch_status(run, as_json=as_json)
        elif is_study(run):
            from eigenscape.study.console import print_status as print_study_status

            print_study_status(run, as_json=as_json)
        elif as_json:
            print(json.dumps(status(run)))
        else:
            print_status(status(run))
