"""``features.method = "random-projection"``: a random orthoprojector (Halevy 2011, chapter 4)."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.features.linear import LinearMap, Reducing, Standardizing

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.store.rows import Rows


class RandomProjection(Standardizing, Reducing):
    """Samples times a random orthoprojector (Halevy 2011, chapter 4)."""

    axis: ClassVar[str] = "projection"

    method: Literal["random-projection"] = "random-projection"
    """A random orthoprojector (Halevy 2011, chapter 4)."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the random projection."""

    def fit(self, context: "Context", source: "Rows") -> tuple[LinearMap, dict[str, Any]]:
        """Draw the projection; the samples are not looked at."""
        from eigenscape.features.kernels import orthoprojector

        bands = source.shape[1]
        basis = None
        if self.is_projected(bands):
            basis = orthoprojector(bands, self.dimension, self.seed)
        return self.standardized(context, source, basis), {}

    def notes(self, samples: int, bands: int) -> list[str]:
        """Return a note with the bounds of the theory for this projection."""
        from eigenscape.features.bounds import describe_bounds

        if not self.is_projected(bands):
            return super().notes(samples, bands)
        return [describe_bounds(samples, bands, self.dimension)]
