"""The text about runs: what a plan needs, and how far a run is."""

from typing import Any

from rich.table import Table

from eigenscape.base.memory import format_bytes
from eigenscape.cli.printing.console import console
from eigenscape.cli.printing.results import dimension_lines, score_lines

_NOT_CONVERGED = (
    "no: the eigenvectors have not reached spectrum.tolerance. The results are kept. Raise "
    "spectrum.tolerance, or lower spectrum.dimension."
)


def print_plan(planned: Any, limit: int, *, of_worker: bool = False) -> None:
    """Print the needs of a job.

    Parameters
    ----------
    planned
        An `eigenscape.workflow.plan.Plan`.
    limit
        The memory limit in bytes.
    of_worker
        Whether the memory of a worker sets the limit, and not the job.
    """
    wide = console()
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
    wide.print(
        f"{planned.samples} samples x {planned.bands} bands -> {planned.dimension} features",
        highlight=False,
    )
    wide.print(table)
    for note in planned.notes:
        wide.print(note, highlight=False)
    allowed = "three quarters of the memory of a worker" if of_worker else "limits.memory"
    wide.print(
        f"projected peak {format_bytes(planned.peak_bytes)} of {format_bytes(limit)} "
        f"({allowed}), run directory {planned.run}",
        highlight=False,
        soft_wrap=True,
    )


def print_status(found: dict[str, Any]) -> None:
    """Print the stages of a run, as `eigenscape.workflow.directories.status` returned them."""
    wide = console()
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
    wide.print(table)
    wide.print(f"{found['run']}: {found['state']}", highlight=False, soft_wrap=True)
    if found["converged"] is False:
        wide.print(f"converged    {_NOT_CONVERGED}", highlight=False, soft_wrap=True)
    if driver := found["driver"]:
        line = f"driver       {driver['driver']}: job {driver['job_id']} of {driver['kind']}"
        line += f" ({driver['job']}), {len(driver['jobs'])} submitted"
        line += ", at work" if driver["at_work"] else ""
        wide.print(f"{line}. {driver['message']}".strip(), highlight=False, soft_wrap=True)
    for line in (*dimension_lines(found["intrinsic_dimension"]), *score_lines(found["scores"])):
        wide.print(line, highlight=False, soft_wrap=True)
