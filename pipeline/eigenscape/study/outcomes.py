"""The variants of a study with their run directories, and what became of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eigenscape.errors import StoreError
from eigenscape.job.jobfile import Job
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.study.expansion import Variant, expand
from eigenscape.study.table import Row
from eigenscape.workflow.spine import parent_directory
from eigenscape.workflow.stages import STAGES, stage_keys


@dataclass(frozen=True)
class Outcome:
    """What became of one variant.

    Attributes
    ----------
    variant, path
        The variant, and its run directory.
    keys
        Content key of each stage.
    computed
        Stages that this run of the study computed; the others were there.
    seconds
        What they took, in all.
    error
        Why it failed; None otherwise.
    machine
        What computed it.
    """

    variant: Variant
    path: Path
    keys: Mapping[str, str]
    computed: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    machine: str = ""

    @property
    def state(self) -> str:
        """Whether it is "finished" or "failed"."""
        return "finished" if self.error is None else "failed"


@dataclass(frozen=True)
class StudyResult:
    """What a study came to.

    Attributes
    ----------
    path
        Its directory.
    name
        Stem of its file.
    outcomes
        Of every variant, in the order of the file.
    rows
        The table.
    outputs
        Files: ``csv``, ``parquet``, ``plot``.
    """

    path: Path
    name: str
    outcomes: tuple[Outcome, ...]
    rows: tuple[Row, ...] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The variants that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.error is not None)

    @property
    def not_converged(self) -> tuple[str, ...]:
        """Titles of the variants whose eigenpairs stayed above the tolerance."""
        return tuple(
            dict.fromkeys(str(row["title"]) for row in self.rows if row.get("converged") is False)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as the one JSON object that ``--json`` prints."""
        computed = {stage.name: 0 for stage in STAGES}
        for outcome in self.outcomes:
            for name in outcome.computed:
                computed[name] += 1
        return {
            "run": str(self.path),
            "study": self.name,
            "variants": len(self.outcomes),
            "finished": len(self.outcomes) - len(self.failed),
            "failed": [{"variant": o.variant.title, "reason": o.error} for o in self.failed],
            "not_converged": list(self.not_converged),
            "computed": computed,
            "rows": list(self.rows),
            "outputs": {name: str(path) for name, path in self.outputs.items()},
        }


def study_directory(job: Job, run_dir: str | Path | None) -> Path:
    """Return where a study runs. Its variants have directories of their own for each content."""
    if run_dir is not None:
        return Path(run_dir).resolve()
    return (parent_directory(job) / job.name).resolve()


def plan_outcomes(job: Job, path: Path) -> list[Outcome]:
    """Return the variants of a study with their run directories and stage keys.

    Raises
    ------
    InputError
        A variant cannot work, or a file is not there.
    """
    outcomes: list[Outcome] = []
    for variant in expand(job):
        keys = stage_keys(variant.job)
        name = "-".join(filter(None, [variant.slug, keys["export"][:8]]))
        # Two names for one and the same job are two variants.
        same = sum(outcome.path.name.startswith(name) for outcome in outcomes)
        outcomes.append(
            Outcome(variant, path / "variants" / f"{name}{f'-{same}' * bool(same)}", keys)
        )
    return outcomes


def siblings_of(path: Path) -> Siblings:
    """Return the runs whose stages a study may take over: jobs beside it, variants of all studies."""

    def directories() -> Iterable[Path]:
        yield from path.glob("variants/*")
        yield from path.parent.glob("*")
        yield from (p for p in path.parent.glob("*/variants/*") if p.parent.parent != path)

    return Siblings(directories)


def is_finished(outcome: Outcome) -> bool:
    """Return whether every stage of a variant is finished."""
    try:
        directory = Run(outcome.path, create=False)
    except StoreError:
        return False  # `run` says what is wrong with it
    return all(directory.is_finished(stage.name, outcome.keys[stage.name]) for stage in STAGES)
