"""The jobs that a choice is made among: ``candidates.toml``, as far as it fits a scene and a job."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eigenscape.job.changes import changed, given_keys
from eigenscape.job.choices import show
from eigenscape.job.jobfile import Job
from eigenscape.job.relevance import unread
from eigenscape.workflow.choice.survey import Survey

_DIMENSION = "features.dimension"


@dataclass(frozen=True)
class Option:
    """Keys to set, and what the scene has to be for them.

    Attributes
    ----------
    keys
        By dotted name.
    needs
        See `Survey.fulfils`.
    without
        Keys that a job must not have changed before.
    alone
        Whether these are all keys of a job, and those of the jobs kept before do not count.
    slow
        Whether it takes so much longer in a large scene that it has to be clearly better there.
    once
        Whether it is tried on the best job kept before, and not on the others.
    """

    keys: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    alone: bool = False
    slow: bool = False
    once: bool = False

    def fits(self, job: Job, scene: Survey) -> bool:
        """Whether the scene is what the option needs, and the job leaves its keys open."""
        if not all(map(scene.fulfils, self.needs)):
            return False
        if self._dimension >= scene.bands and self.keys.get("features.method") != "mnf":
            return False  # nothing would be projected
        given = given_keys(job)
        return all(given.get(key, value) == value for key, value in self.keys.items())

    def keys_on(self, scene: Survey) -> Mapping[str, Any]:
        """Return the keys to set: of noise fractions no more than the scene has bands."""
        few = min(self._dimension, scene.bands)
        return {**self.keys, _DIMENSION: few} if _DIMENSION in self.keys else self.keys

    @property
    def _dimension(self) -> int:
        return int(self.keys.get(_DIMENSION, 0))


@dataclass(frozen=True)
class Rung:
    """A step of the ladder.

    Attributes
    ----------
    name
        What it varies.
    draws
        Draws of training pixels by which its jobs are compared.
    keep
        Jobs that go on.
    options
        What is tried on each job that the rung before has kept, or on the best one.
    """

    name: str
    draws: int
    keep: int
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Ladder:
    """What `eigenscape tune` tries.

    Attributes
    ----------
    start
        Keys that all candidates begin with.
    rungs
        In their order.
    """

    start: Mapping[str, Any]
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Candidate:
    """A job to try.

    Attributes
    ----------
    values
        The keys that it changes.
    job
        The whole job.
    """

    values: Mapping[str, Any]
    job: Job = field(repr=False)

    @property
    def title(self) -> str:
        """What messages call it."""
        return ", ".join(f"{key} = {show(value)}" for key, value in self.values.items())


def read_ladder(table: Mapping[str, Any]) -> Ladder:
    """Return a ladder from its table in ``candidates.toml``."""
    rungs = tuple(
        Rung(rung["name"], rung["draws"], rung["keep"], read_options(rung["options"]))
        for rung in table["rungs"]
    )
    return Ladder(table["start"], rungs)


def widened(ladder: Ladder, options: Sequence[Option]) -> Ladder:
    """Return a ladder whose first rung has further options."""
    first, *others = ladder.rungs
    first = replace(first, options=(*first.options, *options))
    return replace(ladder, rungs=(first, *others))


def read_options(entries: Sequence[Mapping[str, Any]]) -> tuple[Option, ...]:
    """Return options from their tables."""
    return tuple(
        Option(
            entry["keys"], tuple(entry.get("needs", ())), tuple(entry.get("without", ())),
            entry.get("alone", False), entry.get("slow", False), entry.get("once", False),
        )
        for entry in entries
    )  # fmt: skip


def candidate(job: Job, values: Mapping[str, Any]) -> Candidate:
    """Return a job with some keys changed; those that the job gives itself stay as they are.

    Keys that the changed job does not read are left out, of the changes too.
    """
    given = given_keys(job)
    wanted = {key: value for key, value in values.items() if key not in given}
    found, _ = changed(job, wanted, source=job.name)
    while idle := unread(found).keys() & wanted.keys():
        wanted = {key: value for key, value in wanted.items() if key not in idle}
        found, _ = changed(job, wanted, source=job.name)
    return Candidate(wanted, found)


def fitted(job: Job, scene: Survey) -> Mapping[str, Any]:
    """Return keys with smaller values than the defaults, which a scene of few pixels needs."""
    most, given = max(1, scene.samples - 1), given_keys(job)
    values = {"neighbors.k": job.neighbors.k, "spectrum.dimension": job.spectrum.dimension}
    return {key: most for key, value in values.items() if value > most and key not in given}


_TABLES = tomllib.loads(Path(__file__).with_name("candidates.toml").read_text(encoding="utf-8"))

LADDER = read_ladder(_TABLES["ladder"])
"""What `eigenscape tune` tries with labels."""

SCATTERED = read_ladder(_TABLES["scattered"])
"""What it tries where few labels are scattered over a large scene."""

CLUSTERS = read_ladder(_TABLES["clusters"])
"""What it tries without."""

AUTO = read_ladder(_TABLES["auto"])
"""What ``learn.method = "auto"`` tries."""

GRAPHLESS = read_ladder(_TABLES["graphless"])
"""Jobs that are quick on a whole scene. `eigenscape tune` tries them first; ``auto`` does where a part of the
scene holds too few labels or is doubtful."""

WITH_EIGENVECTORS = widened(GRAPHLESS, read_options(_TABLES["eigenvectors"]["options"]))
"""These, and one by eigenvectors: what ``auto`` compares in a large scene whose labels are scattered."""

WIDER = widened(WITH_EIGENVECTORS, read_options(_TABLES["wider"]["options"]))
"""These, and jobs with graphs: what ``auto`` compares in a part that is large enough."""

PROBE = read_ladder(_TABLES["probe"])
"""A quick job on the whole scene: where its draws differ much, a part tells little."""

FEW_LABELS: Mapping[str, Any] = _TABLES["auto"]["few"]
"""What it takes where labels are too few to try anything by."""
