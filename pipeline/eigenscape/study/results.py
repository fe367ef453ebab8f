"""The page of results: for every study its table, its picture, and what it was computed on."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from eigenscape.base.files.tables import number_of, read_table
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.base.shares import counted
from eigenscape.errors import InputError
from eigenscape.job.jobfile import Job
from eigenscape.study.layout import TextRow
from eigenscape.study.outcomes import study_directory
from eigenscape.study.pictures.plot import draw_plot
from eigenscape.study.tabulate import Tabulated, tabulate

_HEAD = """\
# Results

Every table and figure of the source documents that a study in `jobs/studies/` reproduces: ours beside
theirs. This page, its pictures and its tables in `{folder}/` are written by

    eigenscape results jobs/studies/*.toml

from what `eigenscape run jobs/studies/<study>.toml` left; a study that was cut off goes on where it
stopped. Filled markers and full lines are ours, open ones and dashed lines the published values.
"""


def write_results(studies: Sequence[Job], target: Path, runs: Path | None = None) -> list[str]:
    """Write the page, and pictures and tables in a folder beside it.

    Parameters
    ----------
    studies
        Jobs with a table ``[study]``.
    target
        The page, such as ``jobs/RESULTS.md``; the folder is ``jobs/results``.
    runs
        Where the studies ran; their own ``output.directory`` or ``runs`` by default.

    Returns
    -------
    list of str
        Names of the studies that have not run yet; the page says so.

    Raises
    ------
    InputError
        A job is no study, or the page cannot be written.
    """
    for job in studies:
        if job.study is None:
            raise InputError(f"{job.name}: has no table [study]; give study files only.")
    folder = target.parent / target.stem.lower()
    parts, missing = [_HEAD.format(folder=folder.name)], []
    with explain_write_errors(target.parent):
        folder.mkdir(parents=True, exist_ok=True)
        for job in studies:
            path = study_directory(job, runs / job.name if runs else None)
            if (path / "table.csv").exists():
                parts.append("\n".join(_section(job, path, folder)))
            else:
                missing.append(job.name)
                parts.append(
                    f"## {_title(job)}\n\nNot run yet: `eigenscape run {_command(job)}`.\n"
                )
        with written_whole(target) as temporary:
            temporary.write_text("\n".join(parts), encoding="utf-8")
    return missing


def _section(job: Job, path: Path, folder: Path) -> Iterator[str]:
    study = job.study
    assert study is not None, "checked"
    rows = read_table(path / "table.csv")
    shutil.copyfile(path / "table.csv", folder / f"{job.name}.csv")
    picture = draw_plot(folder / f"{job.name}.png", job, rows).get("plot")
    yield f"## {_title(job)}\n"
    words = [study.source and f"{study.source}.", study.note]
    if job.name.endswith("-small"):
        words.append("**This is the small version: its numbers are not those to compare.**")
    if any(words):
        yield " ".join(word.strip() for word in words if word) + "\n"
    if picture is not None:
        yield f"![{_title(job)}]({folder.name}/{picture.name})\n"
    for options in study.pictures:
        if (path / f"{options.file}.png").exists():
            name = f"{job.name}-{options.file}.png"
            shutil.copyfile(path / f"{options.file}.png", folder / name)
            yield f"![{options.title or _title(job)}]({folder.name}/{name})\n"
    shown = tabulate(job, rows)
    if shown.lines:
        yield from _markdown(shown)
    yield from (f"{line}" for line in shown.caption)
    yield from _provenance(job, rows, folder)


def _markdown(shown: Tabulated) -> Iterator[str]:
    yield "| " + " | ".join([shown.corner, *shown.header]) + " |"
    yield "|---" * (1 + len(shown.header)) + "|"
    for name, cells in shown.lines:
        yield "| " + " | ".join([name, *cells]) + " |"
    yield ""


def _provenance(job: Job, rows: Sequence[TextRow], folder: Path) -> Iterator[str]:
    """Say how many variants there are, what they took, and on what."""
    variants = {row["run"]: row for row in rows}
    done = [row for row in variants.values() if row.get("state") == "finished"]
    failed = [row for row in variants.values() if row.get("state") == "failed"]
    text = counted(len(done), "variant")
    if len(done) < len(variants):
        text += f" of {len(variants)}; {len(failed)} failed, {len(variants) - len(done) - len(failed)} to do"
    yield f"{text}, {_computing_seconds(done):.0f} s of computing. Machine: {_machines(done)}."
    for row in failed:
        yield f"Failed: {row.get('title')}: {row.get('reason', '')}"
    yield (
        f"`{_command(job)}`, all protocols and times of every stage: "
        f"[{job.name}.csv]({folder.name}/{job.name}.csv).\n"
    )


def _computing_seconds(rows: Sequence[TextRow]) -> float:
    """Return what the stages took, those that variants share counted once.

    A stage that was taken over has the seconds of the run that computed it, to the millisecond.
    """
    names = {name for row in rows for name in row if name.startswith("seconds_")}
    return sum(
        value
        for name in names
        for value in {number_of(row.get(name)) for row in rows}
        if value is not None
    )


def _machines(rows: Sequence[TextRow]) -> str:
    return (
        "; ".join(dict.fromkeys(row["machine"] for row in rows if row.get("machine"))) or "unknown"
    )


def _title(job: Job) -> str:
    return (job.study.title if job.study else "") or job.name


def _command(job: Job) -> str:
    small = job.name.endswith("-small")
    return f"jobs/studies/{job.name.removesuffix('-small')}.toml{' --small' if small else ''}"
