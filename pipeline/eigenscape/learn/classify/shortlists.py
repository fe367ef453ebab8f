"""Nearest neighbours among the samples that any fit learns from: one search for many fits.

Fits that learn from many of the same samples, each from others, would compare every sample with most
of them once for each fit. A list of the nearest of all of them serves instead: the first k of it
that a fit learns from are its neighbours. Where a list holds fewer than k, that sample is compared
again.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.files.mapped import attach_memmap, create_memmap, note_rows
from eigenscape.base.vectors import Vectors
from eigenscape.learn.classify.kernels.nearest import nearest_rows, vote

_MOST_WIDTH = 48
"""Longer lists take longer to keep in order than they save."""
_LEAST_SEARCHES = 3
"""Comparisons with all candidates that the fits together have to be worth."""


@dataclass(frozen=True)
class Shortlists:
    """The nearest candidates of every labelled sample.

    Attributes
    ----------
    path
        Where the lists lie.
    rows, width
        Number of lists, and of entries of each.
    k
        How many neighbours vote.
    candidates : array of int
        Labelled samples, by their place among them, that at least one fit learns from.
    """

    path: Path
    rows: int
    width: int
    k: int
    candidates: NDArray[np.intp]

    def create(self) -> None:
        """Reserve their place on disk."""
        create_memmap(self.path, (self.rows, self.width), np.int32)

    def search(self, features: Vectors, block: Block) -> None:
        """Write the lists of a range of labelled samples, whose features are all given."""
        index, _ = nearest_rows(
            features[slice(*block)],
            lambda start, stop: features[self.candidates[start:stop]],
            len(self.candidates), self.width,
        )  # fmt: skip
        lists = attach_memmap(self.path, (self.rows, self.width), np.int32, "r+")
        lists[slice(*block)] = np.where(index >= 0, self.candidates[index], -1)
        note_rows(lists, *block)

    def vote(
        self, block: Block, train: NDArray[np.bool_], classes: NDArray[np.signedinteger], count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
        """Return the votes of a range of labelled samples, and which of them lack voters.

        Parameters
        ----------
        block
            Range of labelled samples.
        train, classes
            Which of the labelled samples a fit learns from, and the class of each.
        count
            Number of classes.

        Returns
        -------
        votes : array, shape (rows, count), float32
            See `nearest.vote`.
        short : array of int
            Rows of `votes` that came from fewer than k lists entries, and have to be searched.
        """
        lists = attach_memmap(self.path, (self.rows, self.width), np.int32)[slice(*block)]
        voters = train[lists] & (lists >= 0)
        short = np.flatnonzero(voters.sum(axis=1) < min(self.k, int(train.sum())))
        return vote(lists, np.where(train, classes, -1), self.k, count), short


def plan_shortlists(path: Path, train: NDArray[np.bool_], k: int) -> Shortlists | None:
    """Return lists that would serve all fits, None if comparing for each fit is less work.

    Parameters
    ----------
    path
        Where they would lie.
    train : array of bool, shape (fits, labelled)
        Training set of each fit.
    k
        How many neighbours vote.
    """
    candidates = np.flatnonzero(train.any(axis=0))
    members = train.sum(axis=1)
    # Twice as many as k of them are found on average, and some.
    width = math.ceil(2 * k * len(candidates) / max(1, members.min())) + 4
    if width > min(_MOST_WIDTH, len(candidates)):
        return None
    if members.sum() < _LEAST_SEARCHES * len(candidates):
        return None
    return Shortlists(path, train.shape[1], width, k, candidates)
