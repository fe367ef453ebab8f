"""A job with some keys changed, and the keys that a job itself gives."""

import copy
from collections.abc import Mapping
from functools import reduce
from typing import Any

from eigenscape.job.jobfile import Job, parse_job
from eigenscape.job.relevance import unread
from eigenscape.job.study import flatten


def given_keys(job: Job) -> dict[str, Any]:
    """Return the keys that a job gives and their values; those that are left at their defaults are not there.

    Examples
    --------
    >>> import eigenscape
    >>> given_keys(eigenscape.parse_job({"scene": {"path": "scene.tif"}, "neighbors": {"k": 8}}))
    {'scene.path': 'scene.tif', 'neighbors.k': 8}
    """
    return dict(flatten(given_tables(job)))


def given_tables(job: Job) -> dict[str, Any]:
    """Return the tables that a job gives, nested, without its study."""
    tables: dict[str, Any] = job.model_dump(exclude_unset=True, exclude={"study"})
    for key, value in job.left_out.items():
        section, _, name = key.partition(".")
        tables.setdefault(section, {})[name] = value
    return tables


def changed(
    job: Job, values: Mapping[str, Any], *, source: str, table: Mapping[str, Any] | None = None
) -> tuple[Job, set[str]]:
    """Return a job with other values of some keys.

    Keys that the job itself gives are left out where the changed methods do not read them.

    Parameters
    ----------
    job
        Of which name and directory are taken.
    values
        By dotted keys such as ``learn.method``.
    source
        What errors call it.
    table
        The tables to change; those of the job by default.

    Returns
    -------
    job, left_out
        The changed job, and the keys that were left out of it.

    Raises
    ------
    JobError
        An unknown key or an impossible value.
    """
    tables: dict[str, Any] = copy.deepcopy(given_tables(job) if table is None else dict(table))
    for key, value in values.items():
        *sections, last = key.split(".")
        section: dict[str, Any] = reduce(lambda at, part: at.setdefault(part, {}), sections, tables)
        section[last] = value

    def parse() -> Job:
        return parse_job(tables, name=job.name, base=job.base, source=source, strict=False)

    parsed = parse()
    left_out = unread(parsed).keys() - values.keys()
    for key in left_out:
        *sections, last = key.split(".")
        del reduce(lambda at, part: at[part], sections, tables)[last]
    return (parse() if left_out else parsed), left_out
