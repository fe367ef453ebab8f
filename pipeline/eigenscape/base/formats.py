"""Formats of the files in ``outputs/`` by name: job files name them, the export stage writes them."""

from typing import Any

from eigenscape.base.registry import Registry
from eigenscape.errors import JobError

_PACKAGE = __name__.partition(".")[0]

# Put together: the code of a format is in the keys of the jobs that name it, not of all that read jobs.
FORMATS: Registry[Any] = Registry(
    what="output format", folder=f"{_PACKAGE}.export.formats", group=f"{_PACKAGE}.formats",
    base=f"{_PACKAGE}.export.format:Format", key="name", error=JobError,
)  # fmt: skip
"""All of them; packages add theirs by the entry-point group ``eigenscape.formats``."""
