"""Reports of finished runs: the page of one, and the index of many."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eigenscape.base.commands import command_line
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.process.progress import Reporter, Silent
from eigenscape.base.shares import percent
from eigenscape.errors import InputError, OutputError, StoreError
from eigenscape.export.arrays import TemporaryFolders
from eigenscape.export.report.index import Entry, write_index
from eigenscape.export.report.page import REPORT, write_page
from eigenscape.export.report.source import Source
from eigenscape.store.manifest import HasPath, path_of, require_run
from eigenscape.store.run import Run


def report(
    run: str | Path | HasPath, output: str | Path | None = None, *, reporter: Reporter | None = None
) -> Path:
    """Write the page about a finished run: its map, accuracy, eigenvectors, cost, in one HTML file.

    Parameters
    ----------
    run
        Run directory, or the result of `eigenscape.run`.
    output
        File to write; by default ``outputs/report.html`` of the run, and the checksum in the manifest is
        updated.
    reporter
        Called with the progress; by default, progress is not reported.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    InputError
        There is no run in that directory, or it is not finished.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> page = eigenscape.report(eigenscape.run(job).path, "page.html")
    >>> "Content-Security-Policy" in page.read_text(encoding="utf-8")
    True
    """
    reporter, directory = reporter or Silent(), path_of(run)
    source = source_of(directory, reporter)
    if output is not None:
        path = Path(output)
        _check_output(path)
        with explain_write_errors(path):
            write_page(source, path)
        return path
    store = Run(directory)
    with store.lock(reporter.note), store.replacing("export", REPORT) as path:
        write_page(source, path)
    return path


def _check_output(path: Path) -> None:
    """Refuse a path at which no file can be written."""
    if path.is_dir():
        raise OutputError(
            f"{path}: is a directory. Give the file to write, such as {path / REPORT}."
        )
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no directory {path.parent}. Make it first.")


def source_of(path: Path, reporter: Reporter) -> Source:
    """Return a finished run as its report reads it; see `report`."""
    require_run(path)
    run = Run(path, create=False)
    if run.record("export") is None:
        command = "apply" if "applies" in run.manifest else "run"
        raise InputError(
            f"{path}: the run is not finished, so there is nothing to report yet. The same "
            f"`eigenscape {command}` continues it; `{command_line('status', path)}` lists the remaining "
            "stages."
        )
    return Source(run, path / "outputs", reporter, TemporaryFolders())


def report_many(
    path: Path, output: Path | None, kind: str, rows: Iterable[Mapping[str, Any]]
) -> Path:
    """Write the page about many runs: a card with a picture for each.

    Parameters
    ----------
    path
        Directory of the batch, the study or the runs.
    output
        The file; ``report.html`` in the directory by default.
    kind
        "batch", "study" or "runs".
    rows
        ``name``, ``state``, ``run`` (a directory or None), ``reason`` of each.

    Returns
    -------
    Path
        The file.
    """
    target = output or path / REPORT
    _check_output(target)
    with explain_write_errors(target):
        write_index(target, path.resolve().name, kind, [_entry(row) for row in rows])
    return target


def _entry(row: Mapping[str, Any]) -> Entry:
    source = None
    reason = str(row.get("reason") or "")
    if row.get("run"):
        try:
            source = source_of(Path(row["run"]), Silent())
        except InputError:
            pass  # not finished: its state says so
        except StoreError as error:
            reason = reason or str(error)
    figure = "" if source is None or source.classes else "no labels: eigenvectors alone"
    if source is not None and source.scores:
        scores = source.scores
        accuracy = scores.get("overall_accuracy")
        figure = (
            f"{scores['clusters']} clusters" if "clusters" in scores
            else f"accuracy not measured: {scores['protocol']}" if accuracy is None
            else f"{percent(accuracy)} on {scores['protocol']}"
        )  # fmt: skip
    return Entry(str(row["name"]), str(row["state"]), source, figure, reason)
