"""The scores of a fit: of a fitted method under the job's prior, as they are or smoothed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import save_array
from eigenscape.labels.priors import Prior
from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.kernels.decisions import choose
from eigenscape.learn.decide.kernels.scores import confusion_matrix
from eigenscape.learn.method import Prepared

F4 = NDArray[np.float32]


class FitScores(Protocol):
    """Scores of the first fit for all samples, and of every fit for the labelled ones."""

    def at_labels(self, number: int) -> F4:
        """Map the scores of the labelled samples by a fit, shape (labelled, classes)."""
        ...

    def scores(self, block: Block) -> F4:
        """Return the scores of some samples by the first fit, shape (samples, classes)."""
        ...


@dataclass(frozen=True)
class Fitted:
    """A method under a prior.

    Attributes
    ----------
    method, prior, labelled
        The method, the factors of its scores, and the samples that it is fitted to.
    folder
        Where the scores of the labelled samples lie.
    """

    method: Prepared
    prior: Prior
    labelled: Labelled
    folder: Path

    def fit(self, number: int) -> list[list[list[int]]]:
        """Fit to one training set; return its `confusions`."""
        scores = self.method.fit(number)
        if self.prior.wanted != "none":
            self.prior.settle(self.labelled, number, self.method.implied(number))
        scores = self.prior.weigh(scores, number)
        save_array(self.folder / f"scores-{number}.npy", scores)
        return confusions(self.labelled, number, scores)

    def at_labels(self, number: int) -> F4:
        """See `FitScores`."""
        return np.load(self.folder / f"scores-{number}.npy", mmap_mode="r")  # type: ignore[no-any-return]

    def scores(self, block: Block) -> F4:
        """See `FitScores`."""
        return self.of_fit(0, block)

    def of_fit(self, number: int, block: Block) -> F4:
        """Return the scores of some samples by any fit."""
        return self.prior.weigh(self.method.scores(number, block), number)


def confusions(labelled: Labelled, number: int, scores: F4) -> list[list[list[int]]]:
    """Return the confusion matrices of a fit.

    They are those of its training samples, of the others, and of the samples of a test file.
    """
    called = choose(scores)
    return [
        confusion_matrix(labelled.classes[own], called[own], labelled.count).tolist()
        for own in (labelled.train[number], labelled.held(number), labelled.tested)
    ]
