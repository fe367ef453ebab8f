"""``learn.method = "centroid-angle"``: the smallest angle to a class mean (Halevy 2011, 2.3)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import OfEigenvectors, TrainingTiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CentroidAngle(OfEigenvectors):
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3)."""

    model: ClassVar[str] = "means"

    method: Literal["centroid-angle"] = "centroid-angle"
    """Smallest angle to a class mean in eigenmap coordinates (Halevy 2011, 2.3)."""

    def learn(self, tiles: TrainingTiles, count: int) -> "NDArray[Any]":
        """Return the mean of each class, scaled to length 1."""
        import numpy as np

        from eigenscape.learn.classify.kernels.centroid import class_sums, unit_means

        # The constant eigenvector separates nothing; the null vectors of several components do.
        skip = int(tiles.nulls == 1)
        sums = np.zeros((count, tiles.modes - skip))
        for vectors, classes in tiles:
            sums += class_sums(vectors[:, skip:], classes, count)
        return unit_means(sums)

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return scores by the angles to the means."""
        from eigenscape.learn.classify.kernels.centroid import angle_scores

        return angle_scores(coordinates[:, coordinates.shape[1] - model.shape[1] :], model)
