"""What tuning leaves: the chosen job as a commented file, and the table of all that were tried."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit

from eigenscape.base.files.tables import Row, columns_of, write_csv
from eigenscape.base.files.whole import explain_write_errors, written_whole
from eigenscape.job.changes import given_keys
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
    tables: dict[str, Any] = {}
    for key, value in given_keys(job).items():
        if value is None or value == {}:
            continue
        *sections, last = key.split(".")
        table: Any = document
        for number, section in enumerate(sections):
            name = ".".join(sections[: number + 1])
            if name not in tables:
                tables[name] = tomlkit.table(is_super_table=False)
                table[section] = tables[name]
            table = tables[name]
        table[last] = _located(job, key, value)
    with explain_write_errors(path), written_whole(path) as temporary:
        temporary.write_text(tomlkit.dumps(document), encoding="utf-8")


def _located(job: Job, key: str, value: Any) -> Any:
    """Return a value as TOML takes it; files by absolute paths, as the job moves."""
    from eigenscape.scenes.registry import is_registered

    if key == "scene.mask":
        value = job.scene.with_mask_files(job.resolve)
        return list(value) if isinstance(value, tuple) else value
    if key in _FILES or (key == "learn.train" and isinstance(value, str) and value != "all"):
        if isinstance(value, str):
            return value if is_registered(value) else job.resolve(value)
        return [job.resolve(one) for one in value]
    return list(value) if isinstance(value, tuple) else value


_FILES = (
    "scene.path", "scene.labels", "output.directory", "graph.potential.raster",
)  # fmt: skip
"""Keys that name files."""


def write_tried(path: Path, tried: Sequence[Tried], chosen: Candidate, given: Candidate) -> None:
    """Write the table of all jobs that were tried: the best first, with the keys that each changes."""
    keys = list(dict.fromkeys(key for one in tried for key in one.candidate.values))
    ordered = sorted(tried, key=lambda one: (-one.drawn, -one.mean(one.drawn)))
    rows = [_row(one, keys, chosen, given) for one in ordered]
    with explain_write_errors(path):
        write_csv(path, rows, columns_of(rows))


def _row(one: Tried, keys: Sequence[str], chosen: Candidate, given: Candidate) -> Row:
    found = Interval.of(one.accuracy) if one.accuracy else None
    names = {"chosen": chosen, "as given": given}
    return {
        "candidate": ", ".join(
            name for name, what in names.items() if what.values == one.candidate.values
        ),
        "rung": one.rung,
        "draws": one.drawn,
        "accuracy": None if found is None else round(found.mean, 3),
        "half_interval": None if found is None or found.half is None else round(found.half, 3),
        "seconds": round(one.seconds, 3),
        **{key: one.candidate.values.get(key) for key in keys},
        "state": "failed" if one.error else "finished" if one.accuracy else "to do",
        "reason": one.reason,
    }
