"""What a study would do, and how far one is, without running anything."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MemoryLimitError, StoreError
from eigenscape.job.jobfile import Job
from eigenscape.store.lock import lock_holder
from eigenscape.store.run import Run
from eigenscape.study.outcomes import (
    check_study_directory,
    plan_outcomes,
    settle_variant,
    siblings_of,
    study_directory,
)
from eigenscape.study.run import FORMAT
from eigenscape.workflow.directories import STUDY_FILE
from eigenscape.workflow.footprint import StagePlan
from eigenscape.workflow.plan import project_plan
from eigenscape.workflow.runner import fit_limits
from eigenscape.workflow.stages import STAGES


@dataclass(frozen=True)
class StagesPlanned:
    """One stage in all variants of a study.

    Attributes
    ----------
    name
        The stage.
    different
        How many different results the variants need.
    finished
        How many of these are there already.
    peak_bytes, disk_bytes
        Largest projected peak; bytes that the missing ones will write.
    """

    name: str
    different: int
    finished: int
    peak_bytes: int
    disk_bytes: int


@dataclass(frozen=True)
class StudyPlan:
    """What a study will do and need.

    Attributes
    ----------
    run
        Its directory.
    variants
        Their titles.
    stages
        What they share.
    """

    run: str
    variants: tuple[str, ...]
    stages: tuple[StagesPlanned, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "run": self.run,
            "variants": list(self.variants),
            "peak_bytes": max(stage.peak_bytes for stage in self.stages),
            "stages": [vars(stage) for stage in self.stages],
        }


def plan_study(
    job: Job, *, on: ClusterOptions | None = None, run_dir: str | Path | None = None
) -> StudyPlan:
    """Say what a study would compute, and what its variants share.

    Raises
    ------
    InputError
        A variant cannot work; of one that does not fit into the memory limit, with its name.
    """
    path = study_directory(job, run_dir)
    check_study_directory(path, job)
    outcomes = [settle_variant(outcome) for outcome in plan_outcomes(job, path)]
    siblings = siblings_of(path)
    sizes: dict[str, dict[str, StagePlan]] = {stage.name: {} for stage in STAGES}
    for outcome in outcomes:
        fitted = fit_limits(outcome.variant.job, on or ClusterOptions())
        plan = project_plan(fitted, on or ClusterOptions())
        try:
            plan.check(fitted.limits.memory_bytes)
        except MemoryLimitError as error:
            raise MemoryLimitError(f"{outcome.variant.title}: {error}") from None
        for stage in plan.stages:
            sizes[stage.name].setdefault(outcome.keys[stage.name], stage)
    nowhere = path / "variants" / ".none"
    stages = []
    for name, plans in sizes.items():
        missing = [
            stage
            for key, stage in plans.items()
            if next(siblings.find(name, key, exclude=nowhere), None) is None
        ]
        stages.append(
            StagesPlanned(
                name,
                different=len(plans),
                finished=len(plans) - len(missing),
                peak_bytes=max(stage.peak_bytes for stage in plans.values()),
                disk_bytes=sum(stage.disk_bytes for stage in missing),
            )
        )
    return StudyPlan(str(path), tuple(o.variant.title for o in outcomes), tuple(stages))


def study_status(path: Path) -> dict[str, Any]:
    """Say which variants of a study are finished, from their manifests.

    Raises
    ------
    StoreError
        The directory is of another version.
    """
    try:
        described = json.loads((path / STUDY_FILE).read_text(encoding="utf-8"))
        if described["format"] != FORMAT:
            raise ValueError("another format")
        variants = [_variant_status(path, entry) for entry in described["variants"]]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path}: study.json was not written by this version ({error}). "
            "Give the same `eigenscape run` again, or another --run-dir."
        ) from None
    finished = sum(variant["state"] == "finished" for variant in variants)
    done = finished == len(variants)
    return {
        "run": str(path),
        "name": described["name"],
        "title": described["title"],
        "state": "finished" if done else "unfinished: the same `eigenscape run` goes on",
        "finished": finished,
        "holder": lock_holder(path),
        "variants": variants,
    }


def _variant_status(path: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    directory = path / "variants" / entry["directory"]
    done: list[str] = []
    reason = entry["reason"]
    try:
        if directory.is_dir():
            run = Run(directory, create=False)
            keys = entry["keys"]
            done = [one.name for one in STAGES if run.is_finished(one.name, keys[one.name])]
    except StoreError as error:
        reason = str(error)  # one damaged run says nothing about the others
    state = "finished" if len(done) == len(STAGES) else "failed" if reason else "to do"
    return {
        "title": entry["title"],
        "state": "begun" if state == "to do" and done else state,
        "stages": done,
        "reason": reason if state == "failed" else None,
        "directory": str(directory),
    }
