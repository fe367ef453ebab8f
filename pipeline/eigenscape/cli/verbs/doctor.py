"""``eigenscape doctor``: check whether jobs can run on this machine, and print the fixes."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eigenscape.cli.arguments import Json, exit_status

if TYPE_CHECKING:
    from eigenscape.workflow.doctor import Diagnosis


_FIRST = ("eigenscape", "python", "system", "GDAL")
"""Versions that have a line of their own."""


def doctor_command(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Also test DIR as a place for run directories."),
    ] = None,
    compile_first: Annotated[
        bool,
        typer.Option(
            "--compile", help="Compile all kernels now, once per machine: about half a minute."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check the installation and the machine.

    Prints versions, formats of GDAL, cores, memory and extras. Exit status: 0 jobs can run, 2 something is
    missing.
    """
    with exit_status():
        from eigenscape.workflow.doctor import compile_kernels, diagnose

        if compile_first:
            compile_kernels()
        found = diagnose(directory)
        print(json.dumps(found.to_json())) if as_json else _print(found)
        if found.problems:
            raise typer.Exit(2)


def _print(found: "Diagnosis") -> None:
    from rich.table import Table

    from eigenscape.base.memory import format_bytes
    from eigenscape.cli.printing.console import console
    from eigenscape.workflow.doctor import PRODUCT_FORMATS

    screen = console()
    table = Table("item", "found")
    for name in _FIRST:
        table.add_row(name, found.versions.get(name) or "missing")
    others = {name: text for name, text in found.versions.items() if name not in _FIRST}
    table.add_row(
        "packages", ", ".join(f"{name} {text or 'MISSING'}" for name, text in others.items())
    )
    for name, there in found.formats.items():
        table.add_row(f"format {name}", f"{'yes' if there else 'no'} ({PRODUCT_FORMATS[name]})")
    machine = found.machine
    table.add_row("cores", f"{machine['cores']} of {machine['cores_of_machine']}")
    memory = f"{format_bytes(machine['memory_available'])} of {format_bytes(machine['memory_total'])} free"
    if machine["memory_limit"]:
        memory += f", {format_bytes(machine['memory_limit'])} allowed by control groups"
    table.add_row("memory", memory)
    if kernels := found.kernels:
        table.add_row(
            "kernels",
            f"compiled in {kernels['seconds']} s; {kernels['kept']} cached in {kernels['cache']}",
        )
    for extra, packages in found.extras.items():
        missing = [name for name, installed in packages.items() if installed is None]
        said = (
            f"without {', '.join(missing)}: pip install 'eigenscape[{extra}]'" if missing else "yes"
        )
        table.add_row(f"extra {extra}", said)
    if directory := found.directory:
        said = directory["path"]
        if "file_system" in directory:
            said = (
                f"{said} on {directory['file_system']}; {format_bytes(directory['free'])} free, writes "
                f"{directory['write_mib_s']:g} and reads {directory['read_mib_s']:g} MiB/s, files are seen "
                f"by others after {directory['seen_after_s']:g} s"
            )
        table.add_row("directory", said)
    screen.print(table)
    for remark in found.remarks:
        screen.print(remark, highlight=False)
    for problem in found.problems:
        screen.print(f"to do: {problem}", highlight=False)
    screen.print("jobs cannot run yet" if found.problems else "jobs can run", highlight=False)
