"""``features.method = "mnf"``: minimum noise fractions (Green and others 1988)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.base.memory import ROW_TILE
from eigenscape.features.linear import Covarying, LinearMap
from eigenscape.features.pieces import MOMENT_ROWS

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.features.method import Table
    from eigenscape.store.rows import Rows


class NoiseFractions(Covarying):
    """Minimum noise fractions (Green and others 1988)."""

    axis: ClassVar[str] = "noise fraction"
    whitened: ClassVar[bool] = True
    needs_pixels: ClassVar[str] = (
        "measures noise by the differences between neighbouring pixels. Set features.method to "
        '"pca" or "none"'
    )

    method: Literal["mnf"] = "mnf"
    """Minimum noise fractions (Green and others 1988)."""

    def is_projected(self, bands: int) -> bool:
        """Return True: noise fractions transform the bands even if none is left out."""
        return True

    def fit_bytes(self, table: "Table") -> tuple[float, float]:
        """Count the samples whose differences a task sums, with the row of the scene before them."""
        task, shared = super().fit_bytes(table)
        rows = min(1.25 * MOMENT_ROWS, table.rows)
        differences = 24.0 * table.bands * min(ROW_TILE, table.rows)
        return max(task, (4 * table.bands + 40) * rows + differences), shared

    def fit(self, context: "Context", source: "Rows") -> tuple[LinearMap, dict[str, Any]]:
        """Return the directions of the least noise for their variance."""
        import numpy as np

        from eigenscape.features.kernels import noise_fractions
        from eigenscape.features.moments import find_moments
        from eigenscape.features.noise import noise_covariance

        mean, _, covariance = find_moments(context, source, whole=True)
        assert covariance is not None, "the whole was asked for"
        noise = noise_covariance(context, source)
        basis, ratio = noise_fractions(covariance, noise, self.count(source.shape[1]))
        told = {"signal_to_noise": [round(float(value) - 1, 3) for value in ratio]}
        return LinearMap(mean.astype(np.float32), basis.astype(np.float32)), told
