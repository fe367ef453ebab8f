"""A scene after ingest, as the manifest describes it: its files need not be opened again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eigenscape.scenes.draws import Subset
from eigenscape.scenes.labels.sources import open_marks
from eigenscape.scenes.types import Grid, Labels


@dataclass(frozen=True)
class IngestedScene:
    """Grid of a scene that was read.

    Attributes
    ----------
    grid
        Of the scene.
    subset
        Rows drawn of a table, None for all.
    labelled
        Whether it has labels.
    resolve
        Turns a path of the job into an absolute one.
    """

    grid: Grid
    subset: Subset | None
    labelled: bool
    resolve: Callable[[str], str]

    @classmethod
    def from_summary(
        cls, summary: Mapping[str, Any], resolve: Callable[[str], str]
    ) -> "IngestedScene":
        """Return the scene of the summary of an ingest stage."""
        drawn = summary.get("subset")
        subset = None if drawn is None else Subset(**drawn)
        return cls(Grid.from_json(summary["grid"]), subset, bool(summary["labelled"]), resolve)

    def open_marks(self, path: str) -> Labels:
        """Open a file of the job that marks samples; see `eigenscape.scenes.labels.sources.open_marks`."""
        return open_marks(self.resolve(path), self.grid, self.subset)
