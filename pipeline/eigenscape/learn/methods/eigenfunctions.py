"""``learn.method = "eigenfunctions"``: least squares on the first eigenvectors (Belkin 2003, 3.5)."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.learn.method import Prepared, WithPrior

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled


class Eigenfunctions(WithPrior):
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""

    model: ClassVar[str] = "weights"

    method: Literal["eigenfunctions"] = "eigenfunctions"
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""
    eigenvectors: Annotated[int, Field(ge=1, le=20_000)] | Literal["auto"] = "auto"
    """How many beside the constant one; "auto" is a fifth of the training pixels."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the coordinates of the labelled samples."""
        from eigenscape.learn.classify import coordinates

        return coordinates.Eigenfunctions(coordinates.gather(context, labelled), self.eigenvectors)

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return the fitted functions."""
        from eigenscape.learn.classify.kernels.eigenfunctions import estimates

        return estimates(coordinates[:, : len(model)], model)
