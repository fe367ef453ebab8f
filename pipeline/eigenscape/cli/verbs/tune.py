"""``eigenscape tune``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.base.process.addresses import check_address_space
from eigenscape.cli.arguments import (
    CheckInput,
    JobFile,
    Json,
    On,
    Set,
    exit_status,
    overrides,
    run_dir_option,
)


def tune_command(
    job: JobFile,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="Time limit, such as 90s, 10min or 2h.")
    ] = "10min",
    on: On = None,
    set_: Set = None,
    run_dir: Annotated[Path | None, run_dir_option("runs/<name>-tuned")] = None,
    check_input: CheckInput = None,
    as_json: Json = False,
) -> None:
    """Compare many jobs on a scene; write the best one.

    Jobs are compared by accuracy on squares of the scene, and the best is written to best.toml.
    """
    with exit_status():
        check_address_space()

        from eigenscape.clusters import load_cluster
        from eigenscape.job.jobfile import load_job
        from eigenscape.tuning.budget import as_seconds

        seconds = as_seconds(budget)
        given = overrides(set_, check_input)
        loaded, cluster = load_job(job, given), load_cluster(on)

        from eigenscape.base.process.progress import console_reporter
        from eigenscape.cli.printing.tuning import print_tuned
        from eigenscape.tuning.run import tune, tuning_directory

        path = tuning_directory(loaded, run_dir, given)
        tuned = tune(loaded, budget=seconds, on=cluster, run_dir=path, reporter=console_reporter())
        print(json.dumps(tuned.to_json())) if as_json else print_tuned(tuned)
