"""Which keys of a job nothing reads. A key that nothing reads would mislead: it is refused.

A method has the keys of its class (`eigenscape.job.registry`); keys of other methods are not read. Which of
its own keys are read under conditions the class says, too; `READ_WITH` says it of all other keys. A key that
has its default value asks for nothing: a job that says all keys can be read again, whatever its methods.
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
"""For each key the choices that must all be made for it to be read, or the alternatives to them."""


def unread(job: "Job") -> dict[str, str]:
    """Return the keys that have a value other than the default and that nothing reads, and what to say."""
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
    """Take out of the tables of a job file what an override of a method leaves without a reader.

    Parameters
    ----------
    job
        What the tables say.
    table
        Nested; changed in place.
    overridden
        Keys that overrides have set: these stay, and what nothing reads for other reasons stays, too.
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
