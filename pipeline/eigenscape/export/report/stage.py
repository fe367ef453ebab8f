"""The report at the end of the export stage."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from eigenscape.context import Context
from eigenscape.export.report.page import REPORT, write_page
from eigenscape.export.report.source import Source

Work = Callable[[Context], dict[str, Any]]


def with_report(work: Work) -> Work:
    """Let an export stage write ``outputs/report.html`` last, unless the job wants none."""

    @wraps(work)
    def reported(context: Context) -> dict[str, Any]:
        summary = work(context)
        if context.job.output.report:
            write_page(Source.of_context(context), context.workspace.file(REPORT))
            summary["outputs"] = {**summary["outputs"], "report": REPORT}
        return summary

    return reported
