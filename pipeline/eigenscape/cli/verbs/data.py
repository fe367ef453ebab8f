"""``eigenscape data list | fetch``."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from eigenscape.base.memory import format_bytes
from eigenscape.cli.arguments import DataDir, Json, exit_status
from eigenscape.cli.printing.console import console

app = typer.Typer(help="List and download public data sets.", no_args_is_help=True)


@app.command("list")
def data_list_command(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the data sets whose names ``scene.path`` accepts."""
    with exit_status():
        from eigenscape.datasets.listing import list_data_sets

        found = list_data_sets()
        print(json.dumps(found)) if as_json else console().print(_table(found))


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


def _table(found: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("name", "size", "classes", "available", "download", "description", "licence")
    for item in found:
        table.add_row(
            item["name"],
            " x ".join(map(str, item["shape"])),
            str(len(item["classes"]) or ""),
            "yes" if item["installed"] and item["how"] != "made" else item["how"],
            format_bytes(item["bytes"]) if item["bytes"] else "",
            item["description"]
            if item["how"] == "made"
            else f"{item['description']} {item['source']}",
            item["licence"],
        )
    return table
