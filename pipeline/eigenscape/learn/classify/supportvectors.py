"""Support vector machines on the features of the labelled samples, a search for their parameters each.

::

    features   sample blocks   a copy of the features of the labelled samples
    fit        training sets   cost and gamma by folds of squares inside the training set, then the machine
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.base.vectors import Vectors
from eigenscape.context import Context
from eigenscape.labels.splits import draw_at_most, side_of
from eigenscape.labels.training import Labelled
from eigenscape.learn.classify.kernels.supportvectors import (
    COSTS,
    Machine,
    Parameters,
    Scaling,
    SearchOptions,
    fit,
    score,
    search,
)
from eigenscape.learn.classify.nearestneighbors import NearestNeighbors, prepare_nearest
from eigenscape.scenes.ingest.places import places_of

MOST_TRAINED = 4000
"""Training samples of a machine; of more, as many are drawn, of each class its share."""

_MOST_SEARCHED = 800
"""The same for the search of its parameters."""

_FOLDS = 3
SEARCH = SearchOptions(COSTS, (1 / 16, 1 / 4, 1.0, 4.0), (100.0, 1.0), all_pairs=False)
"""At the scale of the columns these hold what is best on most scenes. All pairs took twice as long, and on
four scenes their accuracy differed by at most 2.2 points, both ways."""

_STREAM = 101
_PARTS = ("support", "coefficients", "offsets", "names", "counts", "shift", "factor", "width")


@dataclass(frozen=True)
class SupportVectors:
    """Machines whose data lie on disk.

    Attributes
    ----------
    nearest
        Holds the features, and the copy of those of the labelled samples.
    cost, gamma
        Of the machines; None to search for them.
    seed
        Of the draws of folds.
    """

    nearest: NearestNeighbors
    cost: float | None
    gamma: float | None
    seed: int

    @property
    def bytes_per_sample(self) -> float:
        """Features, scaled, and scores; kernel values are those of a fit."""
        return 12 * self.nearest.rows.shape[1] + 8 * self.nearest.labelled.count

    def implied(self, number: int) -> None:
        """See `eigenscape.learn.method.Prepared`: a job with a prior is refused."""
        del number

    def fit(self, number: int) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        labelled, features = self.nearest.labelled, self.nearest.features()
        rng = np.random.default_rng([self.seed, number, _STREAM])
        members = np.flatnonzero(labelled.train[number])
        members = members[draw_at_most(labelled.classes[members], MOST_TRAINED, rng)]
        scaling = Scaling.of(features[members])
        if len(np.unique(labelled.classes[members])) < 2:
            machine = _constant(int(labelled.classes[members[0]]))
        else:
            found = self._search(members, features, scaling, rng)
            rows = scaling(features[members])
            machine = fit(rows, labelled.classes[members], found.cost, found.gamma).single()
        values = {**vars(machine), **vars(scaling), "support": members[machine.support]}
        for part in _PARTS:
            save_array(self._file(number, part), np.asarray(values[part]))
        return self._score(features, number)

    def _search(
        self, members: NDArray[np.intp], features: Vectors, scaling: Scaling, rng: np.random.Generator
    ) -> Parameters:  # fmt: skip
        labelled = self.nearest.labelled
        some = members[draw_at_most(labelled.classes[members], _MOST_SEARCHED, rng)]
        square = np.load(self.nearest.folder / "square.npy", mmap_mode="r")[some]
        _, place = np.unique(square, return_inverse=True)
        fold = rng.permutation(int(place.max()) + 1)[place] % _FOLDS
        rows = scaling(features[some])
        return search(rows, labelled.classes[some], fold, SEARCH, self.cost, self.gamma)

    def scores(self, number: int, block: Block) -> NDArray[np.float32]:
        """See `eigenscape.learn.method.Prepared`."""
        return self._score(self.nearest.rows.read(*block), number)

    def _score(self, rows: Vectors, number: int) -> NDArray[np.float32]:
        parts = {part: np.load(self._file(number, part)) for part in _PARTS}
        scaling = Scaling(parts.pop("shift"), parts.pop("factor"))
        machine = Machine(**{**parts, "width": float(parts["width"])})
        support = scaling(self.nearest.features()[machine.support])
        return score(machine, support, scaling(rows), self.nearest.labelled.count)

    def _file(self, number: int, part: str):  # type: ignore[no-untyped-def]
        return self.nearest.folder / f"machine-{number}-{part}.npy"


def _constant(number: int) -> Machine:
    """Return the machine of training samples of one class: it calls that one."""
    none, one = np.zeros(0, np.intp), np.array([number])
    return Machine(
        none, np.zeros((0, 1), np.float32), np.zeros(0, np.float32), one, np.array([0]), 1.0
    )


def prepare_machines(
    context: Context, labelled: Labelled, cost: float | None, gamma: float | None
) -> SupportVectors:
    """Copy the features of the labelled samples, and note in which square each lies."""
    nearest = prepare_nearest(context, labelled, 1, shared=False)
    ingest = context.run.record("ingest")
    assert ingest is not None, "learn follows ingest"
    places, grid = places_of(ingest.summary)
    square = np.arange(len(labelled.sample))
    if not grid.is_table:
        row, column = np.divmod(context.open(places)[...][labelled.sample], grid.width)
        # Smaller than those of the blocked split, which leave classes out of folds.
        side = max(1, side_of(grid) // 3)
        square = row // side * grid.width + column // side
    save_array(nearest.folder / "square.npy", square)
    return SupportVectors(nearest, cost, gamma, context.job.learn.seed)
