"""``eigenscape data list | fetch``."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from eigenscape.cli.arguments import DataDir, Json, exit_status
from eigenscape.workflow.printing import console

app = typer.Typer(help="List and download public data sets.", no_args_is_help=True)


@app.command("list")
def data_list_command(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets whose names ``scene.path`` accepts."""
    with exit_status():
        from eigenscape.datasets.listing import data_set_table, list_data_sets

        if as_json:
            print(json.dumps(list_data_sets()))
        else:
            console().print(data_set_table())


@app.command("fetch")
def data_fetch_command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the data set, from `eigenscape data list`."),
    ],
    data_dir: DataDir = None,
) -> None:
    """Download a data set and prepare it."""
    with exit_status():
        from eigenscape.datasets.registered import fetchable

        data_set = fetchable(name)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"fetching {name}", total=None)
            data_set.fetch(
                lambda file, done, total: progress.update(
                    task, description=file, completed=done, total=max(done, total)
                )
            )
        for path in data_set.locate().paths:
            print(path)
