"""``learn.method = "spectral-clustering"``: k-way spectral clustering (Ng, Jordan, Weiss 2001)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import Clustering

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.context import Context
    from eigenscape.learn.clustering.coordinates import Coordinates
    from eigenscape.spectrum.scaled import StoredGraph


class SpectralClustering(Clustering):
    """Without labels: k-way spectral clustering (Ng, Jordan, Weiss 2001)."""

    seeded: ClassVar[bool] = True

    method: Literal["spectral-clustering"] = "spectral-clustering"
    """Without labels: k-way spectral clustering (Ng, Jordan, Weiss 2001)."""
    assign: Literal["cluster-qr", "k-means"] = "cluster-qr"
    """Assignment of samples to clusters: "cluster-qr", column-pivoted QR (Damle and others 2019), or
    "k-means" (needs the extra ``clusters``)."""

    def form(self, laplacian: str) -> Literal["plain", "unit"]:
        """Return how the eigenvectors are scaled."""
        return "unit" if self.assign == "k-means" else "plain"

    def divide(
        self,
        context: "Context",
        graph: "StoredGraph",
        coordinates: "Coordinates",
        folder: "Path",
        wanted: int,
    ) -> "NDArray[np.integer]":
        """Rotate the eigenvectors, or find centres, and assign the rows."""
        from eigenscape.learn.clustering.assigning import assign_rows

        return assign_rows(context, graph, coordinates, self.assign, self.seed, wanted)

    def told(self) -> dict[str, Any]:
        """Return how rows are assigned."""
        return {"assign": self.assign}

    @property
    def library_bytes(self) -> int:
        """Measured: dask-ml and scikit-learn."""
        return 104 * 2**20 if self.assign == "k-means" else 0

    def needed_extra(self) -> tuple[str, str, str, str] | None:
        """Return dask-ml for k-means."""
        if self.assign != "k-means":
            return None
        return "dask_ml", "dask-ml", "clusters", 'learn.assign = "k-means"'
