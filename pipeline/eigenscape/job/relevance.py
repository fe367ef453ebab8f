"""Which keys of a job nothing reads. A key that nothing reads would mislead: it is refused.

A method has the keys of its class (`eigenscape.job.registry`); keys of other methods are not read. Which of
its own keys are read under conditions the class says, too; `READ_WITH` says it of all other keys. A key that
has its default value asks for nothing: a job that says all keys can be read again, whatever its methods.
"""

from collections.abc import Collection, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from eigenscape.errors import JobError
from eigenscape.job.choices import FILE, Choice, Choices, nothing_reads, value_of
from eigenscape.job.options import REGISTRIES

if TYPE_CHECKING:
    from eigenscape.job.jobfile import Job


def _method(section: str, *values: str) -> Choice:
    return Choice(f"{section}.method", values)


_BISECTION = _method("neighbors", "lanczos-bisection")
_LANDMARKS = _method("neighbors", "landmarks")
_TIKHONOV = _method("learn", "tikhonov")
_CLUSTERS = _method("learn", "spectral-clustering", "normalized-cut")
_FROM_LABELS = Choice(_CLUSTERS.key, _CLUSTERS.values, other=True)
_BILATERAL = _method("features.spatial", "bilateral")
_DRAWN = Choice("learn.train", (FILE,), other=True)
_TRAINED_POTENTIAL = Choice("graph.potential.labels", ("train",))

READ_WITH: Mapping[str, tuple[Choices, ...]] = {
    "features.spatial.space_sigma": ((_BILATERAL,),),
    "features.spatial.range_sigma": ((_BILATERAL,),),
    "features.spatial.epsilon": ((_method("features.spatial", "guided"),),),
    "features.spatial.components": ((_method("features.spatial", "guided", "profiles"),),),
    "neighbors.radius": ((_method("neighbors", "radius"),),),
    "neighbors.overlap": ((_BISECTION,),),
    "neighbors.searcher": ((_BISECTION,),),
    "neighbors.refine": ((_BISECTION, Choice("neighbors.recall", (None,))),),
    "neighbors.recall": ((_BISECTION,),),
    "neighbors.landmarks": ((_LANDMARKS,),),
    "neighbors.seed": ((_LANDMARKS,),),
    "graph.bandwidth": ((Choice("graph.weights", ("self-tuning", "heat")),),),
    "learn.clusters": ((_CLUSTERS,),),
    "learn.assign": ((_method("learn", "spectral-clustering"),),),
    "learn.ncut": ((_method("learn", "normalized-cut"),),),
    "learn.gamma": ((_TIKHONOV,),),
    "learn.power": ((_TIKHONOV, Choice("learn.kernel", ("power",))),),
    "learn.kernel": ((_TIKHONOV,),),
    "learn.time": ((_TIKHONOV, Choice("learn.kernel", ("heat",))),),
    "learn.k": ((_method("learn", "k-nn"),),),
    "learn.eigenvectors": ((_method("learn", "eigenfunctions"),),),
    "learn.train": ((_FROM_LABELS,), (_TRAINED_POTENTIAL,)),
    "learn.split": ((_FROM_LABELS, _DRAWN), (_TRAINED_POTENTIAL, _DRAWN)),
    "learn.trials": (
        (_FROM_LABELS, _DRAWN, Choice("graph.potential.labels", ("train",), other=True)),
    ),
    "learn.seed": (
        (_FROM_LABELS,), (_method("learn", "spectral-clustering"),), (_TRAINED_POTENTIAL,),
    ),
    "learn.prior": ((_method("learn", "eigenfunctions", "interpolated", "poisson", "poisson-mbo", "k-nn"),),),
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
