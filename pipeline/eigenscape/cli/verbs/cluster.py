"""``eigenscape cluster check | script``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eigenscape.cli.arguments import Json, exit_status
from eigenscape.cli.printing.console import console

if TYPE_CHECKING:
    from eigenscape.clusters.check import Findings

app = typer.Typer(help="Check a cluster file, or print its job script.", no_args_is_help=True)

ClusterFile = Annotated[str, typer.Argument(metavar="FILE", help="Cluster file (TOML).")]
Memory = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="limits.memory of the jobs that will run.")
]


@app.command("check")
def check_command(
    file: ClusterFile,
    directory: Annotated[
        Path, typer.Option("--run-dir", metavar="DIR", help="Directory of the runs.")
    ] = Path("runs"),
    memory: Memory = "2GiB",
    as_json: Json = False,
) -> None:
    """Start one worker and check versions, shared directory, memory and speed."""
    with exit_status():
        from eigenscape.base.process.progress import console_reporter
        from eigenscape.clusters.check import check_cluster
        from eigenscape.clusters.loading import load_cluster

        findings = check_cluster(
            load_cluster(file), directory.resolve(), _bytes(memory), console_reporter().note
        )
        if as_json:
            print(json.dumps(findings.to_json()))
        else:
            _print(findings, directory)


@app.command("script")
def script_command(file: ClusterFile, memory: Memory = "2GiB") -> None:
    """Print the job script of the workers; submit nothing."""
    with exit_status():
        from eigenscape.clusters.loading import load_cluster
        from eigenscape.clusters.registry import check_queue

        print(check_queue(load_cluster(file)).job_script(_bytes(memory)))


def _bytes(text: str) -> int:
    from eigenscape.base.memory import parse_bytes
    from eigenscape.errors import ClusterError

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ClusterError(f"--memory {text}: {error}.") from None


def _print(findings: "Findings", directory: Path) -> None:
    from rich.table import Table

    from eigenscape.base.memory import format_bytes

    table = Table(show_header=False, box=None, pad_edge=False)
    rows = {
        "worker": f"{findings.kind}, on {findings.host}, after {findings.start_s:.1f} s",
        "tasks at a time": str(findings.threads),
        "memory": f"{format_bytes(findings.memory_limit)} for the worker; the machine has "
        f"{format_bytes(findings.memory_total)}, {format_bytes(findings.memory_available)} free",
        "shared directory": f"{directory}: new files are visible to the worker after "
        f"{findings.seen_there_s:.2f} s, to this process after {findings.seen_here_s:.2f} s",
        "file system": findings.file_system,
        "MiB/s there": f"written {findings.shared_write:.0f}, read {findings.shared_read:.0f}",
        "MiB/s of scratch": f"written {findings.scratch_write:.0f}, read {findings.scratch_read:.0f}",
        "MiB/s of network": f"{findings.network:.0f}",
    }
    for package, (here, there) in findings.versions.items():
        rows[package] = here if here == there else f"{here} here, {there} there"
    for name, value in rows.items():
        table.add_row(name, value)
    console().print(table)
