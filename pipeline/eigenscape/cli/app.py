"""The application of the command line, with the commands run, plan, results, synth and schema."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import Progress

from eigenscape.base.version import __version__
from eigenscape.cli.arguments import (
    DataDir,
    Given,
    Page,
    Small,
    exit_status,
    on_a_job,
)
from eigenscape.cli.verbs import apply, cluster, data, submit
from eigenscape.cli.verbs.batch import batch_command
from eigenscape.cli.verbs.doctor import doctor_command
from eigenscape.cli.verbs.init import init_command
from eigenscape.cli.verbs.report import open_command, report_command
from eigenscape.cli.verbs.schedule import prune_command, schedule_command
from eigenscape.cli.verbs.status import status_command
from eigenscape.cli.verbs.tune import tune_command
from eigenscape.cli.verbs.verify import verify_command
from eigenscape.workflow.printing import print_plan, print_result

app = typer.Typer(
    name="eigenscape",
    help="Compute eigenmaps and georeferenced class maps of hyperspectral scenes, out of core.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data.app, name="data")
app.add_typer(cluster.app, name="cluster")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"eigenscape {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    pass


@app.command("run")
@on_a_job
def run_command(given: Given) -> None:
    """Run a job or a study; finished stages are reused."""
    with exit_status():
        # The job first: what is wrong in a file is printed before the stages are imported.
        loaded, cluster = given.load()

        from eigenscape.base.process.progress import console_reporter
        from eigenscape.workflow.spine import run

        if loaded.study is not None:
            from eigenscape.study.console import run_and_print

            raise typer.Exit(run_and_print(loaded, cluster, given.run_dir, as_json=given.as_json))
        result = run(loaded, on=cluster, run_dir=given.run_dir, reporter=console_reporter())
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


@app.command("plan")
@on_a_job
def plan_command(given: Given) -> None:
    """Check a job or a study; print memory, disk and tasks.

    Nothing is computed.
    """
    with exit_status():
        loaded, cluster = given.load()

        from eigenscape.workflow.spine import plan

        if loaded.study is not None:
            from eigenscape.study.console import plan_and_print

            plan_and_print(loaded, cluster, given.run_dir, as_json=given.as_json)
            return
        planned = plan(loaded, on=cluster, run_dir=given.run_dir)
        if given.as_json:
            print(json.dumps(planned.to_json()))
        else:
            print_plan(planned, loaded.limits.memory_bytes)
        planned.check(loaded.limits.memory_bytes)


app.command("status")(status_command)
app.command("report")(report_command)
app.command("open")(open_command)
app.command("apply")(apply.apply_command)
app.command("batch")(batch_command)
app.command("submit")(submit.submit_command)
app.command("cancel")(submit.cancel_command)
app.command("schedule")(schedule_command)
app.command("prune")(prune_command)
app.command("verify")(verify_command)
app.command("tune")(tune_command)
app.command("init")(init_command)
app.command("doctor")(doctor_command)


@app.command("results")
def results_command(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY...", help="Study files (TOML).")],
    page: Page = Path("jobs/RESULTS.md"),
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", metavar="DIR", help="Parent directory of the studies' run directories."
        ),
    ] = None,
    small: Small = False,
) -> None:
    """Write a page that compares the results of studies with the published ones."""
    with exit_status():
        from eigenscape.job.jobfile import load_job
        from eigenscape.study.console import write_and_print

        write_and_print([load_job(study, small=small) for study in studies], page, runs)


@app.command("synth")
def synth_command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="OUT.tif", help="Scene file to write; the labels go to OUT_labels.tif."
        ),
    ],
    height: Annotated[int, typer.Option(help="Number of rows.")] = 679,
    width: Annotated[int, typer.Option(help="Number of columns.")] = 944,
    bands: Annotated[int, typer.Option(help="Number of bands.")] = 110,
    classes: Annotated[int, typer.Option(help="Number of classes (materials).")] = 22,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
) -> None:
    """Write a synthetic scene of any size and its labels."""
    with exit_status():
        from eigenscape.datasets.made.synthetic import synthesize

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("synthesizing", total=height)
            synthesize(
                path,
                height=height,
                width=width,
                bands=bands,
                classes=classes,
                seed=seed,
                progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        labels = path.with_name(f"{path.stem}_labels.tif")
        print(f"{path}: {height} x {width} x {bands}; labels: {labels}")


@app.command("schema")
def schema_command(
    what: Annotated[
        Literal["job", "result"],
        typer.Argument(
            help="Schema of job files, or of the output of run --json and apply --json."
        ),
    ] = "job",
) -> None:
    """Print the JSON Schema of job files or of the output of --json."""
    if what == "result":
        from eigenscape.workflow.finished.result import result_schema

        print(result_schema())
        return
    from eigenscape.job.jobfile import job_schema

    print(job_schema())


def main() -> None:
    """Run the command line."""
    app()
