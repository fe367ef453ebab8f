"""What tuning came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigenscape.job.jobfile import Job
from eigenscape.workflow.choice.tried import Interval, Tried


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
        All jobs that were tried or were to be tried.
    judged
        Accuracy of the chosen job on squares that tuning never saw, by the split of the draws.
    default
        The same of the job as it was given.
    gain
        Chosen less given, draw by draw.
    seconds
        What tuning has taken, earlier calls too.
    given
        What a job that leaves its methods open would have chosen by itself; empty of others.
    said
        What is to be said of it, in lines.
    outputs
        Files: ``job``, ``table``, ``plot``.

    Examples
    --------
    >>> import eigenscape
    >>> scene = {"path": "scene.tif", "labels": "scene_labels.tif"}
    >>> tuned = eigenscape.tune(eigenscape.parse_job({"scene": scene}), budget=2)
    >>> sorted(tuned.outputs), len(tuned.tried) > 0
    (['job', 'plot', 'table'], True)
    """

    path: Path
    job: Job
    values: Mapping[str, Any]
    tried: tuple[Tried, ...]
    judged: Mapping[str, Interval]
    default: Mapping[str, Interval]
    gain: Interval
    seconds: float
    given: str = ""
    said: tuple[str, ...] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of jobs that were tried: some of `tried` had no time left, or could not work."""
        return sum(one.drawn > 0 for one in self.tried)

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        return {
            "run": str(self.path),
            "chosen": dict(self.values),
            "tried": self.count,
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
