"""``eigenscape submit | cancel``: the driver itself as a job of a queue."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.base.commands import command_line
from eigenscape.cli.arguments import JobFile, Json, Set, exit_status, run_dir_option


def submit_command(
    job: JobFile,
    on: Annotated[
        str, typer.Option("--on", metavar="CLUSTER", help="Cluster file (TOML) of a queue.")
    ],
    set_: Set = None,
    run_dir: Annotated[Path | None, run_dir_option("runs/<name>-<key>")] = None,
    as_json: Json = False,
) -> None:
    """Submit the driver of a run to a queue; print its job number."""
    with exit_status():
        from eigenscape.clusters import load_cluster
        from eigenscape.job.jobfile import load_job

        loaded, cluster = load_job(job, set_ or ()), load_cluster(on)

        from eigenscape.base.process.progress import console_reporter
        from eigenscape.schedule.submit import submit

        path, found = submit(loaded, cluster, run_dir=run_dir, reporter=console_reporter())
        follow = command_line("status", path, "--follow")
        print(f"eigenscape: `{follow}` shows the progress", file=sys.stderr)
        told = {"run": str(path), "kind": found.kind, "job_id": found.job_id}
        print(json.dumps(told) if as_json else found.job_id)


def cancel_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    as_json: Json = False,
) -> None:
    """Cancel a submitted driver and its workers.

    Finished stages are kept.
    """
    with exit_status():
        from eigenscape.schedule.submit import cancel

        found = cancel(run)
        told = {"run": str(run), "state": found.state, "jobs": list(found.jobs)}
        text = f"{run}: {found.state}. The same `eigenscape submit` continues after the finished stages."
        print(json.dumps(told) if as_json else text)
