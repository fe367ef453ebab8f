"""The command line: ``eigenscape run | plan | status | synth | schema | data list``."""

import functools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from eigenscape import __version__
from eigenscape.errors import EigenscapeError, InputError
from eigenscape.memory import format_bytes

app = typer.Typer(
    name="eigenscape",
    help="Hyperspectral scene in, eigenmaps and georeferenced class map out, out of core.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="Public data sets that a job can name.", no_args_is_help=True)
app.add_typer(data_app, name="data")

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="Job file (TOML).")]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="CLUSTER", help="Cluster file, or address of a Dask scheduler."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in neighbors.k=8."),
]
RunDir = Annotated[
    Path | None,
    typer.Option("--run-dir", metavar="DIR", help="Run directory; runs/<name>-<key> by default."),
]
Json = Annotated[bool, typer.Option("--json", help="End stdout with one JSON object.")]


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
) -> None:
    pass


@app.command("run")
def run_command(
    job: JobFile, on: On = None, set_: Set = None, run_dir: RunDir = None, as_json: Json = False
) -> None:
    """Run a job, or what is left of it."""
    with _exit_status():
        from eigenscape.cluster import load_cluster
        from eigenscape.job import load_job
        from eigenscape.progress import console_reporter
        from eigenscape.workflow import run

        result = run(
            load_job(job, set_ or ()),
            on=load_cluster(on),
            run_dir=run_dir,
            reporter=console_reporter(),
        )
        if as_json:
            print(json.dumps(result.to_json()))
        else:
            _print_result(result)
        if not result.converged:
            print(
                f"eigenscape: not converged: the largest residual is "
                f"{result.spectrum['max_residual']:.1e}. The results are kept. Raise "
                "spectrum.tolerance, or lower spectrum.dimension.",
                file=sys.stderr,
            )
            raise typer.Exit(3)


@app.command("plan")
def plan_command(
    job: JobFile, on: On = None, set_: Set = None, run_dir: RunDir = None, as_json: Json = False
) -> None:
    """Say what a job would need and what would be reused, without running it."""
    with _exit_status():
        from eigenscape.cluster import load_cluster
        from eigenscape.job import load_job
        from eigenscape.workflow import plan

        loaded = load_job(job, set_ or ())
        planned = plan(loaded, on=load_cluster(on), run_dir=run_dir)
        if as_json:
            print(json.dumps(planned.to_json()))
        else:
            _print_plan(planned, loaded.limits.memory_bytes)
        planned.check(loaded.limits.memory_bytes)


@app.command("status")
def status_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    as_json: Json = False,
) -> None:
    """Say what of a run is finished."""
    with _exit_status():
        from eigenscape.workflow import status

        found = status(run)
        if as_json:
            print(json.dumps(found))
        else:
            _print_status(found)


@app.command("synth")
def synth_command(
    path: Annotated[Path, typer.Argument(metavar="OUT.tif", help="Scene to write.")],
    height: Annotated[int, typer.Option(help="Rows.")] = 679,
    width: Annotated[int, typer.Option(help="Columns.")] = 944,
    bands: Annotated[int, typer.Option(help="Bands.")] = 110,
    classes: Annotated[int, typer.Option(help="Materials.")] = 22,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Write a labelled synthetic scene of any size, and its labels beside it."""
    with _exit_status():
        from eigenscape.scenes.synthetic import synthesize

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
def schema_command() -> None:
    """Print the JSON Schema of the job file, for editors."""
    from eigenscape.job import job_schema

    print(job_schema())


@data_app.command("list")
def data_list_command(as_json: Json = False) -> None:
    """List the data sets that ``scene.path`` can name."""
    with _exit_status():
        from eigenscape.scenes.registry import registered, registered_names

        sets = [registered(name) for name in registered_names()]
        if as_json:
            fields = ("name", "description", "shape", "classes", "installed", "source", "licence")
            print(json.dumps([{key: getattr(item, key) for key in fields} for item in sets]))
            return
        table = Table("name", "rows x columns x bands", "classes", "here", "what", "licence")
        for item in sets:
            here = "yes" if item.installed else f"pip install 'eigenscape[{item.extra}]'"
            table.add_row(
                item.name,
                " x ".join(map(str, item.shape)),
                str(len(item.classes)),
                here,
                f"{item.description} {item.source}",
                item.licence,
            )
        _console().print(table)


def main() -> None:
    """Run the command line."""
    app()


@contextmanager
def _exit_status() -> Iterator[None]:
    """Turn our own errors into one message on stderr and their exit status."""
    try:
        yield
    except EigenscapeError as error:
        print(f"eigenscape: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_status) from None
    except MemoryError as error:
        print(
            f"eigenscape: out of memory ({error}). Set limits.memory to what is free, or "
            "limits.threads to fewer.",
            file=sys.stderr,
        )
        raise typer.Exit(InputError.exit_status) from None
    except KeyboardInterrupt:
        print("eigenscape: stopped. The same command goes on from here.", file=sys.stderr)
        raise typer.Exit(130) from None


def _console() -> Console:
    # Wide enough for a table where stdout is a file.
    console = Console()
    return console if console.is_terminal else Console(width=140)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _print_result(result: Any) -> None:
    console = _console()
    table = Table("stage", "seconds", "peak memory", "")
    for stage in result.stages:
        table.add_row(
            stage["name"],
            f"{stage['seconds']:.1f}",
            format_bytes(stage["peak_bytes"]),
            "reused" if stage["reused"] else "",
        )
    console.print(table)
    spectrum, neighbors, scores = result.spectrum, result.neighbors, result.scores
    half = (neighbors["recall_high"] - neighbors["recall_low"]) / 2
    say = functools.partial(console.print, highlight=False, soft_wrap=True)
    say(
        f"neighbours   recall {neighbors['recall']:.4f} +- {half:.4f} "
        f"({neighbors['recall_samples']} lists checked against exact search)"
    )
    say(
        f"eigenpairs   {len(spectrum['values'])}, largest residual "
        f"{spectrum['max_residual']:.1e}, {spectrum['solver']} solver"
    )
    if scores:
        kappa = "-" if scores["kappa"] is None else f"{scores['kappa']:.3f}"
        say(
            f"accuracy     {_percent(scores['overall_accuracy'])} overall, "
            f"{_percent(scores['average_accuracy'])} average, kappa {kappa}: "
            f"{scores['protocol']}"
        )
        for split, held in scores["held_out"].items():
            say(
                f"  held out   {_percent(held['overall_accuracy'])} +- "
                f"{_percent(held['overall_accuracy_std'])} overall ({split} split, "
                f"{held['training_pixels']} training pixels, {held['trials']} trials)"
            )
    for name, path in result.outputs.items():
        say(f"{name:<22} {path}")


def _print_plan(planned: Any, limit: int) -> None:
    console = _console()
    table = Table("stage", "tasks", "projected peak", "written", "scratch", "")
    for stage in planned.stages:
        table.add_row(
            stage.name,
            str(stage.tasks),
            format_bytes(stage.peak_bytes),
            format_bytes(stage.disk_bytes),
            format_bytes(stage.scratch_bytes),
            "reused" if planned.reused.get(stage.name) else "",
        )
    console.print(
        f"{planned.samples} samples x {planned.bands} bands -> {planned.dimension} features",
        highlight=False,
    )
    console.print(table)
    for note in planned.notes:
        console.print(note, highlight=False)
    console.print(
        f"projected peak {format_bytes(planned.peak_bytes)} of {format_bytes(limit)} "
        f"(limits.memory), run directory {planned.run}",
        highlight=False,
        soft_wrap=True,
    )


def _print_status(found: dict[str, Any]) -> None:
    console = _console()
    table = Table("stage", "state", "seconds", "peak memory", "finished")
    for stage in found["stages"]:
        peak = stage["peak_bytes"]
        table.add_row(
            stage["name"],
            stage["state"],
            "" if stage["seconds"] is None else f"{stage['seconds']:.1f}",
            "" if peak is None else format_bytes(peak),
            stage["finished"] or "",
        )
    console.print(table)
    console.print(f"{found['run']}: {found['state']}", highlight=False, soft_wrap=True)
