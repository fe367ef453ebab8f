"""``learn.method = "eigenfunctions"``: least squares on the first eigenvectors (Belkin 2003, 3.5)."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.learn.method import OfEigenvectors, TrainingTiles, WithPrior

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Eigenfunctions(OfEigenvectors, WithPrior):
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""

    model: ClassVar[str] = "weights"

    method: Literal["eigenfunctions"] = "eigenfunctions"
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""
    eigenvectors: Annotated[int, Field(ge=1, le=20_000)] | Literal["auto"] = "auto"
    """Number of eigenvectors in addition to the constant one; "auto" is a fifth of the training pixels."""

    def learn(self, tiles: TrainingTiles, count: int) -> "NDArray[Any]":
        """Return the least-squares coefficients of every class."""
        import numpy as np

        from eigenscape.learn.classify.kernels import eigenfunctions

        others = tiles.modes - tiles.nulls
        used = tiles.nulls + eigenfunctions.choose_count(
            self.eigenvectors, tiles.samples, count, others, tiles.extended
        )
        G, B = np.zeros((used, used)), np.zeros((used, count))
        for vectors, classes in tiles:
            sums = eigenfunctions.normal_equations(vectors[:, :used], classes, count)
            G += sums[0]
            B += sums[1]
        return eigenfunctions.solve(G, B)

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return the fitted functions."""
        from eigenscape.learn.classify.kernels.eigenfunctions import estimates

        return estimates(coordinates[:, : len(model)], model)
