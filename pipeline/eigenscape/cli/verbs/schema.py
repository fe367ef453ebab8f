"""``eigenscape schema``."""

from typing import Annotated, Literal

import typer


def schema_command(
    what: Annotated[
        Literal["job", "result"],
        typer.Argument(
            help="Schema of job files, or of the output of run --json and apply --json."
        ),
    ] = "job",
) -> None:
    """Print the JSON Schema of job files or of the output of --json."""
    if what == "result":
        from eigenscape.workflow.finished.result import result_schema

        print(result_schema())
        return
    from eigenscape.job.files.schema import job_schema

    print(job_schema())
