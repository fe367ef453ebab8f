"""``eigenscape verify``: check the files of a run directory against their checksums."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from eigenscape.cli.arguments import Json, Set, exit_status


def verify_command(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or job file.")],
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Check every file of a run against its checksum.

    Exit status: 0 intact, 1 damaged, 2 no run.
    """
    with exit_status():
        from eigenscape.cli.overview import directory_of
        from eigenscape.store.verification import verify

        found = verify(directory_of(path, set_ or ()))
        print(json.dumps(found)) if as_json else _print(found)
        if not found["whole"]:
            raise typer.Exit(1)


def _print(found: dict[str, Any]) -> None:
    from eigenscape.base.memory import format_bytes

    for stage in found["stages"]:
        state = f"{len(stage['damage'])} damaged" if stage["damage"] else "whole"
        if not stage["files"]:
            state = "has no checksums"
        size = format_bytes(stage["bytes"])
        print(f"{stage['name']:<10} {stage['files']:>5} files {size:>10}  {state}")
        _print_damage(stage["damage"])
    for work in found["unfinished"]:
        print(f"{work['name']:<10} unfinished, {'damaged' if work['damage'] else 'whole'}")
        _print_damage(work["damage"])
    _print_damage(found["other"])
    if found["whole"]:
        print(f"{found['run']}: whole")
    elif found["again"]:
        stages = ", ".join(found["again"])
        print(f"{found['run']}: damaged. The next run computes {stages} again, and nothing else.")
    else:
        print(f"{found['run']}: damaged. The next run writes the files named above again.")
    if found["holder"]:
        print(f"Not checked: the unfinished stage of {found['holder']}.")


def _print_damage(damage: list[str]) -> None:
    for text in damage:
        print(f"           {text}")
