"""The jobs that were tried, how well each did, and what it came to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from eigenscape.job.jobfile import Job
from eigenscape.workflow.choice.candidates import Candidate


@dataclass(frozen=True)
class Interval:
    """A mean over draws and its 95 % interval, by Student's t.

    Attributes
    ----------
    mean
        In percent.
    half
        Half of the interval; None of one draw.
    draws
        How many.
    """

    mean: float
    half: float | None
    draws: int

    @classmethod
    def of(cls, shares: Sequence[float]) -> "Interval":
        """Return that of some shares between 0 and 1, or of differences of shares.

        Examples
        --------
        >>> str(Interval.of([0.5, 0.6, 0.7]))
        '60.0 +- 24.8 %'
        """
        values = 100 * np.asarray(shares, np.float64)
        half = None
        if len(values) > 1:
            error = float(values.std(ddof=1)) / math.sqrt(len(values))
            half = float(student.ppf(0.975, len(values) - 1)) * error
        return cls(float(values.mean()), half, len(values))

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.half is not None and abs(self.mean) > self.half

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.mean:.1f}{'' if self.half is None else f' +- {self.half:.1f}'} %"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"mean": self.mean, "half_interval": self.half, "draws": self.draws}


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
        Why it failed; None otherwise.
    """

    candidate: Candidate
    rung: str
    accuracy: list[float] = field(default_factory=list)
    drawn: int = 0
    seconds: float = 0.0
    error: str | None = None

    def mean(self, draws: int) -> float:
        """Return the mean of the first draws; of one that failed, less than any."""
        return -1.0 if self.error or not self.accuracy else float(np.mean(self.accuracy[:draws]))


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Attributes
    ----------
    path
        Its directory.
    job
        The chosen job.
    values
        The keys that it changes.
    tried
        All jobs that were tried.
    judged
        Accuracy of the chosen job on squares that tuning never saw, by the split of the draws.
    default
        The same of the job as it was given.
    gain
        Chosen less given, draw by draw.
    seconds
        What tuning has taken, earlier calls too.
    said
        What is to be said of it, in lines.
    outputs
        Files: ``job``, ``table``, ``plot``.
    """

    path: Path
    job: Job
    values: Mapping[str, Any]
    tried: tuple[Tried, ...]
    judged: Mapping[str, Interval]
    default: Mapping[str, Interval]
    gain: Interval
    seconds: float
    said: tuple[str, ...] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        return {
            "run": str(self.path),
            "chosen": dict(self.values),
            "tried": len(self.tried),
            "failed": [
                {"candidate": one.candidate.title, "reason": one.error}
                for one in self.tried
                if one.error
            ],
            "judged": {split: found.to_json() for split, found in self.judged.items()},
            "default": {split: found.to_json() for split, found in self.default.items()},
            "gain": {**self.gain.to_json(), "beyond_noise": self.gain.beyond_noise},
            "seconds": round(self.seconds, 1),
            "said": list(self.said),
            "outputs": {name: str(path) for name, path in self.outputs.items()},
        }
