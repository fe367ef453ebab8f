"""Random forests on the features of the labelled samples.

::

    features   sample blocks   a copy of the features of the labelled samples
    fit        training sets   a forest each, and its votes on the labelled samples
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.context import Context
from eigenscape.labels.splits import draw_at_most
from eigenscape.labels.training import Labelled
from eigenscape.learn.classify.kernels.forest import Forest, grow, shares_of_votes
from eigenscape.learn.classify.nearestneighbors import NearestNeighbors, prepare_nearest
from eigenscape.learn.methods.random_forest import MOST_TRAINED

_STREAM = 102


@dataclass(frozen=True)
class Forests:
    """Forests whose nodes lie on disk.

    Attributes
    ----------
    nearest
        Holds the features, and the copy of those of the labelled samples.
    trees
        Of each forest.
    thresholds
        How they are found: see `eigenscape.learn.classify.kernels.forest`.
    seed
        Of the draws.
    whole
        Whether all fits keep their forest, not the first alone.
    """

    nearest: NearestNeighbors
    trees: int
    thresholds: str
    seed: int
    whole: bool

    @property
    def bytes_per_sample(self) -> float:
        """Features and votes."""
        return 8 * self.nearest.rows.shape[1] + 4 * self.nearest.labelled.count

    def implied(self, number: int) -> None:
        """See `eigenscape.learn.method.Prepared`: a job with a prior is refused."""
        del number

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        labelled, features = self.nearest.labelled, self.nearest.features()
        rng = np.random.default_rng([self.seed, number, _STREAM])
        members = np.flatnonzero(labelled.train[number])
        members = members[draw_at_most(labelled.classes[members], MOST_TRAINED, rng)]
        classes = labelled.classes[members]
        forest = grow(features[members], classes, self.trees, self.thresholds, rng)
        if number == 0 or self.whole:
            for part in fields(forest):
                save_array(self._file(number, part.name), getattr(forest, part.name))
        return shares_of_votes(forest, features, labelled.count)

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        parts = (np.load(self._file(number, part.name), mmap_mode="r") for part in fields(Forest))
        forest = Forest(*map(np.asarray, parts))
        return shares_of_votes(forest, self.nearest.rows.read(*block), self.nearest.labelled.count)

    def _file(self, number: int, part: str) -> Path:
        return self.nearest.folder / f"forest-{number}-{part}.npy"


def prepare_forests(context: Context, labelled: Labelled, trees: int, thresholds: str) -> Forests:
    """Copy the features of the labelled samples."""
    nearest = prepare_nearest(context, labelled, 1, shared=False)
    options = context.job.learn
    return Forests(nearest, trees, thresholds, options.seed, options.smoothing > 0)
