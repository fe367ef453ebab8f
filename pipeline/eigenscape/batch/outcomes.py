"""The outcomes of the scenes of a batch: the rows of its table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigenscape.base.files.tables import Row
from eigenscape.batch.sources import Scene
from eigenscape.errors import EigenscapeError, StoreError, reason_of
from eigenscape.scenes.registry import located
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.kept import settled
from eigenscape.workflow.directories import BATCH_TABLE
from eigenscape.workflow.finished.result import Result
from eigenscape.workflow.many.outcomes import (
    STATES,
    Outcome,
    Outcomes,
    fields_of,
    finished_result,
    is_finished,
)
from eigenscape.workflow.stages import stage_keys


@dataclass(frozen=True)
class SceneOutcome(Outcome):
    """The outcome of one scene.

    Attributes
    ----------
    scene
        The scene.
    overall_accuracy
        As its run reports it, on held-out pixels first; None without labels.
    measured_on
        Pixels that this accuracy was measured on.
    class_map
        The file; None where there is none.
    """

    scene: Scene
    overall_accuracy: float | None = None
    measured_on: str | None = None
    class_map: str | None = None

    @property
    def title(self) -> str:
        """Name of the scene."""
        return self.scene.name

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
            "files": files_of(self.scene),
        }


@dataclass(frozen=True)
class BatchResult(Outcomes):
    """The outcomes of the scenes of a batch."""

    outcomes: tuple[SceneOutcome, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        return {
            "run": str(self.path),
            **{state: self.count(state) for state in STATES},
            "scenes": [outcome.row() for outcome in self.outcomes],
            "table": str(self.path / BATCH_TABLE),
        }


def files_of(scene: Scene) -> str | list[str] | None:
    """Return the files of a scene, None where its job cannot be read."""
    if scene.job is None:
        return None
    given = scene.job.scene.path
    if isinstance(given, str):
        return located(given, scene.job.resolve)
    return [scene.job.resolve(path) for path in given]


def plan_outcome(scene: Scene, directory: Path) -> SceneOutcome:
    """Return a scene with its run directory: "to do", "skipped" if it is finished, or "failed"."""
    if scene.job is None:
        return SceneOutcome(scene, state="failed", reason=scene.error or "")
    try:
        keys = stage_keys(scene.job)
        path = directory / "scenes" / f"{scene.name}-{keys['export'][:10]}"
        _, keys = settled(scene.job, keys, path)
        run = Run(path, create=False)
    except StoreError as error:
        return SceneOutcome(scene, state="failed", reason=str(error), path=path)
    except (EigenscapeError, OSError) as error:
        return SceneOutcome(scene, state="failed", reason=reason_of(error))
    if not is_finished(run, keys):
        return SceneOutcome(scene, path=path, keys=keys)
    finished = scene_fields(finished_result(run))
    return SceneOutcome(scene, path=path, keys=keys, state="skipped", **finished)


def scene_fields(result: Result) -> dict[str, Any]:
    """Return the fields of a `SceneOutcome` that follow from a result."""
    return {
        **fields_of(result),
        "overall_accuracy": result.scores.get("overall_accuracy"),
        "measured_on": result.scores.get("protocol"),
        "class_map": result.outputs.get("class_map") or result.outputs.get("classes"),
    }


def siblings_of(path: Path, name: str) -> Siblings:
    """Return the runs whose stages a scene may take over: its own of earlier jobs or labels.

    So 1,000 scenes do not each read 1,000 manifests.
    """
    return Siblings(lambda: (p for p in path.parent.iterdir() if p.name.startswith(f"{name}-")))
