"""``eigenscape report | open``: write the report of a run; print the paths of its files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from eigenscape.base.commands import command_line
from eigenscape.cli.arguments import Json, Set, exit_status

Where = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="Directory of a run, a batch, a study or several runs; or a job file."
    ),
]


def report_command(
    path: Where,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="Page to write; outputs/report.html by default."
        ),
    ] = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Write the HTML report of a run, a batch or a study."""
    with exit_status():
        from eigenscape.base.process.progress import console_reporter
        from eigenscape.cli.overview import directory_of
        from eigenscape.workflow.finished.reports import report

        run = directory_of(path, set_ or ())
        written = _write_index(run, output) or report(run, output, reporter=console_reporter())
        print(json.dumps({"run": str(run), "report": str(written)}) if as_json else written)


def open_command(
    path: Where,
    browser: Annotated[
        bool, typer.Option("--browser", help="Also open the report in the web browser.")
    ] = False,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Print the paths of the report and of the other outputs."""
    with exit_status():
        import webbrowser

        from eigenscape.cli.overview import directory_of
        from eigenscape.errors import InputError

        run = directory_of(path, set_ or ())
        found = _files(run)
        page = found.get("report")
        if as_json:
            print(json.dumps({"run": str(run), "outputs": found}))
        else:
            for name, file in found.items():
                print(f"{name:<22} {file}")
        if browser:
            if page is None:
                raise InputError(
                    f"{run}: has no report. `{command_line('report', path)}` writes one."
                )
            if not webbrowser.open(Path(page).resolve().as_uri()):
                raise InputError(f"No web browser was found. The report is {page}.")


def _write_index(run: Path, output: Path | None) -> Path | None:
    """Write the page about a directory of many runs; None where it is that of a single one."""
    from eigenscape.cli.kinds import TUNING, kind_of
    from eigenscape.cli.overview import list_runs
    from eigenscape.errors import InputError
    from eigenscape.workflow.finished.reports import report_many

    if kind_of(run) is TUNING:
        job = _tuned(run)["job"]
        raise InputError(
            f"{run}: is the directory of a tuning, which has no report. `{command_line('run', job)}` "
            f"computes the chosen job, and `{command_line('report', job)}` then writes its report."
        )
    if kind := kind_of(run):
        return kind.write_index(run, output)
    found = [row for row in list_runs(run) if row["kind"] == "run"]
    if not found:
        return None
    rows = [{**row, "name": Path(row["run"]).name} for row in found]
    return report_many(run, output, "runs", rows)


def _files(run: Path) -> dict[str, str]:
    """Return the files of a run by what they are, the report first; of many runs their index."""
    from eigenscape.base.process.progress import Silent
    from eigenscape.cli.kinds import TUNING, kind_of
    from eigenscape.errors import InputError
    from eigenscape.store.manifest import is_run
    from eigenscape.workflow.finished.reports import source_of

    if kind_of(run) is TUNING:
        return _tuned(run)
    if run.is_dir() and not is_run(run):
        page = run / "report.html"
        tables = {file.stem: str(file) for file in sorted(run.glob("*.csv"))}
        if not page.exists() and not tables:
            raise InputError(
                f"{run}: no run, batch or study, and no index of runs. "
                f"`{command_line('report', run)}` writes one."
            )
        return {**({"report": str(page)} if page.exists() else {}), **tables}
    source = source_of(run, Silent())
    outputs = source.summary("export")["outputs"]
    if (source.outputs / "report.html").exists():
        outputs = {"report": "report.html", **outputs}
    return {name: str(source.outputs / file) for name, file in outputs.items()}


def _tuned(run: Path) -> dict[str, str]:
    """Return the files of a tuning; refuse one that has not chosen a job yet."""
    from eigenscape.cli.kinds import TUNING
    from eigenscape.errors import InputError

    found = TUNING.status(run)
    if "job" not in found["outputs"]:
        raise InputError(f"{run}: tuning {found['state']}. Its files are written when it ends.")
    files: dict[str, str] = found["outputs"]
    return files
