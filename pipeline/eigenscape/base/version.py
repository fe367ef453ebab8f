"""Versions of this package and of others."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("eigenscape")
except PackageNotFoundError:  # a source tree on PYTHONPATH, not installed
    __version__ = "0+unknown"


@cache
def installed_version(package: str) -> str | None:
    """Return the version of an installed package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
