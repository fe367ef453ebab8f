"""The variants of a study with their run directories, and their outcomes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eigenscape.base.files.tables import Row
from eigenscape.errors import StoreError
from eigenscape.job.files.named import job_with_files, with_files
from eigenscape.job.jobfile import Job
from eigenscape.scenes.registry import located
from eigenscape.store.manifest import path_of
from eigenscape.store.run import Run
from eigenscape.store.siblings import Siblings
from eigenscape.study.expansion import Variant, expand
from eigenscape.workflow.choice.kept import settled
from eigenscape.workflow.directories import STUDY_FILE, check_kept, check_ours, parent_directory
from eigenscape.workflow.many.outcomes import Outcome, Outcomes, is_finished
from eigenscape.workflow.stages import STAGES, stage_keys


@dataclass(frozen=True)
class VariantOutcome(Outcome):
    """The outcome of one variant.

    Attributes
    ----------
    path, variant
        Run directory of the variant, and the variant.
    computed
        Stages that this run of the study computed; the others were already finished.
    machine
        Description of the computer on which the stages ran.
    """

    path: Path = field(kw_only=True)
    variant: Variant
    computed: tuple[str, ...] = ()
    machine: str = ""

    @property
    def title(self) -> str:
        """Title of the variant."""
        return self.variant.title


@dataclass(frozen=True)
class StudyResult(Outcomes):
    """The outcomes of the variants of a study, in the order of its file.

    Attributes
    ----------
    path
        Directory of the study.
    outcomes
        One for each variant.
    name
        Stem of its file.
    rows
        The table.
    outputs
        Files: ``csv``, ``parquet``, ``plot``.

    Examples
    --------
    >>> import eigenscape
    >>> scene = {"path": "scene.tif", "labels": "scene_labels.tif"}
    >>> job = eigenscape.parse_job({"scene": scene, "study": {"grid": {"neighbors.k": [4, 8]}}})
    >>> result = eigenscape.run_study(job)
    >>> result.count("done"), sorted(result.outputs)
    (2, ['csv', ...])
    """

    outcomes: tuple[VariantOutcome, ...]
    name: str
    rows: tuple[Row, ...] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[VariantOutcome, ...]:
        """The variants that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.state == "failed")

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
            "failed": [{"variant": o.title, "reason": o.reason} for o in self.failed],
            "not_converged": [o.title for o in self.outcomes if not o.converged],
            "computed": computed,
            "rows": list(self.rows),
            "outputs": {name: str(path) for name, path in self.outputs.items()},
        }


def study_directory(job: Job, run_dir: str | Path | None) -> Path:
    """Return where a study runs. Its variants have directories of their own for each content."""
    if run_dir is not None:
        return path_of(run_dir).resolve()
    return (parent_directory(job) / job.name).resolve()


def check_study_directory(path: Path, job: Job) -> None:
    """Refuse to run a study in a directory in which it would replace files of the user.

    Raises
    ------
    OutputError
        The directory holds other files than a study, or its ``job.toml`` is the job file, changed by hand.
    """
    check_ours(path, STUDY_FILE)
    check_kept(job, path / "job.toml", study_text(job))


def study_text(job: Job) -> str:
    """Return the study as TOML that can be run from any directory: its files are absolute."""
    study = job.study
    assert study is not None, "a study"

    def absolute(path: str) -> str:
        return located(path, job.resolve)

    def of_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
        return {key: with_files(key, value, absolute) for key, value in keys.items()}

    variants = tuple(
        variant.model_copy(update={"set": of_keys(variant.set), "grid": of_keys(variant.grid)})
        for variant in study.variants
    )
    published = study.published and str(job.resolve(study.published))
    changes = {
        "grid": of_keys(study.grid),
        "small": of_keys(study.small),
        "variants": variants,
        "published": published,
    }
    named = job_with_files(job, absolute)
    return named.model_copy(update={"study": study.model_copy(update=changes)}).to_toml()


def plan_outcomes(job: Job, path: Path) -> list[VariantOutcome]:
    """Return the variants of a study with their run directories and stage keys.

    Raises
    ------
    InputError
        A variant cannot work, or a file is not there.
    """
    outcomes: list[VariantOutcome] = []
    for variant in expand(job):
        keys = stage_keys(variant.job)
        name = "-".join(filter(None, [variant.slug, keys["export"][:8]]))
        # Two names for one and the same job are two variants.
        same = sum(outcome.path.name.startswith(name) for outcome in outcomes)
        outcomes.append(
            VariantOutcome(
                variant, path=path / "variants" / f"{name}{f'-{same}' * bool(same)}", keys=keys
            )
        )
    return outcomes


def settle_variant(outcome: VariantOutcome) -> VariantOutcome:
    """Return a variant with the methods that its run has chosen, if its job leaves them open."""
    job, keys = settled(outcome.variant.job, dict(outcome.keys), outcome.path)
    return replace(outcome, variant=replace(outcome.variant, job=job), keys=keys)


def siblings_of(path: Path) -> Siblings:
    """Return the runs whose stages a study may take over: jobs beside it, variants of all studies."""

    def directories() -> Iterable[Path]:
        yield from path.glob("variants/*")
        yield from path.parent.glob("*")
        yield from (p for p in path.parent.glob("*/variants/*") if p.parent.parent != path)

    return Siblings(directories)


def has_finished(outcome: VariantOutcome) -> bool:
    """Return whether every stage of a variant is finished."""
    try:
        return is_finished(Run(outcome.path, create=False), outcome.keys)
    except StoreError:
        return False  # `run` reports what is wrong with it
