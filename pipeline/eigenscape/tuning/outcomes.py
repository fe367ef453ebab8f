"""The result of tuning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigenscape.job.jobfile import Job
from eigenscape.workflow.choice.tried import Interval, Tried


@dataclass(frozen=True)
class Tuned:
    """The result of `eigenscape.tune`.

    Attributes
    ----------
    path
        Directory of the tuning.
    job
        The chosen job.
    values
        Keys of the given job that the chosen job changes, with their values.
    tried
        All candidates, including those for which no time was left.
    judged
        Accuracy of the chosen job on squares that were not used for the choice, by split.
    default
        Accuracy of the given job on the same squares, by split.
    gain
        Accuracy of the chosen job minus that of the given job, over paired draws; with the interval that
        counts what draws from the same labels share (`eigenscape.workflow.choice.tried.SHARED`).
    seconds
        Time of the tuning in seconds, including earlier calls.
    given
        Methods that a run of the given job would have chosen itself; without labels, those of the clusters
        that others are compared with. Empty if the job names its methods.
    notes
        Summary of the result, in lines.
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
    notes: tuple[str, ...] = ()
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
                {"candidate": one.candidate.title, "reason": one.reason}
                for one in self.tried
                if one.error
            ],
            "judged": {split: found.to_json() for split, found in self.judged.items()},
            "default": {split: found.to_json() for split, found in self.default.items()},
            "gain": {**self.gain.to_json(), "beyond_noise": self.gain.beyond_noise},
            "seconds": round(self.seconds, 1),
            "said": list(self.notes),
            "outputs": {name: str(path) for name, path in self.outputs.items()},
        }
