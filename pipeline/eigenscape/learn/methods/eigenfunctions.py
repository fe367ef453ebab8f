"""``learn.method = "eigenfunctions"``: least squares on the first eigenvectors (Belkin 2003, 3.5)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.job.choices import Choice, Choices
from eigenscape.learn.method import OfEigenvectors, TrainingTiles, WithPrior

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Eigenfunctions(OfEigenvectors, WithPrior):
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""

    model: ClassVar[str] = "weights"
    read_with: ClassVar[Mapping[str, Choices]] = {
        "power": (Choice("learn.gamma", (0.0,), other=True),)
    }

    method: Literal["eigenfunctions"] = "eigenfunctions"
    """Least squares on the first eigenvectors, one class against all (Belkin 2003, 3.5)."""
    eigenvectors: Annotated[int, Field(ge=1, le=20_000)] | Literal["auto"] = "auto"
    """Number of eigenvectors in addition to the constant one; "auto" is a fifth of the training pixels, with
    gamma all that extend to new samples."""
    gamma: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Weight of the roughness of the functions, the sum of (eigenvalue / that of eigenvector 30)^power times
    coefficient^2, against the mean squared error at the labels: Tikhonov regularisation (Belkin 2003, 3.7.1)
    by the eigenvectors. 0.1 suits most scenes; 0 is plain least squares."""
    power: Annotated[int, Field(ge=1, le=8)] = 2
    """Exponent of the roughness, with gamma."""

    def extends(self) -> bool:
        """Whether new samples have scores of their own: not with gamma.

        Measured on halves of three scenes: 66.0, 32.5 and 94.6 % by extended eigenvectors, and 96.2, 69.4 and
        99.6 % by a machine on the labels (tests/bench/quality/transfer.py, and the synthetic scene).
        """
        return super().extends() and self.gamma == 0

    def learn(self, tiles: TrainingTiles, count: int) -> "NDArray[Any]":
        """Return the least-squares coefficients of every class."""
        import numpy as np

        from eigenscape.learn.classify.kernels import eigenfunctions

        others = tiles.modes - tiles.nulls
        used = tiles.nulls + eigenfunctions.choose_count(
            self.eigenvectors, tiles.samples, count, others, tiles.extended,
            smooth=self.gamma > 0,
        )  # fmt: skip
        G, B = np.zeros((used, used)), np.zeros((used, count))
        for vectors, classes in tiles:
            sums = eigenfunctions.normal_equations(vectors[:, :used], classes, count)
            G += sums[0]
            B += sums[1]
        G[np.diag_indices(used)] += eigenfunctions.roughness(
            G, tiles.values[:used], tiles.nulls, self.gamma, self.power
        )
        return eigenfunctions.solve(G, B)

    def estimate(
        self, coordinates: "NDArray[np.float32]", model: "NDArray[Any]"
    ) -> "NDArray[np.float32]":
        """Return the fitted functions."""
        from eigenscape.learn.classify.kernels.eigenfunctions import estimates

        return estimates(coordinates[:, : len(model)], model)
