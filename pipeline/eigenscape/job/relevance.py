"""Detection of keys that no method of a job reads. Such a key would be misleading, so it is refused.

A method reads the keys of its class (`eigenscape.job.registry`), not those of other methods. Keys that are
read only under conditions are listed in `MethodOptions.read_with` of the class, and for all other tables in
`READ_WITH`. A key with its default value is always accepted, so that a job file with all keys stays valid for
any methods.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from eigenscape.errors import JobError
from eigenscape.job.choices import FILE, Choice, Choices, nothing_reads, value_of
from eigenscape.job.options import REGISTRIES

if TYPE_CHECKING:
    from eigenscape.job.jobfile import Job


@dataclass(frozen=True)
class MethodsThat(Choice):
    """A choice among the methods of a table that are of a kind.

    Attributes
    ----------
    trait
        Attribute of their classes.
    """

    trait: str = ""

    def made(self, job: "Job") -> bool:
        """Whether the method of a job is of this kind."""
        table = self.key.partition(".")[0]
        return bool(getattr(getattr(job, table), self.trait)) != self.other

    def __str__(self) -> str:
        """Return the choice in words."""
        kinds = REGISTRIES[self.key.partition(".")[0]].all()
        names = tuple(name for name, kind in kinds.items() if getattr(kind, self.trait))
        return str(Choice(self.key, names, self.other))


_FROM_LABELS = MethodsThat("learn.method", (), True, "unsupervised")
_SEEDED = MethodsThat("learn.method", (), False, "seeded")
_BILATERAL = Choice("features.spatial.method", ("bilateral",))
_GUIDED = Choice("features.spatial.method", ("guided",))
_LEADING = Choice("features.spatial.method", ("guided", "profiles"))
_DRAWN = Choice("learn.train", (FILE,), other=True)
_TRAINED_POTENTIAL = Choice("graph.potential.labels", ("train",))

READ_WITH: Mapping[str, tuple[Choices, ...]] = {
    "features.spatial.space_sigma": ((_BILATERAL,),),
    "features.spatial.range_sigma": ((_BILATERAL,),),
    "features.spatial.epsilon": ((_GUIDED,),),
    "features.spatial.components": ((_LEADING,),),
    "graph.bandwidth": ((Choice("graph.weights", ("self-tuning", "heat")),),),
    "learn.train": ((_FROM_LABELS,), (_TRAINED_POTENTIAL,)),
    "learn.test": ((_FROM_LABELS,), (_TRAINED_POTENTIAL,)),
    "learn.areas": ((_FROM_LABELS,),),
    "learn.split": ((_FROM_LABELS, _DRAWN), (_TRAINED_POTENTIAL, _DRAWN)),
    "learn.trials": (
        (_FROM_LABELS, _DRAWN, Choice("graph.potential.labels", ("train",), other=True)),
    ),
    "learn.seed": (
        (_FROM_LABELS,), (_SEEDED,), (_TRAINED_POTENTIAL,),
    ),
    "learn.smoothing": ((_FROM_LABELS,),),
    "learn.queries": ((_FROM_LABELS,),),
}  # fmt: skip
"""Conditions of conditional keys: alternatives, each of which is a tuple of choices that must all be made."""


def unread(job: "Job") -> dict[str, str]:
    """Return the unread keys that do not have their default value, with the error message of each."""
    found = {}
    for key, value in job.left_out.items():
        table, _, name = key.partition(".")
        having = REGISTRIES[table].having(name)
        if not any(value == kind.model_fields[name].default for kind in having.values()):
            method, choice = f"{table}.method", Choice(f"{table}.method", (*having,))
            found[key] = nothing_reads(key, value, method, value_of(job, method), [(choice,)])
    for key, alternatives in _conditions(job).items():
        value = value_of(job, key)
        if value == _default(job, key) or any(_all_made(job, each) for each in alternatives):
            continue
        first = next(choice for choice in alternatives[0] if not choice.made(job)).key
        found[key] = nothing_reads(key, value, first, value_of(job, first), alternatives)
    return found


def _conditions(job: "Job") -> dict[str, tuple[Choices, ...]]:
    """Return the conditions on the keys that a job has."""
    found = dict(READ_WITH)
    for table in REGISTRIES:
        options = getattr(job, table)
        own = Choice(f"{table}.method", (options.method,))
        for key, choices in options.read_with.items():
            found[f"{table}.{key}"] = ((own, *choices),)
    return found


def refuse_unread(job: "Job", source: str) -> None:
    """Refuse a job with keys that nothing reads.

    Parameters
    ----------
    job
        Checked otherwise.
    source
        What errors call it.

    Raises
    ------
    JobError
        With each of the keys, the methods that read it, and the fix.
    """
    if found := unread(job):
        raise JobError("\n".join(f"{source}: {text}" for text in found.values()))


def leave_out(job: "Job", table: dict[str, Any], overridden: Collection[str]) -> None:
    """Delete from the tables of a job file the keys that are unread only because of an override.

    Parameters
    ----------
    job
        The job of the tables.
    table
        The nested tables; changed in place.
    overridden
        Keys set by overrides. They are kept, as are keys that are unread for other reasons.
    """
    conditions = _conditions(job)
    for key in unread(job).keys() - set(overridden):
        section, _, name = key.rpartition(".")
        choices = {choice.key for each in conditions.get(key, ()) for choice in each}
        if key in job.left_out:
            choices.add(f"{section}.method")
        if choices & set(overridden):
            del reduce(lambda nested, part: nested[part], section.split("."), table)[name]


def _all_made(job: "Job", choices: Choices) -> bool:
    return all(choice.made(job) for choice in choices)


def _default(job: "Job", key: str) -> Any:
    """Return the default of a key, None of a table that the job does not have."""
    section, _, name = key.rpartition(".")
    table = value_of(job, section)
    return None if table is None else type(table).model_fields[name].default
