"""``learn.method = "svm"``: support vector machines on the features (Cortes, Vapnik 1995)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from eigenscape.base.footprint import Footprint
from eigenscape.learn.method import Classifier, Prepared, Samples

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled

_FIT_BYTES = 96 * 2**20
"""Of the solver's cache and of kernel values."""

Positive = Annotated[float, Field(gt=0, le=1e6)]


class SupportVectorMachine(Classifier):
    """Support vector machines with a Gaussian kernel on the features (Cortes, Vapnik 1995)."""

    needs_eigenvectors: ClassVar[bool] = False
    needs_graph: ClassVar[bool] = False

    method: Literal["svm"] = "svm"
    """Support vector machines with a Gaussian kernel on the features (Cortes, Vapnik 1995)."""
    cost: Positive | Literal["auto"] = "auto"
    """C, the cost of a training pixel on the wrong side of the margin; "auto": by cross-validation over
    squares within the training pixels."""
    rbf_gamma: Positive | Literal["auto"] = "auto"
    """gamma in the kernel exp(-gamma |x - y|^2 / features) of features scaled to variance 1; "auto": by the
    same cross-validation."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the features of the labelled samples."""
        from eigenscape.learn.classify.supportvectors import prepare_machines

        cost = None if self.cost == "auto" else self.cost
        return prepare_machines(
            context, labelled, cost, None if self.rbf_gamma == "auto" else self.rbf_gamma
        )

    @property
    def library_bytes(self) -> int:
        """Measured: scikit-learn."""
        return 72 * 2**20

    def footprint(self, samples: Samples) -> Footprint:
        """Count the solver's cache and kernel values."""
        return replace(samples.usual, each=samples.usual.each + _FIT_BYTES)
