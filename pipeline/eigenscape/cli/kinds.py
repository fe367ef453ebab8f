"""The kinds of directories: batches, studies, tunings, runs; their status, and the page about many runs."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from eigenscape.cli.printing.batches import print_batch_status
from eigenscape.cli.printing.runs import print_status
from eigenscape.cli.printing.studies import print_study_status
from eigenscape.cli.printing.tuning import print_tuning_status
from eigenscape.store.manifest import is_run
from eigenscape.workflow.directories import is_batch, is_study, is_tuning, status

if TYPE_CHECKING:
    from eigenscape.batch.outcomes import BatchResult
    from eigenscape.study.outcomes import StudyResult


@dataclass(frozen=True)
class Kind:
    """A kind of directory.

    Attributes
    ----------
    name
        "batch", "study", "tuning" or "run".
    is_one
        Whether a directory is of this kind.
    status
        Returns its status as JSON values.
    show
        Prints its status.
    rows
        Returns from its status the rows of `eigenscape.workflow.finished.reports.report_many`; None for a
        single run, and for a tuning, whose runs are only scored.
    """

    name: str
    is_one: Callable[[Path], bool]
    status: Callable[[Path], dict[str, Any]]
    show: Callable[[dict[str, Any]], None]
    rows: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]] | None = None

    def write_index(self, path: Path, output: Path | None = None) -> Path | None:
        """Write the page about all runs of a directory; None if it has no `rows`."""
        if self.rows is None:
            return None
        from eigenscape.workflow.finished.reports import report_many

        return report_many(path, output, self.name, self.rows(self.status(path)))


# What many runs have in common is imported where there are some: it takes a second.
def _batch_status(path: Path) -> dict[str, Any]:
    from eigenscape.batch.table import batch_status

    return batch_status(path)


def _study_status(path: Path) -> dict[str, Any]:
    from eigenscape.study.plan import study_status

    return study_status(path)


def _tuning_status(path: Path) -> dict[str, Any]:
    from eigenscape.tuning.status import tuning_status

    return tuning_status(path)


def _scene_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "name": row["scene"]} for row in found["scenes"]]


def _variant_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "name": row["title"], "run": row["directory"]} for row in found["variants"]]


BATCH = Kind("batch", is_batch, _batch_status, print_batch_status, _scene_rows)
STUDY = Kind("study", is_study, _study_status, print_study_status, _variant_rows)
TUNING = Kind("tuning", is_tuning, _tuning_status, print_tuning_status)
RUN = Kind("run", is_run, status, print_status)


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a directory; None if it is none of them."""
    return next((kind for kind in (BATCH, STUDY, TUNING, RUN) if kind.is_one(path)), None)


def end_of_many(
    kind: Kind,
    result: "BatchResult | StudyResult",
    show: Callable[[Path | None], None],
    *,
    as_json: bool,
) -> NoReturn:
    """Write the page about a batch or a study that has run, print its result and exit.

    Parameters
    ----------
    kind
        `BATCH` or `STUDY`.
    result
        What has run.
    show
        Prints the result, given the page if there is one.
    as_json
        Whether the result is printed as one JSON object instead.

    Raises
    ------
    typer.Exit
        Always, with `Outcomes.exit_status`.
    """
    page = kind.write_index(result.path) if result.count("done") else None
    print(json.dumps(result.to_json())) if as_json else show(page)
    for remark in result.remarks():
        print(f"eigenscape: {remark}", file=sys.stderr)
    raise typer.Exit(result.exit_status)
