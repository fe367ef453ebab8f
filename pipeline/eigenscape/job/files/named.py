"""Keys of a job that name files."""

from collections.abc import Callable, Mapping
from typing import Any

from eigenscape.job.choices import value_of
from eigenscape.job.jobfile import Job
from eigenscape.job.scene import FLAGS, NO_FLAGS

NAMED_FILES: Mapping[str, tuple[str, ...]] = {
    "scene.path": (),
    "scene.labels": (),
    "scene.mask": (*FLAGS, NO_FLAGS),
    "scene.geometry": ("auto", "none"),
    "learn.train": ("all",),
    "learn.test": (),
    "graph.potential.labels": ("train", "all"),
    "graph.potential.raster": (),
    "output.directory": (),
}
"""Keys that name files or directories, each with its values that are words instead."""


def with_files(key: str, value: Any, change: Callable[[str], str]) -> Any:
    """Return the value of a key with its files changed, such as made absolute.

    Parameters
    ----------
    key
        Any key of a job.
    value
        Its value: a text, or several. Other values, words and values of keys that name no file are
        returned as they are.
    change
        Function of a path.

    Examples
    --------
    >>> with_files("scene.mask", ("clouds", "mask.tif"), lambda path: f"/data/{path}")
    ('clouds', '/data/mask.tif')
    """
    if key not in NAMED_FILES:
        return value
    if isinstance(value, str):
        return value if value in NAMED_FILES[key] else change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(with_files(key, one, change) for one in value)
    return value


def job_with_files(job: Job, change: Callable[[str], str]) -> Job:
    """Return a job with all files that it names changed; see `with_files`."""
    for key in NAMED_FILES:
        value = value_of(job, key)
        if (changed := with_files(key, value, change)) != value:
            job = _replaced(job, key.split("."), changed)
    return job


def _replaced(table: Any, parts: list[str], value: Any) -> Any:
    """Return a table of options with one value, which may be in a table inside it, replaced."""
    first, *rest = parts
    own = _replaced(getattr(table, first), rest, value) if rest else value
    return table.model_copy(update={first: own})
