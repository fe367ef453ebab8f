"""A candidate's accuracy on some draws: the stages that its classifier reads, and the scoring stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigenscape.base.process.progress import Reporter
from eigenscape.clusters import ClusterOptions, Executor
from eigenscape.job.jobfile import Job
from eigenscape.labels.nested import Part
from eigenscape.learn.method import last_read
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.workflow.plan import project_plan
from eigenscape.workflow.runner import Runner, fit_limits
from eigenscape.workflow.stages import STAGES, OnDemand, Stage, learn_options, stage_keys


@dataclass(frozen=True)
class Trials:
    """Draws to score.

    Attributes
    ----------
    part, split
        See `eigenscape.labels.nested.Nested`.
    first, last
        Draws first ... last-1.
    """

    part: Part
    split: str
    first: int
    last: int

    @property
    def name(self) -> str:
        """Name of the stage."""
        return f"{self.part}-{self.split}-{self.first}-{self.last}"

    def stage(self, follows: tuple[str, ...]) -> Stage:
        """Return the stage that scores them."""
        draws = (self.first, self.last)

        def depends(job: Job) -> Any:
            return [learn_options(job), self.part, self.split, draws]

        given = {"part": self.part, "split": self.split, "trials": draws}
        work = OnDemand("eigenscape.learn.scoring", "scoring_stage", given)
        return Stage(self.name, work, depends, follows)


@dataclass(frozen=True)
class Scored:
    """What became of some draws.

    Attributes
    ----------
    summary
        What the scoring stage returned.
    seconds
        What all stages of the candidate took, whenever they were computed.
    """

    summary: Mapping[str, Any]
    seconds: float


def trial_stages(job: Job, trials: Trials) -> tuple[Stage, ...]:
    """Return the stages that the classifier of a job reads, and the scoring of some draws."""
    last = last_read(job.learn, potential=job.graph.potential is not None)
    stages = STAGES[: [stage.name for stage in STAGES].index(last) + 1]
    return (*stages, trials.stage(("ingest", stages[-1].name)))


def trial_key(job: Job, trials: Trials) -> str:
    """Return the content key of some draws: that of the stages that the score depends on."""
    return stage_keys(job, trial_stages(job, trials))[trials.name]


def trial_directory(parent: Path, job: Job) -> Path:
    """Return where a candidate is tried: one directory for each content."""
    keys = stage_keys(job)
    return parent / f"{job.learn.method}-{keys['learn'][:12]}"


def score_job(
    job: Job,
    parent: Path,
    trials: Trials,
    *,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None,
    siblings: Siblings,
) -> Scored:
    """Score a job on some draws, or take what an earlier call has finished.

    Parameters
    ----------
    job
        A candidate.
    parent
        Where the directories of candidates are.
    trials
        What to score.
    on, reporter, executor, siblings
        As in `eigenscape.run`.

    Raises
    ------
    EigenscapeError
        The candidate cannot work on this scene.
    """
    run, seconds = run_candidate(
        job, trial_stages(job, trials), parent, on=on, reporter=reporter, executor=executor,
        siblings=siblings,
    )  # fmt: skip
    record = run.record(trials.name)
    assert record is not None, "the last stage is finished"
    return Scored(record.summary, seconds)


def run_candidate(
    job: Job,
    stages: tuple[Stage, ...],
    parent: Path,
    *,
    on: ClusterOptions,
    reporter: Reporter,
    executor: Executor | None,
    siblings: Siblings,
) -> tuple[Run, float]:
    """Run stages of a candidate, or take what an earlier call has finished.

    Parameters
    ----------
    job, parent, on, reporter, executor, siblings
        See `score_job`.
    stages
        The stages.

    Returns
    -------
    run
        Its directory.
    seconds
        See `Scored`.

    Raises
    ------
    EigenscapeError
        The candidate cannot work on this scene.
    """
    fitted = fit_limits(job, on)
    planned = project_plan(fitted, on)
    planned.check(fitted.limits.memory_bytes)
    path = trial_directory(parent, job)
    keys = stage_keys(job, stages)
    runner = Runner(job, stages, keys, threads=planned.threads, fewer=planned.fewer)
    times = runner.run(path, on, reporter, executor=executor, siblings=siblings)
    return Run(path, create=False), sum(stage["seconds"] for stage in times)
