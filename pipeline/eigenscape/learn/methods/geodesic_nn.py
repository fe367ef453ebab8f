"""``learn.method = "geodesic-nn"``: the nearest label along the graph (Belkin 2003, 3.8)."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from eigenscape.base.footprint import Footprint
from eigenscape.learn.method import Classifier, Prepared, Samples

if TYPE_CHECKING:
    from eigenscape.context import Context
    from eigenscape.labels.training import Labelled


class GeodesicNearest(Classifier):
    """A baseline: the nearest label along the graph (Belkin 2003, 3.8)."""

    needs_eigenvectors: ClassVar[bool] = False

    method: Literal["geodesic-nn"] = "geodesic-nn"
    """A baseline: the nearest label along the graph (Belkin 2003, 3.8)."""

    def prepare(self, context: "Context", labelled: "Labelled") -> Prepared:
        """Write the graph of distances."""
        from eigenscape.learn.classify.nearestneighbors import prepare_geodesic

        return prepare_geodesic(context, labelled)

    def footprint(self, samples: Samples) -> Footprint:
        """Count the graph of distances, and the paths and scores of a fit."""
        n, k, usual = samples.rows, samples.neighbors, samples.usual
        # Where labels are not counted, scores are not.
        scores, stored = (
            4.0 * n * count if math.isfinite(count) else 0.0
            for count in (samples.classes, samples.fields if self.smoothing else samples.classes)
        )
        return replace(
            usual, each=max(usual.each, 60 * n + scores), shared=usual.shared + 24 * k * n,
            # 40 bytes where samples are identical: hashes, who represents whom, groups.
            scratch=(16 * k + 40) * n + stored, most=samples.threads,
        )  # fmt: skip
