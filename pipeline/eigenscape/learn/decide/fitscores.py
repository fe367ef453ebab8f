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
from eigenscape.learn.decide.kernels.decisions import choose, evened
from eigenscape.learn.decide.kernels.scores import confusion_matrix
from eigenscape.learn.decide.sampling import Rows, Sampling
from eigenscape.learn.decide.unreached import Unreached
from eigenscape.learn.method import Prepared

F4 = NDArray[np.float32]


class FitScores(Protocol):
    """Scores of the first fit for all samples, and of every fit for labelled ones."""

    def called(self, number: int) -> NDArray[np.intp]:
        """Return the classes that a fit calls at the labelled samples, -1 where none, shape (labelled,)."""
        ...

    def at_labels(self, number: int, rows: Rows) -> F4:
        """Return the scores of some labelled samples by a fit, shape (rows, classes).

        They are among those of `eigenscape.learn.decide.sampling.Sampling.of_fit`.
        """
        ...

    def scores(self, block: Block) -> F4:
        """Return the scores of some samples by the first fit, shape (samples, classes)."""
        ...


@dataclass(frozen=True)
class LabelScores:
    """What is kept of the scores of the labelled samples: calls of all, scores of those that are read.

    Attributes
    ----------
    folder, stem
        Where they lie, and how their names begin.
    labelled
        The samples.
    sampling
        Which scores are read; None for none.
    """

    folder: Path
    stem: str
    labelled: Labelled
    sampling: Sampling | None

    def keep(self, number: int, scores: F4) -> list[list[list[int]]]:
        """Keep the scores of a fit, shape (labelled, classes); return its `confusions`."""
        called = choose(scores)
        kind = np.min_scalar_type(-self.labelled.count)
        save_array(self._file("called", number), called.astype(kind))
        if self.sampling is not None:
            rows = self.sampling.of_fit(number)
            save_array(self._file("rows", number), rows)
            save_array(self._file("scores", number), scores[rows])
        return confusions(self.labelled, number, called)

    def called(self, number: int) -> NDArray[np.intp]:
        """See `FitScores`."""
        called: NDArray[np.signedinteger] = np.load(self._file("called", number))
        return called.astype(np.intp)

    def at_labels(self, number: int, rows: Rows) -> F4:
        """See `FitScores`."""
        kept = np.load(self._file("rows", number), mmap_mode="r")
        scores: F4 = np.load(self._file("scores", number), mmap_mode="r")
        return scores[np.searchsorted(kept, rows)]

    def _file(self, part: str, number: int) -> Path:
        return self.folder / f"{self.stem}-{part}-{number}.npy"


@dataclass(frozen=True)
class Fitted:
    """A method under a prior.

    Attributes
    ----------
    method, prior, labelled
        The method, the factors of its scores, and the samples that it is fitted to.
    folder
        Where what is kept lies.
    sampling
        Labelled samples whose scores are read; None if calls are enough.
    unreached
        Samples whose classes are guesses; None for none.
    """

    method: Prepared
    prior: Prior
    labelled: Labelled
    folder: Path
    sampling: Sampling | None = None
    unreached: Unreached | None = None

    @property
    def kept(self) -> LabelScores:
        """Scores at the labelled samples."""
        return LabelScores(self.folder, "fit", self.labelled, self.sampling)

    def fit(self, number: int) -> list[list[list[int]]]:
        """Fit to one training set; return its `confusions`."""
        scores = self.method.fit(number)
        if self.prior.wanted != "none":
            self.prior.settle(self.labelled, number, self.method.implied(number))
        return self.kept.keep(number, self._weigh(scores, number, self.labelled.sample))

    def called(self, number: int) -> NDArray[np.intp]:
        """See `FitScores`."""
        return self.kept.called(number)

    def at_labels(self, number: int, rows: Rows) -> F4:
        """See `FitScores`."""
        return self.kept.at_labels(number, rows)

    def scores(self, block: Block) -> F4:
        """See `FitScores`."""
        return self.of_fit(0, block)

    def of_fit(self, number: int, block: Block) -> F4:
        """Return the scores of some samples by any fit."""
        return self._weigh(self.method.scores(number, block), number, slice(*block))

    def _weigh(self, scores: F4, number: int, samples: slice | NDArray[np.int64]) -> F4:
        """Return the scores of samples under the prior; even ones where no label tells classes apart."""
        scores = self.prior.weigh(scores, number)
        if self.unreached is not None:
            away = self.unreached.at(number, samples)
            scores[away] = evened(scores[away])
        return scores


def confusions(labelled: Labelled, number: int, called: NDArray[np.intp]) -> list[list[list[int]]]:
    """Return the confusion matrices of a fit.

    They are those of its training samples, of the others, and of the samples of a test file.
    """
    return [
        confusion_matrix(labelled.classes[own], called[own], labelled.count).tolist()
        for own in (labelled.train[number], labelled.held(number), labelled.tested)
    ]
