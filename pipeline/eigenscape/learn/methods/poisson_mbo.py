"""``learn.method = "poisson-mbo"``: Poisson learning with classes of given sizes (Calder and others 2020)."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from eigenscape.learn.method import WithPrior
from eigenscape.learn.propagate.method import FieldMethod, Group

if TYPE_CHECKING:
    from eigenscape.spectrum.kernels.operator import Array


class PoissonMBO(FieldMethod, WithPrior):
    """Poisson learning with classes of given sizes (Calder and others 2020)."""

    # Thresholds compare the classes of one fit.
    whole_fits: ClassVar[bool] = True

    method: Literal["poisson-mbo"] = "poisson-mbo"
    """Poisson learning with classes of given sizes (Calder and others 2020)."""

    @property
    def most_classes(self) -> tuple[int, str]:  # type: ignore[override]
        """As many as a group of columns holds."""
        from eigenscape.spectrum.kernels.gather import WIDTH

        return WIDTH, "poisson"

    def spread(self, group: Group) -> "tuple[Array, dict[str, Any]]":
        """Diffuse and threshold in turns."""
        import numpy as np

        from eigenscape.labels.priors import round_shares
        from eigenscape.learn.propagate.kernels.volumes import poisson_mbo

        operator = group.operator
        wanted = group.wanted().reshape(-1, group.classes)
        sizes = np.array([round_shares(own, operator.rows) for own in wanted])
        found = poisson_mbo(
            operator, group.labels, sizes, group.allocate, component=group.component,
            start=group.start, tolerance=group.tolerance,
        )  # fmt: skip
        X = group.allocate(operator.rows)
        for fit, part in enumerate(found):
            X[np.arange(operator.rows), fit * group.classes + part.classes] = 1
        return X, {"iterations": 0, "residual": max(part.residual for part in found)}
