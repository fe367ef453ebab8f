"""What tuning leaves: the chosen job as a commented file, and the table of all that were tried."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from eigenscape.base.files.tables import Row, columns_of, write_csv
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.job.changes import given_tables
from eigenscape.job.files.named import with_files
from eigenscape.job.jobfile import Job
from eigenscape.workflow.choice.candidates import Candidate
from eigenscape.workflow.choice.tried import Interval, Tried


def write_job(path: Path, job: Job, comments: Sequence[str]) -> None:
    """Write a job file: the keys that the job gives, in their tables, under some comments.

    Parameters
    ----------
    path
        Where to; files are named as they are found from there.
    job
        What to write.
    comments
        Lines to stand at the head.
    """
    document = tomlkit.document()
    for line in comments:
        document.add(tomlkit.comment(line))
    _add(document, given_tables(job), job)
    with explain_write_errors(path), written_whole(path) as temporary:
        temporary.write_text(tomlkit.dumps(document), encoding="utf-8")


def _add(table: Any, values: Mapping[Any, Any], job: Job, place: str = "") -> None:
    """Add values to a table of TOML: files by absolute paths, as the job moves."""
    from eigenscape.scenes.registry import located

    for name, value in values.items():
        key = f"{place}{name}"
        if value is None or value == {}:
            continue
        if isinstance(value, Mapping):
            inner = tomlkit.table(is_super_table=False)
            _add(inner, value, job, f"{key}.")
            table[str(name)] = inner
        else:
            absolute = with_files(key, value, lambda path: located(path, job.resolve))
            table[str(name)] = list(absolute) if isinstance(absolute, tuple) else absolute


def write_tried(
    path: Path, tried: Sequence[Tried], chosen: Candidate | None, given: Candidate
) -> None:
    """Write the table of all jobs that were tried: the best first, with the keys that each changes.

    No job is chosen where the tuning was stopped.
    """
    keys = list(dict.fromkeys(key for one in tried for key in one.candidate.values))
    ordered = sorted(tried, key=lambda one: (-one.drawn, -one.mean(one.drawn)))
    rows = [_row(one, keys, chosen, given) for one in ordered]
    with explain_write_errors(path):
        write_csv(path, rows, columns_of(rows))


def _state(one: Tried) -> str:
    if one.error:
        return "failed"
    if one.far_behind:
        return "far behind"
    return "finished" if one.drawn else "to do"


def _row(one: Tried, keys: Sequence[str], chosen: Candidate | None, given: Candidate) -> Row:
    found = Interval.of(one.accuracy) if one.accuracy else None
    names = {"chosen": chosen, "as given": given}
    return {
        "candidate": ", ".join(
            name
            for name, what in names.items()
            if what is not None and what.values == one.candidate.values
        ),
        "rung": one.rung,
        "draws": one.drawn,
        "accuracy": None if found is None else round(found.mean, 3),
        "half_interval": round(half, 3) if found and (half := found.shown_half) else None,
        "seconds": round(one.seconds, 3),
        **{key: one.candidate.values.get(key) for key in keys},
        "state": _state(one),
        "reason": one.reason,
    }
