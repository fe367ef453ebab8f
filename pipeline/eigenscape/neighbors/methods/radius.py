"""``neighbors.method = "radius"``: all neighbours within a distance."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from eigenscape.base.footprint import Footprint
from eigenscape.neighbors.method import NeighborMethod, Table

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.neighbors.search.layout import Layout


class Radius(NeighborMethod):
    """All neighbours within a distance, by brute force."""

    method: Literal["radius"] = "radius"
    """All neighbours within a distance, by brute force."""
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Largest distance of neighbours: in units of the features, or in radians."""

    @model_validator(mode="after")
    def _check_radius(self) -> "Radius":
        if self.radius is None:
            raise ValueError('method = "radius" needs a radius: set neighbors.radius')
        if self.metric == "angle" and self.radius > math.pi:
            raise ValueError(f"radius = {self.radius}: an angle is at most pi radians")
        return self

    @property
    def reach(self) -> float | None:
        """The radius."""
        return self.radius

    def write(self, context: "Context", layout: "Layout") -> dict[str, Any]:
        """See `eigenscape.neighbors.writing.write_within`."""
        from eigenscape.neighbors.writing import write_within

        return write_within(context, layout, self)

    def footprint(self, table: Table) -> Footprint:
        """Return memory and disk for the largest allowed number of neighbours."""
        from eigenscape.neighbors.search.exhaustive import MOST_NEIGHBORS, TASK_RANKS

        usual, n = super().footprint(table), table.rows
        each = max(usual.each, 100 * min(n, TASK_RANKS) * min(n, MOST_NEIGHBORS))
        return replace(usual, tasks=usual.tasks + 2 * -(-n // TASK_RANKS), each=each)

    def notes(self, table: Table) -> Sequence[str]:
        """Say that sizes are those of k neighbours."""
        return (
            "the number of neighbours within neighbors.radius is estimated from a thousand samples before "
            "the search, and the following stages are projected again; the sizes here assume "
            f"{self.k} neighbours per sample (neighbors.k)",
        )
