"""``learn.method = "centroid-angle"``: the smallest angle to a class mean (Halevy 2011, 2.3)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import Classifier, Prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled


class CentroidAngle(Classifier):
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3)."""

    model: ClassVar[str] = "means"

    method: Literal["centroid-angle"] = "centroid-angle"
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3)."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the coordinates of the labelled samples."""
        from eigenscape.learn.classify import coordinates

        return coordinates.CentroidAngle(coordinates.gather(context, labelled))

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return scores by the angles to the means."""
        from eigenscape.learn.classify.kernels.centroid import angle_scores

        return angle_scores(coordinates[:, coordinates.shape[1] - model.shape[1] :], model)
