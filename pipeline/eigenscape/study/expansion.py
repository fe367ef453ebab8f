"""A study to its variants: one job for each combination of values."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eigenscape.errors import JobError
from eigenscape.job.changes import changed, given_tables
from eigenscape.job.choices import value_of
from eigenscape.job.conditions import Condition, parse_condition
from eigenscape.job.jobfile import Job, parse_job, unknown_key
from eigenscape.job.options import REGISTRIES
from eigenscape.job.relevance import refuse_unread, unread
from eigenscape.job.study import StudyOptions, VariantOptions

_SAME_RESULT = ("limits.", "output.", "study.")
"""Tables that no result depends on: variants of them would be one and the same run."""

_UNNAMED = VariantOptions.model_construct(name="")
"""The one variant of a study that names none: every combination of its grid."""


@dataclass(frozen=True)
class Variant:
    """One job of a study.

    Attributes
    ----------
    name
        Name of the entry of ``[[study.variants]]``; "" without any.
    values
        What the keys that it varies are.
    job
        The whole job.
    """

    name: str
    values: Mapping[str, Any]
    job: Job

    @property
    def title(self) -> str:
        """What messages call it."""
        values = [f"{key} = {_show(value)}" for key, value in self.values.items()]
        return ", ".join([self.name] * bool(self.name) + values)

    @property
    def slug(self) -> str:
        """The title in letters that every file system takes."""
        words = [self.name, *(f"{key.rpartition('.')[2]}-{v}" for key, v in self.values.items())]
        return re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower()).strip("-.")[:60].strip("-.")


def expand(job: Job) -> tuple[Variant, ...]:
    """Return every variant of a study, in the order of the file.

    A key that all variants share is left out of those whose methods do not read it.

    Raises
    ------
    JobError
        An unknown key or impossible value, in whichever variant; one that a variant sets and does not
        read, or that no variant reads; or no combination is left.
    """
    study = job.study
    assert study is not None, "only a study has variants"
    base = _base_table(job)
    condition = parse_condition(study.where) if study.where else None
    if condition is not None:
        for key in condition.keys - {"variant"}:
            _check_key(f"{job.name}: study.where", key)
    found: list[Variant] = []
    never = unread(parse_job(base, name=job.name, base=job.base, strict=False))
    for options in study.variants or (_UNNAMED,):
        grid = {key: v for key, v in study.grid.items() if key not in options.drop} | options.grid
        place = f"the variant {options.name!r}" if study.variants else "[study.grid]"
        for key in (*options.set, *grid):
            _check_key(f"{job.name}: {place}", key)
        for values in _combinations(grid):
            variant, left_out = _variant(job, base, options, values)
            if condition is None or _wanted(condition, options, study, variant):
                refuse_unread(variant.job, f"{job.name}, {variant.title}")
                never = {key: text for key, text in never.items() if key in left_out}
                found.append(variant)
    if not found:
        raise JobError(
            f"{job.name}: study.where = {study.where!r} leaves no variant; "
            "loosen it, or change [study.grid]."
        )
    if never:
        raise JobError(
            "\n".join(f"{job.name}: in every variant, {text}" for text in never.values())
        )
    return tuple(found)


def _base_table(job: Job) -> dict[str, Any]:
    """Return the job as its file says it, without the study.

    Class maps and images of every variant are seldom wanted: only what the file itself asks for.
    """
    table = given_tables(job)
    if not job.open:
        # Without the study, a job that names no method would be open: a study keeps the defaults.
        table.setdefault("learn", {}).setdefault("method", job.learn.method)
    if "formats" not in job.output.model_fields_set:
        table.setdefault("output", {}).update(formats=(), eigenvectors=0)
    return table


def _combinations(grid: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _variant(
    job: Job, base: dict[str, Any], options: VariantOptions, values: dict[str, Any]
) -> tuple[Variant, set[str]]:
    """Return a variant, and the keys of the study's job that are left out of it: it does not read them."""
    own = options.set | values
    source = f"{job.name}, {Variant(options.name, values, job).title}"
    parsed, left_out = changed(job, own, source=source, table=base)
    return Variant(options.name, values, parsed), left_out


def _check_key(source: str, key: str) -> None:
    if (message := unknown_key(key)) is not None:
        raise JobError(f"{source}: {message}")
    if key.startswith(_SAME_RESULT):
        raise JobError(
            f"{source}: {key} changes no result, so its variants would be one run. Vary another key, "
            "or run the study once for each value with --set and --run-dir."
        )


def _wanted(
    condition: Condition, options: VariantOptions, study: StudyOptions, variant: Variant
) -> bool:
    if condition.keys & {*options.drop}:
        return True
    try:
        return condition.holds(lambda key: _value_of(variant, key))
    except (TypeError, ZeroDivisionError) as error:
        raise JobError(
            f"{variant.job.name}: study.where = {study.where!r} cannot be evaluated for "
            f"{variant.title} ({error})."
        ) from None


def _value_of(variant: Variant, key: str) -> Any:
    """Return a key of a variant's job; "variant" is its name."""
    if key == "variant":
        return variant.name
    section, _, name = key.partition(".")
    if section in REGISTRIES and not hasattr(getattr(variant.job, section), name):
        # Its method does not have the key: as if it were not given.
        return next(iter(REGISTRIES[section].having(name).values())).model_fields[name].default
    return value_of(variant.job, key)


def _show(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
