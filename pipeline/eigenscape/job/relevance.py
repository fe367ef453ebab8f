"""Which keys of a job its methods read. A key that nothing reads would mislead: it is refused.

`READ_WITH` is the one place that knows. Keys that it does not name are read in every job, and a key that has
its default value asks for nothing: a job that says all keys can be read again, whatever its methods.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from eigenscape.errors import JobError

if TYPE_CHECKING:
    from eigenscape.job.jobfile import Job

FILE = object()
"""Stands for any text but "all" among the values of ``learn.train``."""


@dataclass(frozen=True)
class Choice:
    """A choice of a job.

    Attributes
    ----------
    key
        Of the choice.
    values
        One of these is chosen, or none of them.
    other
        None of them.
    """

    key: str
    values: tuple[Any, ...]
    other: bool = False

    def made(self, job: "Job") -> bool:
        """Whether a job has made this choice."""
        value = value_of(job, self.key)
        is_file = isinstance(value, str) and value != "all"
        return (value in self.values or (FILE in self.values and is_file)) != self.other

    def __str__(self) -> str:
        """Return the choice in words."""
        if FILE in self.values:
            return f'{self.key} = "all", a share or a number'
        if self.values == (None,):
            return f"no {self.key}"
        values = " or ".join(map(_show, self.values))
        return f"{self.key} other than {values}" if self.other else f"{self.key} = {values}"


def _method(section: str, *values: str) -> Choice:
    return Choice(f"{section}.method", values)


_BISECTION = _method("neighbors", "lanczos-bisection")
_LANDMARKS = _method("neighbors", "landmarks")
_TIKHONOV = _method("learn", "tikhonov")
_CLUSTERS = _method("learn", "spectral-clustering", "normalized-cut")
_FROM_LABELS = Choice(_CLUSTERS.key, _CLUSTERS.values, other=True)
_DRAWN = Choice("learn.train", (FILE,), other=True)
_TRAINED_POTENTIAL = Choice("graph.potential.labels", ("train",))

Choices = tuple[Choice, ...]

READ_WITH: Mapping[str, tuple[Choices, ...]] = {
    "features.dimension": ((_method("features", "random-projection", "pca", "mnf"),),),
    "features.seed": ((_method("features", "random-projection"),),),
    "features.standardize": ((_method("features", "random-projection", "pca", "none"),),),
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
    "learn.test": ((_FROM_LABELS,),),
    "learn.areas": ((_FROM_LABELS,),),
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
    for key, alternatives in READ_WITH.items():
        value = value_of(job, key)
        if value == _default(job, key) or any(_all_made(job, each) for each in alternatives):
            continue
        first = next(choice for choice in alternatives[0] if not choice.made(job))
        wanted = ", or of ".join(" with ".join(map(str, each)) for each in alternatives)
        found[key] = (
            f"{key} = {_show(value)}: nothing reads it with {first.key} = "
            f"{_show(value_of(job, first.key))}. It is a key of {wanted}. Leave {key} out, or change "
            f"{first.key}."
        )
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
    for key in unread(job).keys() - set(overridden):
        choices = (choice.key for each in READ_WITH[key] for choice in each)
        if any(choice in overridden for choice in choices):
            section, _, name = key.partition(".")
            del table[section][name]


def value_of(job: Any, key: str) -> Any:
    """Return a key of a job, None where its table is not there."""
    return reduce(lambda table, part: getattr(table, part, None), key.split("."), job)


def _all_made(job: "Job", choices: Choices) -> bool:
    return all(choice.made(job) for choice in choices)


def _default(job: "Job", key: str) -> Any:
    section, _, name = key.rpartition(".")
    return type(value_of(job, section)).model_fields[name].default


def _show(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_show, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"
