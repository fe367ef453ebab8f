"""The sections on cost and on the job: time and memory of the stages, how the methods were chosen."""

from typing import Any

from eigenscape.base.memory import format_bytes
from eigenscape.export.report.source import Source

_STAGES = {
    "ingest": "reads the scene and keeps its valid {what}",
    "features": "makes the vectors that are compared",
    "neighbors": "finds the most similar {what} of every {one}",
    "graph": "links similar {what} with weights",
    "spectrum": "computes the eigenvectors of the graph",
    "learn": "gives every {one} a class, and tests how well",
    "extend": "classifies the {what} by the earlier run",
    "export": "writes maps, tables and this page",
}


def seconds(value: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> seconds(3.14), seconds(75), seconds(7300)
    ('3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if value < 60:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def cost(source: Source) -> dict[str, Any]:
    """Return the section on time and memory: the ``stages`` and their ``total`` time."""
    return {"stages": stage_rows(source), "total": total_seconds(source)}


def stage_rows(source: Source) -> list[dict[str, Any]]:
    """Return seconds and memory of each stage, measured and projected."""
    manifest, what = source.run.manifest, source.grid.things
    projected = manifest.get("projected", {})
    records = {name: source.run.record(name) for name in manifest.get("order", [])}
    known = [record for record in records.values() if record is not None]
    longest = max([record.seconds for record in known], default=0) or 1
    sizes = [*(record.peak_bytes for record in known), *projected.values()]
    largest = max(sizes, default=0) or 1
    rows = []
    for name, record in records.items():
        plan = projected.get(name)
        rows.append({
            "name": name, "does": _STAGES.get(name, "").format(what=what, one=what[:-1]),
            "seconds": None if record is None else seconds(record.seconds),
            "long": 0 if record is None else 100 * record.seconds / longest,
            "peak": None if record is None else format_bytes(record.peak_bytes),
            "high": 0 if record is None else 100 * record.peak_bytes / largest,
            "projected": None if plan is None else format_bytes(plan),
            "mark": None if plan is None else 100 * plan / largest,
        })  # fmt: skip
    return rows


def total_seconds(source: Source) -> str:
    """Return the time that the finished stages took together."""
    records = map(source.run.record, source.run.manifest.get("order", []))
    return seconds(sum(record.seconds for record in records if record is not None))


def choice_lines(source: Source) -> list[str]:
    """Return how the methods were chosen; nothing for a job that names them."""
    found: list[str] = source.run.manifest.get("choice", {}).get("said", [])
    return found
