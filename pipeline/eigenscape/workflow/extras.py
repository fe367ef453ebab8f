"""Optional packages that a job needs, looked for before anything is computed."""

from collections.abc import Iterator
from importlib.util import find_spec

from eigenscape.clusters import ClusterOptions
from eigenscape.errors import MissingExtraError
from eigenscape.job.jobfile import Job
from eigenscape.job.options import LearnOptions, SpectrumOptions


def require_extras(job: Job, on: ClusterOptions) -> None:
    """Refuse a job of which a later stage needs a package that is not installed.

    Packages that the scene's files need are looked for when these are opened, which is before, too.

    Raises
    ------
    MissingExtraError
        With the key that needs it, and the package to install.
    """
    for module, package, extra, purpose in _needed(job.spectrum, job.learn, on):
        if find_spec(module) is None:
            raise MissingExtraError(package, extra, purpose)


def _needed(
    spectrum: SpectrumOptions, learn: LearnOptions, on: ClusterOptions
) -> Iterator[tuple[str, str, str, str]]:
    """Yield the module, its package, the extra that brings it, and what needs it."""
    if on.needs is not None:
        yield (*on.needs, f"A cluster of kind {on.kind!r}")
    if spectrum.solver == "lobpcg":
        yield "pyamg", "pyamg", "amg", 'spectrum.solver = "lobpcg"'
    if learn.method == "spectral-clustering" and learn.assign == "k-means":
        yield "dask_ml", "dask-ml", "clusters", 'learn.assign = "k-means"'
