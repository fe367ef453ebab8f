"""``neighbors.method = "landmarks"``: neighbours among a few samples (Halevy 2011, 4.4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from eigenscape.base.footprint import Footprint
from eigenscape.errors import JobError
from eigenscape.job.options import GraphOptions
from eigenscape.neighbors.method import NeighborMethod, Table

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.neighbors.search.layout import Layout


class Landmarks(NeighborMethod):
    """Neighbours among landmarks, whose eigenvectors are extended to all samples (Halevy 2011, 4.4)."""

    method: Literal["landmarks"] = "landmarks"
    """Neighbours among landmarks only; their eigenvectors are extended by the Nystrom formula (Halevy 2011,
    4.4)."""
    landmarks: Annotated[int, Field(ge=2, le=20_000)] = 1000
    """Number of landmarks, which are the samples nearest to the centres of k-means."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of k-means and of the random subset that it uses."""

    def library_bytes(self, *, sparse: bool) -> int:
        """Return the memory of scikit-learn, too."""
        return super().library_bytes(sparse=sparse) + 64 * 2**20

    @model_validator(mode="after")
    def _check_count(self) -> "Landmarks":
        if self.landmarks <= self.k:
            raise ValueError(
                f"landmarks = {self.landmarks}: each has k = {self.k} neighbours among the others; "
                f"set neighbors.landmarks to {self.k + 1} or more"
            )
        return self

    @property
    def most_landmarks(self) -> int | None:
        """How many there are at most."""
        return self.landmarks

    def write(self, context: "Context", layout: "Layout") -> dict[str, Any]:
        """See `eigenscape.neighbors.writing.write_to_landmarks`."""
        from eigenscape.neighbors.writing import write_to_landmarks

        return write_to_landmarks(context, layout, self)

    def footprint(self, table: Table) -> Footprint:
        """Count what k-means sees, its own copy and work."""
        from eigenscape.neighbors.footprint import with_lists
        from eigenscape.neighbors.search.exhaustive import TASK_RANKS
        from eigenscape.neighbors.search.landmarks import DRAWN

        usual, n = super().footprint(table), table.rows
        each = max(usual.each, 3 * table.row_bytes * min(n, DRAWN * self.landmarks))
        tasks = usual.tasks + 1 - (-n // TASK_RANKS)
        return with_lists(replace(usual, tasks=tasks, each=each), table, 18 * n * self.k)

    def notes(self, table: Table) -> Sequence[str]:
        """Say whose eigenvectors are extended."""
        count = min(table.rows, self.landmarks)
        return (
            f"eigenvectors of {count} landmarks, extended to all samples by the Nystrom formula",
        )

    def check_graph(self, graph: GraphOptions) -> None:
        """Refuse what a graph of landmarks cannot have."""
        reasons = {
            "[graph.spatial]": graph.spatial and "joins pixels that are not landmarks",
            "[graph.potential]": graph.potential and "acts on samples that are not landmarks",
            'graph.components = "each"': graph.components == "each"
            and 'solves on parts to which other samples belong by halves (set it to "largest")',
        }
        for key, reason in reasons.items():
            if reason:
                raise JobError(
                    f'neighbors.method = "{self.method}": {key} {reason}. Leave it out, or use another '
                    "neighbors.method."
                )
