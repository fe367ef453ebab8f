"""``eigenscape tune``."""

from typing import Annotated

import typer

from eigenscape.cli.arguments import (
    CheckInput,
    JobFile,
    Json,
    On,
    RunDir,
    Set,
    exit_status,
    overrides,
)


def tune_command(
    job: JobFile,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="Time limit, such as 90s, 10min or 2h.")
    ] = "10min",
    on: On = None,
    set_: Set = None,
    run_dir: RunDir = None,
    check_input: CheckInput = None,
    as_json: Json = False,
) -> None:
    """Compare many jobs on a scene; write the best one.

    Jobs are compared by accuracy on squares of the scene, and the best is written to best.toml.
    """
    with exit_status():
        from eigenscape.clusters import load_cluster
        from eigenscape.job.jobfile import load_job
        from eigenscape.tuning.budget import parse_budget

        seconds = parse_budget(budget)
        loaded, cluster = load_job(job, overrides(set_, check_input)), load_cluster(on)

        from eigenscape.tuning.console import tune_and_print

        tune_and_print(loaded, cluster, run_dir, seconds, as_json=as_json)
