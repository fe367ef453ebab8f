"""``learn.method = "tikhonov"``: Tikhonov regularisation (Belkin 2003, 3.7.1)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from eigenscape.job.choices import Choice, Choices
from eigenscape.learn.propagate.method import FieldMethod, Group, solved

if TYPE_CHECKING:
    from eigenscape.spectrum.kernels.operator import Array


class Tikhonov(FieldMethod):
    """Labels spread over the graph by Tikhonov regularisation (Belkin 2003, 3.7.1)."""

    potentials: ClassVar[bool] = True
    pools: ClassVar[bool] = True
    read_with: ClassVar[Mapping[str, Choices]] = {
        "power": (Choice("learn.kernel", ("power",)),),
        "time": (Choice("learn.kernel", ("heat",)),),
    }

    method: Literal["tikhonov"] = "tikhonov"
    """Labels spread over the graph by Tikhonov regularisation (Belkin 2003, 3.7.1)."""
    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-5
    """Weight of the roughness against the error at the labels; larger values smooth more."""
    power: Annotated[int, Field(ge=1, le=8)] = 1
    """Exponent p of the roughness f^T L^p f, for kernel = "power"."""
    kernel: Literal["power", "heat"] = "power"
    """Roughness: "power", f^T L^p f; "heat", f^T exp(t L) f, whose kernel is the heat kernel exp(-t L)
    (Belkin 2003, 3.7.1; Kondor, Lafferty 2002)."""
    time: Annotated[float, Field(gt=0, le=1e4)] = 1.0
    """t of the heat kernel, in units of 1 / L of the unnormalised Laplacian."""

    @property
    def takes_cycles(self) -> bool:
        """Whether fields are solved with multigrid cycles."""
        return self.kernel == "power"

    @property
    def arrays(self) -> float:
        """Number of arrays of a group that `spread` holds at once."""
        return super().arrays + (self.takes_cycles and self.power > 1)

    def spread(self, group: Group) -> "tuple[Array, dict[str, Any]]":
        """Solve for the fields that are smooth and near the labels."""
        from eigenscape.learn.propagate.kernels.propagation import regularize

        power = None if self.kernel == "heat" else self.power
        return solved(
            regularize(
                group.operator, group.labels, group.allocate, gamma=self.gamma, power=power,
                time=self.time, graphs=group.graphs, tolerance=group.tolerance,
            )
        )  # fmt: skip
