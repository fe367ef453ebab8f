"""``learn.method = "poisson"``: Poisson learning (Calder and others 2020)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import WithPrior
from eigenscape.learn.propagate.method import FieldMethod, Group, solved

if TYPE_CHECKING:
    from eigenscape.spectrum.kernels.operator import Array


class Poisson(FieldMethod, WithPrior):
    """Labels spread over the graph by Poisson learning (Calder and others 2020)."""

    potentials: ClassVar[bool] = True
    pools: ClassVar[bool] = True

    method: Literal["poisson"] = "poisson"
    """Labels spread over the graph by Poisson learning (Calder and others 2020)."""

    def spread(self, group: Group) -> "tuple[Array, dict[str, Any]]":
        """Solve Poisson's equation with the labels as sources."""
        import numpy as np

        from eigenscape.learn.propagate.kernels.propagation import poisson
        from eigenscape.spectrum.kernels.gather import WIDTH

        shares = None
        if self.prior != "none":
            shares = np.ones(WIDTH)
            shares[: group.columns] = group.wanted()
        return solved(
            poisson(
                group.operator, group.labels, group.allocate, component=group.component,
                shares=shares, start=group.start, tolerance=group.tolerance,
            )
        )  # fmt: skip
