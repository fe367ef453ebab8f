"""``eigenscape run``."""

import json
import sys
from functools import partial

import typer

from eigenscape.cli.arguments import Given, exit_status, on_a_job
from eigenscape.cli.printing.results import print_result


@on_a_job
def run_command(given: Given) -> None:
    """Run a job or a study; finished stages are reused."""
    with exit_status():
        # The job first: what is wrong in a file is printed before the stages are imported.
        loaded, cluster = given.load()

        from eigenscape.base.process.progress import console_reporter
        from eigenscape.workflow.spine import run

        reporter = console_reporter()
        if loaded.study is not None:
            from eigenscape.cli.kinds import STUDY, end_of_many
            from eigenscape.cli.printing.studies import print_study
            from eigenscape.study.run import run_study

            ended = run_study(loaded, on=cluster, run_dir=given.run_dir, reporter=reporter)
            end_of_many(STUDY, ended, partial(print_study, loaded, ended), as_json=given.as_json)
        result = run(loaded, on=cluster, run_dir=given.run_dir, reporter=reporter)
        if given.as_json:
            print(json.dumps(result.to_json()))
        else:
            print_result(result)
        if loaded.advice and result.scores:
            print(f"eigenscape: {loaded.advice}", file=sys.stderr)
        if not result.converged:
            print(
                f"eigenscape: not converged: the largest residual is "
                f"{result.spectrum['max_residual']:.1e}. The results are kept. Raise "
                "spectrum.tolerance, or lower spectrum.dimension.",
                file=sys.stderr,
            )
            raise typer.Exit(3)
