"""The application of the command line: its commands in the order of its help."""

import sys
from typing import Annotated

import typer

from eigenscape.base.version import __version__
from eigenscape.cli.arguments import DataDir
from eigenscape.cli.streams import exit_status_of, guard_streams
from eigenscape.cli.verbs import apply, cluster, data, submit
from eigenscape.cli.verbs.batch import batch_command
from eigenscape.cli.verbs.doctor import doctor_command
from eigenscape.cli.verbs.init import init_command
from eigenscape.cli.verbs.plan import plan_command
from eigenscape.cli.verbs.report import open_command, report_command
from eigenscape.cli.verbs.results import results_command
from eigenscape.cli.verbs.run import run_command
from eigenscape.cli.verbs.schedule import prune_command, schedule_command
from eigenscape.cli.verbs.schema import schema_command
from eigenscape.cli.verbs.status import status_command
from eigenscape.cli.verbs.synth import synth_command
from eigenscape.cli.verbs.tune import tune_command
from eigenscape.cli.verbs.verify import verify_command

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


app.command("run")(run_command)
app.command("plan")(plan_command)
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
app.command("results")(results_command)
app.command("synth")(synth_command)
app.command("schema")(schema_command)


def main() -> None:
    """Run the command line."""
    lost = guard_streams()
    status: int | str | None = 0
    try:
        app()
    except SystemExit as end:
        status = end.code
    error = lost()
    sys.exit(status if error is None else status or exit_status_of(error))
