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
        from eigenscape.cli.kinds import RUN, kind_of
        from eigenscape.cli.overview import directory_of, list_runs

        run = directory_of(path, set_ or ())
        if follow:
            from eigenscape.cli.following import follow_and_print

            raise typer.Exit(follow_and_print(run, as_json=as_json))
        if entries := list_runs(run):
            if as_json:
                print(json.dumps({"directory": str(run), "runs": entries}))
            else:
                for entry in entries:
                    end = ", not converged" if entry["converged"] is False else ""
                    print(f"{entry['run']}: {entry['kind'] or 'directory'}, {entry['state']}{end}")
            return
        kind = kind_of(run) or RUN
        found = kind.status(run)
        print(json.dumps(found)) if as_json else kind.show(found)
