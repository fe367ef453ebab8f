"""The labelled samples that a calibration reads: of many, a few of each fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.labels.training import Labelled

MOST_VALUES = 2**18
"""Scores that a calibration is fitted to and measured on, at most: seconds of work."""

MOST_CALLED = 2**20
"""Scores of a fit from which the ranks of calls are learned, at most: 4 MiB."""

Rows = NDArray[np.intp]
"""Labelled samples by their places among all of them, ascending."""


@dataclass(frozen=True)
class Sampling:
    """A draw of labelled samples for the calibration of fits.

    Attributes
    ----------
    labelled
        The labelled samples, and the training set of each fit.
    protocols
        Fits of each protocol.
    seed
        Of the draw that parts the labelled samples. Fits are parted by turns, so that neither a
        sample nor a fit is in both halves; but a single fit is.
    """

    labelled: Labelled
    protocols: Mapping[str, Sequence[int]]
    seed: int

    def parted(self) -> NDArray[np.bool_]:
        """Return which samples are in the second half, shape (labelled,)."""
        rng = np.random.default_rng([self.seed, 4])
        return rng.random(len(self.labelled.sample)) < 0.5

    def fits(self, protocol: str, *, last: bool) -> Sequence[int]:
        """Return the fits of a half of a protocol; a single one is in both."""
        numbers = self.protocols[protocol]
        return numbers[last::2] if len(numbers) > 1 else numbers

    def held(self, number: int, second: NDArray[np.bool_], *, last: bool) -> Rows:
        """Return samples of a half that a fit did not learn from.

        Parameters
        ----------
        number
            The fit.
        second
            See `parted`.
        last
            Whether of the second half.
        """
        trials = max(map(len, self.protocols.values()), default=1)
        most = max(1, MOST_VALUES // (self.labelled.count * trials))
        held = np.flatnonzero(self.labelled.held(number) & (second == last))
        return held[:: max(1, -(-len(held) // most))]

    def called(self, number: int) -> Rows:
        """Return samples that a fit did not learn from; of all if it learned from all."""
        held = np.flatnonzero(self.labelled.held(number))
        return self._few(held if len(held) else np.arange(len(self.labelled.sample)))

    def tested(self) -> Rows:
        """Return samples of a test file."""
        return self._few(np.flatnonzero(self.labelled.tested))

    def of_fit(self, number: int) -> Rows:
        """Return all samples whose scores by a fit are read."""
        second = self.parted()
        rows = [self.called(number), *([self.tested()] if number == 0 else [])]
        for protocol in self.protocols:
            for last in (False, True):
                if number in self.fits(protocol, last=last):
                    rows.append(self.held(number, second, last=last))
        return np.unique(np.concatenate(rows))

    def _few(self, rows: Rows) -> Rows:
        return rows[:: max(1, -(-len(rows) * self.labelled.count // MOST_CALLED))]
