"""``learn.method = "random-forest"``: decision trees that vote (Breiman 2001)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from eigenscape.base.footprint import Footprint
from eigenscape.learn.method import Classifier, Prepared, Samples

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled

MOST_TRAINED = 10_000
"""Training samples of a forest; of more, as many are drawn, of each class its share."""

_NODE_BYTES = 16
_FIT_BYTES = 64 * 2**20
"""Of a few trees while they grow, and of the rows that they learn from."""


class RandomForest(Classifier):
    """Random forests on the features: decision trees that vote (Breiman 2001)."""

    needs_eigenvectors: ClassVar[bool] = False
    needs_graph: ClassVar[bool] = False

    method: Literal["random-forest"] = "random-forest"
    """Random forests on the features: decision trees that vote (Breiman 2001)."""
    trees: Annotated[int, Field(ge=1, le=2000)] = 150
    """Number of trees."""
    thresholds: Literal["best", "random"] = "best"
    """Threshold of a node: "best", the best one for a random draw of the training pixels; "random", the best
    of a few random thresholds for all training pixels (extremely randomised trees: Geurts, Ernst, Wehenkel
    2006)."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Copy the features of the labelled samples."""
        from eigenscape.learn.classify.forests import prepare_forests

        return prepare_forests(context, labelled, self.trees, self.thresholds)

    @property
    def library_bytes(self) -> int:
        """Measured: scikit-learn."""
        return 76 * 2**20

    def footprint(self, samples: Samples) -> Footprint:
        """Count the nodes of the trees twice, as they are collected, and what grows them."""
        nodes = 2 * self.trees * min(samples.labelled, MOST_TRAINED)
        each = samples.usual.each + _FIT_BYTES + 2 * _NODE_BYTES * nodes
        kept = (2 * self.trials + 1 if self.smoothing else 1) * _NODE_BYTES * nodes
        return replace(samples.usual, each=each, scratch=samples.usual.scratch + kept)
