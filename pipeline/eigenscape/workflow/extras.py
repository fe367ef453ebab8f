"""Optional packages that a job needs, looked for before anything is computed."""

from collections.abc import Iterator
from importlib.util import find_spec

from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MissingExtraError
from eigenscape.export.format import formats_of
from eigenscape.job.jobfile import Job
from eigenscape.job.options import REGISTRIES
from eigenscape.spectrum.iteration.solvers import WHOLE


def require_extras(job: Job, on: ClusterOptions) -> None:
    """Refuse a job if a later stage needs a package that is not installed.

    Packages that the scene's files need are looked for when these are opened, which is before, too.

    Raises
    ------
    MissingExtraError
        With the key that needs it, and the package to install.
    """
    for module, package, extra, purpose in _needed(job, on):
        if find_spec(module) is None:
            raise MissingExtraError(package, extra, purpose)


def _needed(job: Job, on: ClusterOptions) -> Iterator[tuple[str, str, str, str]]:
    """Yield the module, its package, the extra that brings it, and what needs it."""
    if on.needs is not None:
        yield (*on.needs, f"A cluster of kind {on.kind!r}")
    solver = WHOLE.get(job.spectrum.solver)
    if solver is not None and solver.extra is not None:
        yield (*solver.extra, f'spectrum.solver = "{job.spectrum.solver}"')
    for table in REGISTRIES:
        if (needed := getattr(job, table).needed_extra()) is not None:
            yield needed
    for each in formats_of(job.output.formats):
        if each.extra is not None:
            yield (*each.extra, f'output.formats with "{each.name}"')
