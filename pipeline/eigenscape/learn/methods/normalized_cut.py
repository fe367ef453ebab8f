"""``learn.method = "normalized-cut"``: recursive normalised cuts (Shi, Malik 2000)."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from eigenscape.learn.method import Clustering
from eigenscape.spectrum.kernels.forms import FORMS

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.context import Context
    from eigenscape.learn.clustering.coordinates import Coordinates
    from eigenscape.spectrum.scaled import StoredGraph

_RITZ_VECTORS = 16
"""Eigenvectors of which a part's vector is combined, at least; twice the number of parts if more."""


class NormalizedCut(Clustering):
    """Without labels: recursive normalised cuts (Shi, Malik 2000; Belkin 2003, 1.2 and 2.4)."""

    leads_by_cuts: ClassVar[bool] = True

    method: Literal["normalized-cut"] = "normalized-cut"
    """Without labels: recursive normalised cuts (Shi, Malik 2000; Belkin 2003, 1.2 and 2.4)."""
    ncut: Annotated[float, Field(gt=0, le=2)] | None = None
    """Largest cost of a split. With ``clusters`` = "auto", it determines the number of clusters."""

    @property
    def open_ended(self) -> str:
        """Return why no number of clusters is needed: ``ncut`` is given."""
        return "" if self.ncut is None else "as many as learn.ncut allows"

    def columns(self, wanted: int) -> int:
        """Return how many eigenvectors are used for so many clusters."""
        return max(2 * wanted, _RITZ_VECTORS)

    def form(self, laplacian: str) -> Literal["plain", "per degree"]:
        """Return how the eigenvectors are scaled."""
        return "plain" if FORMS[laplacian].constant else "per degree"

    def divide(
        self,
        context: "Context",
        graph: "StoredGraph",
        coordinates: "Coordinates",
        folder: "Path",
        wanted: int,
    ) -> "NDArray[np.integer]":
        """Split the part whose cut is cheapest, until there are enough."""
        import numpy as np

        from eigenscape.learn.clustering.cutting import cut_parts

        limit = np.inf if self.ncut is None else self.ncut
        return cut_parts(context.map, graph, coordinates.open, folder, wanted, limit)
