"""``learn.method = "k-nn"``: the nearest labels in feature space (Belkin 2003, 3.8)."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from eigenscape.learn.method import Prepared, WithPrior

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled


class NearestNeighbors(WithPrior):
    """A baseline: the nearest labels in feature space (Belkin 2003, 3.8)."""

    needs_eigenvectors: ClassVar[bool] = False
    needs_graph: ClassVar[bool] = False

    method: Literal["k-nn"] = "k-nn"
    """A baseline: the nearest labels in feature space (Belkin 2003, 3.8)."""
    k: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of nearest labels that vote."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the features of the labelled samples."""
        from eigenscape.learn.classify.nearestneighbors import prepare_nearest

        return prepare_nearest(context, labelled, self.k)
