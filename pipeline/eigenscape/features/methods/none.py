"""``features.method = "none"``: the samples themselves."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.features.linear import LinearMap, Standardizing

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.store.rows import Rows


class NoProjection(Standardizing):
    """The samples themselves, standardised or not."""

    axis: ClassVar[str] = "coordinate"

    method: Literal["none"] = "none"
    """The samples themselves."""

    def is_projected(self, bands: int) -> bool:
        """Return False: the features are the bands themselves."""
        return False

    def count(self, bands: int) -> int:
        """Return the number of bands."""
        return bands

    def fit(self, context: "Context", source: "Rows") -> tuple[LinearMap, dict[str, Any]]:
        """Return the identity, scaled where the job asks for it."""
        return self.standardized(context, source, None), {}
