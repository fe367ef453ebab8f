"""How stable clusters are: agreement of those of a part of the scene with those of all of it.

Without labels nothing says how good clusters are, but clusters that change when a quarter of the scene is
left out are no property of the scene. Squares are left out, as neighbouring pixels are alike. The agreement
is the adjusted Rand index (Hubert, Arabie 1985): 1 for the same clusters, 0 for those of chance.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from eigenscape.base.process.progress import Reporter
from eigenscape.clusters import ClusterOptions, Executor
from eigenscape.job.jobfile import Job
from eigenscape.labels.splits import BLOCKS_ACROSS
from eigenscape.scenes.open import open_scene
from eigenscape.store.manifest import is_run
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.trials import Scored, Trials, run_candidate, trial_directory
from eigenscape.workflow.choice.window import keep_masked, write_mask
from eigenscape.workflow.stages import STAGES, stage_keys

LEFT_OUT = 0.25
"""Share of the squares that a part leaves out."""

_JUDGING = 1000
"""Number of the first part that a choice does not see."""

_STAGES = STAGES[:-1]


@dataclass(frozen=True)
class Stability:
    """Scores jobs by how stable their clusters are.

    Attributes
    ----------
    path
        Of the tuning: the masks of the parts lie there, and the runs in ``variants``.
    on, reporter, executor, siblings
        As in `eigenscape.run`.
    """

    path: Path
    on: ClusterOptions
    reporter: Reporter
    executor: Executor | None
    siblings: Siblings
    _drawn: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def score(self, job: Job, trials: Trials) -> Scored:
        """See `eigenscape.workflow.choice.search.Scorer`: agreement of parts with the whole."""
        whole, seconds = self._clusters(job)
        draws = []
        for number in _numbers(trials):
            part, its_seconds = self._clusters(self._part(job, number))
            seconds += its_seconds
            pixels, ours, theirs = np.intersect1d(
                whole[0], part[0], assume_unique=True, return_indices=True
            )
            agreement = adjusted_rand_score(whole[1][ours], part[1][theirs])
            draws.append({"overall_accuracy": float(agreement), "samples": len(pixels)})
        return Scored({"draws": draws}, seconds)

    def finished(self, job: Job, trials: Trials) -> bool:
        """See `eigenscape.workflow.choice.search.Scorer`."""
        jobs = [job, *(self._part(job, number) for number in _numbers(trials))]
        return all(self._is_finished(one) for one in jobs)

    def _is_finished(self, job: Job) -> bool:
        path = trial_directory(self.path / "variants", job)
        if not is_run(path):
            return False
        return Run(path, create=False).is_finished("learn", stage_keys(job)["learn"])

    def _clusters(self, job: Job) -> tuple[tuple[NDArray[np.int64], NDArray[np.uint16]], float]:
        """Return pixels and clusters of a job, and the seconds of its stages."""
        run, seconds = run_candidate(
            job, _STAGES, self.path / "variants", on=self.on, reporter=self.reporter,
            executor=self.executor, siblings=self.siblings,
        )  # fmt: skip
        pixels, clusters = (
            np.asarray(run.open(name)[...]) for name in ("samples/pixel", "labels/class")
        )
        return (pixels, clusters), seconds

    def _part(self, job: Job, number: int) -> Job:
        """Return a job on the part of its scene with a number."""
        path = self.path / f"part-{number}.npy"
        if number not in self._drawn:
            # A mask that is there may be that of another seed or of a scene that has changed.
            write_mask(path, _draw_part(job, number).astype(np.uint8))
            self._drawn.add(number)
        scene = job.scene.model_copy(update={"mask": str(path)})
        return job.model_copy(update={"scene": scene})


def _numbers(trials: Trials) -> range:
    first = _JUDGING if trials.part == "judging" else 0
    return range(first + trials.first, first + trials.last)


def _draw_part(job: Job, number: int) -> NDArray[np.bool_]:
    """Return the pixels of a part: all but some squares, of a table all but some samples."""
    scene = open_scene(job.scene, job.resolve)
    height, width = scene.grid.height, scene.grid.width
    rng = np.random.default_rng([job.learn.seed, number])
    side = 1 if scene.grid.is_table else max(1, -(-max(height, width) // BLOCKS_ACROSS))
    squares = rng.random((-(-height // side), -(-width // side))) >= LEFT_OUT
    kept = squares.repeat(side, axis=0).repeat(side, axis=1)[:height, :width]
    keep_masked(scene, kept)
    return kept
