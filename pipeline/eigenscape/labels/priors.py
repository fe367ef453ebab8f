"""Class priors: how common each class is taken to be, where the training pixels do not say.

Scores that follow the shares of the classes among the training pixels are multiplied by wanted over
implied shares (Saerens, Latinne, Decaestecker 2002). Harmonic functions follow shares and graph
together: they are multiplied by wanted shares over the mass that each class got, which is class
mass normalisation (Zhu, Ghahramani, Lafferty 2003).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import save_array
from eigenscape.errors import InputError
from eigenscape.labels.training import Labelled

Wanted = Literal["none", "training", "uniform"] | tuple[float, ...]

_LEAST = 1e-6
"""Shares at or below 0 count as this much: a factor would turn their order."""


def check_prior(prior: Wanted, classes: Sequence[object]) -> None:
    """Refuse shares of more or fewer classes than there are.

    Raises
    ------
    InputError
        With the classes.
    """
    if not isinstance(prior, str) and len(prior) != len(classes):
        raise InputError(
            f"learn.prior has {len(prior)} shares, and the labels {len(classes)} classes: "
            f"{', '.join(map(str, classes))}. Give one share for each, in this order."
        )


def wanted_shares(prior: Wanted, labelled: Labelled, number: int) -> NDArray[np.float64]:
    """Return the shares of the classes that a job asks for, of a fit where training pixels say so.

    Raises
    ------
    InputError
        There are more or fewer shares than classes.
    """
    if isinstance(prior, str):
        if prior == "uniform":
            return np.full(labelled.count, 1 / labelled.count)
        return training_shares(labelled, number)
    check_prior(prior, labelled.numbers.tolist())
    return np.array(prior)


def training_shares(labelled: Labelled, number: int) -> NDArray[np.float64]:
    """Return the share of every class among the training samples of a fit."""
    counts = np.bincount(labelled.classes[labelled.train[number]], minlength=labelled.count)
    return np.asarray(counts / counts.sum())


def prior_factors(
    prior: Wanted, labelled: Labelled, number: int, implied: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the factor of the scores of every class: its wanted share over the one that they follow.

    Parameters
    ----------
    prior
        Of ``learn.prior``, not "none".
    labelled, number
        The training set of a fit.
    implied : array, shape (classes,)
        Shares that its scores follow.
    """
    shares = wanted_shares(prior, labelled, number)
    return np.divide(shares, implied, out=np.ones_like(shares), where=implied > 0)


@dataclass(frozen=True)
class Prior:
    """Factors of the scores of every class, for one fit after the other.

    Attributes
    ----------
    wanted
        Of ``learn.prior``.
    folder
        Where factors lie between `settle` and `weigh`.
    """

    wanted: Wanted
    folder: Path

    def settle(self, labelled: Labelled, number: int, implied: NDArray[np.float64] | None) -> None:
        """Note the factors of a fit.

        Parameters
        ----------
        labelled
            The labels, whose shares may be wanted.
        number
            Of the fit.
        implied : array, shape (classes,), optional
            Shares that its scores follow; None where the method itself has taken care of the prior.
        """
        if self.wanted == "none" or implied is None:
            return
        factors = prior_factors(self.wanted, labelled, number, implied)
        save_array(self.folder / f"prior-{number}.npy", factors)

    def weigh(self, scores: NDArray[np.float32], number: int) -> NDArray[np.float32]:
        """Return the scores of a fit, shape (m, classes), times its factors."""
        path = self.folder / f"prior-{number}.npy"
        if self.wanted == "none" or not path.exists():
            return scores
        return weigh_scores(scores, np.load(path))


def weigh_scores(scores: NDArray[np.float32], factors: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return scores, shape (m, classes), times a factor for every class, as shares of their sum."""
    weighed = np.maximum(scores, np.float32(_LEAST)) * factors.astype(np.float32)
    return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))


def round_shares(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return whole numbers in given shares of a total, to which they sum."""
    ends = np.round(np.cumsum(shares) * total).astype(np.int64)
    return np.diff(ends, prepend=0)
