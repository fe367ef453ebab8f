"""The outcome of each of many jobs, and of all of them: the same for batches and for studies."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigenscape.errors import ConvergenceError, InputError
from eigenscape.store.run import Run
from eigenscape.workflow.finished.result import Result
from eigenscape.workflow.spine import result_of
from eigenscape.workflow.stages import STAGES

STATES = ("done", "skipped", "failed", "to do")
"""States of a job: computed by this call; finished before; failed; not tried, or stopped."""


@dataclass(frozen=True, kw_only=True)
class Outcome(ABC):
    """The outcome of one job.

    Attributes
    ----------
    path
        Its run directory; None where its files cannot be read.
    keys
        Content key of each stage, and of the samples.
    state
        One of `STATES`.
    reason
        Why it failed, or why its result is to be looked at with care.
    converged
        Whether its eigensolver reached the tolerance; true of a job without a result.
    seconds
        Time that its stages took; None without a result.
    trace
        Traceback of a failure, where it was kept.
    """

    path: Path | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    state: str = "to do"
    reason: str = ""
    converged: bool = True
    seconds: float | None = None
    trace: str = ""

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the job, for people."""


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of many jobs.

    Attributes
    ----------
    path
        Directory of the batch or the study.
    outcomes
        One for each job.
    """

    path: Path
    outcomes: tuple[Outcome, ...]

    def count(self, state: str) -> int:
        """Return how many jobs are in a state.

        Parameters
        ----------
        state
            One of "done", "skipped", "failed" and "to do".
        """
        return sum(outcome.state == state for outcome in self.outcomes)

    @property
    def exit_status(self) -> int:
        """0 if all are done or skipped, 2 if one failed, 3 if none did but one did not converge."""
        if self.count("failed"):
            return InputError.exit_status
        converged = all(outcome.converged for outcome in self.outcomes)
        return 0 if converged else ConvergenceError.exit_status

    def remarks(self) -> list[str]:
        """Return a sentence for each job that failed, or whose result is to be looked at with care."""
        return [
            f"{outcome.title} failed: {outcome.reason}"
            if outcome.state == "failed"
            else f"{outcome.title}: {outcome.reason}"
            for outcome in self.outcomes
            if outcome.reason
        ]


def count_states(states: Iterable[str]) -> str:
    """Return how many jobs are in which state, in words; empty without a job.

    Examples
    --------
    >>> count_states(["done", "failed", "done"])
    '2 done, 1 failed'
    """
    given = list(states)
    counted = {state: given.count(state) for state in STATES}
    return ", ".join(f"{count} {state}" for state, count in counted.items() if count)


def is_finished(run: Run, keys: Mapping[str, str]) -> bool:
    """Return whether every stage of a job is finished."""
    return all(run.is_finished(stage.name, keys[stage.name]) for stage in STAGES)


def finished_result(run: Run) -> Result:
    """Return the result of a run that was finished before."""
    records = (run.record(stage.name) for stage in STAGES)
    return result_of(run, tuple({"seconds": r.seconds} for r in records if r is not None))


def fields_of(result: Result) -> dict[str, Any]:
    """Return the fields of an `Outcome` that follow from a result."""
    reason = ""
    if not result.converged:
        reason = (
            f"not converged: the largest residual is {result.spectrum['max_residual']:.1e}; raise "
            "spectrum.tolerance, or lower spectrum.dimension"
        )
    return {
        "reason": reason,
        "converged": result.converged,
        "seconds": round(sum(stage["seconds"] for stage in result.stages), 3),
    }
