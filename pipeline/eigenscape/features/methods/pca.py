"""``features.method = "pca"``: principal components (Belkin 2003, 3.8.1)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.features.linear import Covarying, LinearMap, Standardizing

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.store.rows import Rows


class PrincipalComponents(Standardizing, Covarying):
    """Principal components (Belkin 2003, 3.8.1)."""

    axis: ClassVar[str] = "principal component"

    method: Literal["pca"] = "pca"
    """Principal components (Belkin 2003, 3.8.1)."""

    def fit(self, context: "Context", source: "Rows") -> tuple[LinearMap, dict[str, Any]]:
        """Return the eigenvectors of the largest eigenvalues of the covariance."""
        import numpy as np

        from eigenscape.features.kernels import principal_components, unit_scale
        from eigenscape.features.moments import find_moments

        bands = source.shape[1]
        if not self.is_projected(bands):
            return self.standardized(context, source, None), {}
        mean, variance, covariance = find_moments(context, source, whole=True)
        assert covariance is not None, "the whole was asked for"
        scale = unit_scale(variance) if self.standardize else np.ones(bands)
        covariance *= scale
        covariance *= scale[:, None]
        basis, kept = principal_components(covariance, self.dimension)
        total = float(np.trace(covariance))
        summary = {"explained_variance": float(kept.sum() / total) if total > 0 else 1.0}
        basis = scale[:, None] * basis
        return LinearMap(mean.astype(np.float32), basis.astype(np.float32)), summary
