"""What became of the scenes of a batch: the rows of its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigenscape.batch.sources import Scene
from eigenscape.errors import EigenscapeError, StoreError
from eigenscape.scenes.registry import is_registered
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.study.table import Row
from eigenscape.workflow.choice.auto import settled
from eigenscape.workflow.spine import Result, result_of
from eigenscape.workflow.stages import STAGES, stage_keys

TABLE = "batch.csv"


@dataclass(frozen=True)
class Outcome:
    """What became of one scene.

    Attributes
    ----------
    scene
        The scene.
    state
        "to do", "done" (by this call), "skipped" (it is finished and nothing changed) or "failed".
    reason
        Why it failed, or why its result is to be looked at with care.
    path
        Its run directory; None where its files cannot be read.
    keys
        Content key of each stage, and of the samples.
    seconds
        What its stages took.
    overall_accuracy
        As its run reports it, on held-out pixels first; None without labels.
    measured_on
        What that accuracy was measured on.
    class_map
        The file; None where there is none.
    trace
        Where the code was when it failed.
    """

    scene: Scene
    state: str = "to do"
    reason: str = ""
    path: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    overall_accuracy: float | None = None
    measured_on: str | None = None
    class_map: str | None = None
    trace: str = ""

    def row(self) -> Row:
        """Return its row of the table."""
        return {
            "scene": self.scene.name,
            "state": self.state,
            "reason": " ".join(self.reason.split()),
            "run": None if self.path is None else str(self.path),
            "seconds": self.seconds,
            "overall_accuracy": self.overall_accuracy,
            "measured_on": self.measured_on,
            "class_map": self.class_map,
            "files": self._files(),
        }

    def _files(self) -> str | list[str] | None:
        """Return the files of the scene, None where its job cannot be read."""
        job = self.scene.job
        if job is None:
            return None
        given = job.scene.path
        if isinstance(given, str):
            return given if is_registered(given) else job.resolve(given)
        return [job.resolve(path) for path in given]


@dataclass(frozen=True)
class BatchResult:
    """What a batch came to.

    Attributes
    ----------
    path
        Its directory.
    outcomes
        Of every scene.
    """

    path: Path
    outcomes: tuple[Outcome, ...]

    def of_state(self, state: str) -> list[Outcome]:
        """Return the outcomes of one state."""
        return [outcome for outcome in self.outcomes if outcome.state == state]

    @property
    def exit_status(self) -> int:
        """0 if all are done or skipped, 2 if one failed, 3 if none did but one did not converge."""
        if self.of_state("failed"):
            return 2
        return 3 if any(outcome.reason for outcome in self.outcomes) else 0

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        states = ("done", "skipped", "failed", "to do")
        return {
            "run": str(self.path),
            **{state: len(self.of_state(state)) for state in states},
            "scenes": [outcome.row() for outcome in self.outcomes],
            "table": str(self.path / TABLE),
        }


def plan_outcome(scene: Scene, directory: Path) -> Outcome:
    """Return a scene with its run directory: "to do", "skipped" if it is finished, or "failed"."""
    if scene.job is None:
        return Outcome(scene, "failed", scene.error or "")
    try:
        keys = stage_keys(scene.job)
        path = directory / "scenes" / f"{scene.name}-{keys['export'][:10]}"
        keys = stage_keys(settled(scene.job, path))
        run = Run(path, create=False)
    except StoreError as error:
        return Outcome(scene, "failed", str(error), path)
    except (EigenscapeError, OSError) as error:
        return Outcome(scene, "failed", reason_of(error))
    outcome = Outcome(scene, path=path, keys=keys)
    if not all(run.is_finished(stage.name, keys[stage.name]) for stage in STAGES):
        return outcome
    stages = tuple({"seconds": record.seconds} for record in _records(run))
    return Outcome(**{**vars(outcome), "state": "skipped", **measured(result_of(run, stages))})


def measured(result: Result) -> dict[str, Any]:
    """Return what the table says of a finished run: fields of an `Outcome`."""
    reason = ""
    if not result.converged:
        reason = (
            f"not converged: the largest residual is {result.spectrum['max_residual']:.1e}; raise "
            "spectrum.tolerance, or lower spectrum.dimension"
        )
    return {
        "reason": reason,
        "seconds": round(sum(stage["seconds"] for stage in result.stages), 3),
        "overall_accuracy": result.scores.get("overall_accuracy"),
        "measured_on": result.scores.get("protocol"),
        "class_map": result.outputs.get("class_map") or result.outputs.get("classes"),
    }


def reason_of(error: BaseException) -> str:
    """Return why a scene failed: our own messages as they are, others with their kind."""
    return str(error) if isinstance(error, EigenscapeError) else f"{type(error).__name__}: {error}"


def siblings_of(path: Path, name: str) -> Siblings:
    """Return the runs whose stages a scene may take over: its own of earlier jobs or labels.

    Of a thousand scenes nobody reads a thousand manifests a thousand times.
    """
    return Siblings(lambda: (p for p in path.parent.iterdir() if p.name.startswith(f"{name}-")))


def count_states(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many scenes are in which state, in words.

    Examples
    --------
    >>> count_states([{"state": "done"}, {"state": "failed"}, {"state": "done"}])
    '2 done, 1 failed'
    """
    states = [str(row["state"]) for row in rows]
    counted = {state: states.count(state) for state in ("done", "skipped", "failed", "to do")}
    return ", ".join(f"{count} {state}" for state, count in counted.items() if count) or "no scene"


def _records(run: Run) -> list[Any]:
    return [record for stage in STAGES if (record := run.record(stage.name)) is not None]
