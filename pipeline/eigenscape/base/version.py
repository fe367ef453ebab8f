"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("eigenscape")
except PackageNotFoundError:  # a source tree on PYTHONPATH, not installed
    __version__ = "0+unknown"
