"""Versions of what the driver and its workers must have in common."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from eigenscape.base.version import __version__

_WHOLE = ("eigenscape", "dask", "distributed")
_FIRST_TWO = ("python", "numpy", "zarr")
PACKAGES = (*_WHOLE, *_FIRST_TWO)
"""Packages whose versions are compared."""


@cache
def versions() -> dict[str, str]:
    """Return the versions of this process by package; "absent" for one that is not installed."""
    found = {"eigenscape": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        if package not in found:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "absent"
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Return in words what differs so that tasks could fail or results differ.

    eigenscape, dask and distributed must be the same release; of Python, numpy and zarr the first
    two numbers must be.

    Examples
    --------
    >>> differences({"numpy": "2.1.0", "dask": "1"}, {"numpy": "2.2.0", "dask": "1"})
    ['numpy 2.1.0 here, 2.2.0 there']
    """

    def part(package: str, text: str) -> str:
        return text if package in _WHOLE else ".".join(text.split(".")[:2])

    return [
        f"{package} {here[package]} here, {there.get(package, 'absent')} there"
        for package in here
        if part(package, here[package]) != part(package, there.get(package, "absent"))
    ]
