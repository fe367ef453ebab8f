"""The jobs that were tried, and how well each did."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from eigenscape.learn.method import Classifier, learn_method
from eigenscape.workflow.choice.candidates import Candidate

SHARED = 1.0
"""What draws by half share: as many samples are tested as are learned from. Measured on 1,836 pairs of jobs
and 12 test files (tests/bench/quality/leads.py): the interval of a lead over ten draws holds the difference
on the file in 97 %, without what they share in 52 %."""


@dataclass(frozen=True)
class Interval:
    """A mean over draws and its 95 % interval, by Student's t.

    Attributes
    ----------
    mean
        In percent; NaN without draws.
    half
        Half of the interval; None of one draw, 0 where all draws are equal.
    draws
        How many.
    """

    mean: float
    half: float | None
    draws: int

    @classmethod
    def of(cls, shares: Sequence[float], *, shared: float = 0.0) -> "Interval":
        """Return that of some shares between 0 and 1, or of differences of shares.

        Parameters
        ----------
        shares
            One of each draw.
        shared
            What draws from the same labels have in common, in variances of a draw: tested samples for each
            one that a draw learns from (Nadeau, Bengio 2003). 0 for an interval over draws alone.

        Examples
        --------
        >>> str(Interval.of([0.5, 0.6, 0.7]))
        '60.0 +- 24.8 %'
        >>> str(Interval.of([0.5, 0.6, 0.7], shared=1.0))
        '60.0 +- 49.7 %'
        >>> str(Interval.of([1.0, 1.0]))
        '100.0 % in every draw'
        >>> str(Interval.of([]))
        'not measured'
        """
        if not len(shares):
            return cls(math.nan, None, 0)
        values = 100 * np.asarray(shares, np.float64)
        half = None
        if len(values) > 1:
            error = float(values.std(ddof=1)) * math.sqrt(1 / len(values) + shared)
            half = float(stdtrit(len(values) - 1, 0.975)) * error
        return cls(float(values.mean()), half, len(values))

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.half is not None and abs(self.mean) > self.half

    @property
    def shown_half(self) -> float | None:
        """Half of the interval for texts and JSON; None where draws are equal: others may not be."""
        return self.half or None

    def __str__(self) -> str:
        """Return it in words."""
        if not self.draws:
            return "not measured"
        if self.half == 0:
            return f"{self.mean:.1f} % in every draw"
        return f"{self.mean:.1f}{'' if self.half is None else f' +- {self.half:.1f}'} %"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; the mean is null without draws."""
        mean = self.mean if self.draws else None
        return {"mean": mean, "half_interval": self.shown_half, "draws": self.draws}


@dataclass
class Tried:
    """A candidate and its scores so far.

    Attributes
    ----------
    candidate
        What was tried.
    rung
        Where it first was.
    accuracy
        Overall accuracy on each draw that the choice may see, in their order.
    drawn
        Draws that were scored; those that test nothing have no accuracy.
    seconds
        What its stages took, whichever call computed them.
    error
        The exception with which it failed; None otherwise.
    slow
        See `eigenscape.workflow.choice.candidates.Option`.
    average
        The mean of the accuracies of the classes on each draw.
    far_behind
        Whether another job is so far ahead that this one is not scored on more draws.
    """

    candidate: Candidate
    rung: str
    accuracy: list[float] = field(default_factory=list)
    drawn: int = 0
    seconds: float = 0.0
    error: Exception | None = None
    slow: bool = False
    average: list[float] = field(default_factory=list)
    far_behind: bool = False

    @property
    def has_graph(self) -> bool:
        """Return whether its classifier reads a graph, or what follows from one."""
        method = learn_method(self.candidate.job)
        return not isinstance(method, Classifier) or method.needs_graph

    @property
    def ranks(self) -> bool:
        """Return whether it has scores that say how good it is beside others."""
        return self.error is None and not self.far_behind

    @property
    def reason(self) -> str | None:
        """Return why it failed, in words; None if it did not."""
        return None if self.error is None else f"{type(self.error).__name__}: {self.error}"

    def mean(self, draws: int) -> float:
        """Return the mean of the first draws; of one that failed, less than any."""
        return -1.0 if self.error or not self.accuracy else float(np.mean(self.accuracy[:draws]))

    @property
    def mean_average(self) -> float:
        """Return the mean of `average` over all draws; 0 without any."""
        return float(np.mean(self.average)) if self.average else 0.0


def lead(one: Tried, other: Tried, *, elsewhere: bool = False) -> Interval:
    """Return by how much one job is ahead of another on the draws that both were scored on.

    Parameters
    ----------
    one, other
        The jobs.
    elsewhere
        Whether the interval is to hold on ground that no draw has: see `SHARED`.
    """
    return Interval.of(
        [mine - its for mine, its in zip(one.accuracy, other.accuracy, strict=False)],
        shared=SHARED if elsewhere else 0.0,
    )
