"""How well jobs classify: their accuracy on draws of training pixels, each finished one kept on disk."""

from dataclasses import dataclass
from pathlib import Path

from eigenscape.base.process.progress import Reporter
from eigenscape.clusters import ClusterOptions, Executor
from eigenscape.job.jobfile import Job
from eigenscape.store.manifest import is_run
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.choice.trials import (
    Scored,
    Trials,
    score_job,
    trial_directory,
    trial_key,
)


@dataclass(frozen=True)
class Accuracy:
    """Scores jobs by their accuracy.

    Attributes
    ----------
    path
        Of the tuning: the runs lie in ``variants``.
    on, reporter, executor, siblings
        As in `eigenscape.run`.
    """

    path: Path
    on: ClusterOptions
    reporter: Reporter
    executor: Executor | None
    siblings: Siblings

    def score(self, job: Job, trials: Trials) -> Scored:
        """See `eigenscape.workflow.choice.search.Scorer`."""
        return score_job(
            job, self.path / "variants", trials, on=self.on, reporter=self.reporter,
            executor=self.executor, siblings=self.siblings,
        )  # fmt: skip

    def finished(self, job: Job, trials: Trials) -> bool:
        """See `eigenscape.workflow.choice.search.Scorer`."""
        path = trial_directory(self.path / "variants", job)
        if not is_run(path):
            return False
        return Run(path, create=False).is_finished(trials.name, trial_key(job, trials))
