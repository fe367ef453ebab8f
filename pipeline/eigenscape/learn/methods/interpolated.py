"""``learn.method = "interpolated"``: harmonic functions (Belkin 2003, 3.7.1)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import WithPrior
from eigenscape.learn.propagate.method import FieldMethod, Group, solved

if TYPE_CHECKING:
    from eigenscape.spectrum.kernels.operator import Array


class Interpolated(FieldMethod, WithPrior):
    """Labels spread over the graph by interpolated regularisation, harmonic (Belkin 2003, 3.7.1)."""

    masses: ClassVar[bool] = True
    pools: ClassVar[bool] = True

    method: Literal["interpolated"] = "interpolated"
    """Labels spread over the graph by interpolated regularisation, harmonic (Belkin 2003, 3.7.1)."""

    @property
    def takes_cycles(self) -> bool:
        """Whether fields are solved with multigrid cycles."""
        return True

    def spread(self, group: Group) -> "tuple[Array, dict[str, Any]]":
        """Solve Laplace's equation with the labels as boundary values."""
        from eigenscape.learn.propagate.kernels.propagation import interpolate

        return solved(
            interpolate(
                group.operator, group.labels, group.allocate, graphs=group.graphs,
                tolerance=group.tolerance,
            )
        )  # fmt: skip
