"""Data sets that a job names instead of a path, by whoever provides them.

A provider is a module, or an object, with `names` and `find`. The package's own catalogue is one;
another package adds its own as an entry point of the group ``eigenscape.scenes``.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.types import Legend

GROUP = "eigenscape.scenes"
"""Entry points of this group are providers."""

_CATALOGUE = "eigenscape.datasets.registered"
"""Found by its name, as other providers are: readers of files do not depend on data sets."""


@dataclass(frozen=True)
class Located:
    """Files of a data set, as the readers take them.

    Attributes
    ----------
    paths
        The scene: one file, or one for each band.
    labels
        The labels; None where there are none, or where the scene's own file has them.
    variable, labels_variable
        As the keys of ``[scene]``.
    """

    paths: tuple[str, ...]
    labels: str | None = None
    variable: str | None = None
    labels_variable: str | None = None


class NamedScene(Protocol):
    """A data set by name."""

    @property
    def name(self) -> str:
        """What ``scene.path`` says."""

    @property
    def legend(self) -> Legend:
        """Names and colours of the classes."""

    @property
    def installed(self) -> bool:
        """Whether its files are on this machine, or none are needed."""

    @property
    def drawn(self) -> bool:
        """Whether it is made of as many samples as are asked for."""

    @property
    def seeded(self) -> bool:
        """Whether it is made with a seed."""

    def locate(self, samples: int | None = None, seed: int | None = None) -> Located:
        """Return the paths of its files; what has to be made is, the first time.

        Raises
        ------
        SceneError
            The files are not on this machine, or damaged.
        OutputError
            They cannot be written.
        """

    def key(self, samples: int | None = None, seed: int | None = None) -> str | None:
        """Return what made files are known by; None for files that are read as they are.

        Raises
        ------
        SceneError
            The files are not on this machine.
        """


class Provider(Protocol):
    """Data sets by their names."""

    def names(self) -> Sequence[str]:
        """Return the names."""

    def find(self, name: str) -> NamedScene:
        """Return the data set of one of the names."""


def registered_names() -> tuple[str, ...]:
    """Return the names of all registered data sets."""
    return tuple(_providers())


def is_registered(name: str) -> bool:
    """Return whether a ``scene.path`` is the name of a registered data set."""
    return name in _providers()


def registered(name: str) -> NamedScene:
    """Return a registered data set.

    Raises
    ------
    SceneError
        There is none of that name.
    """
    providers = _providers()
    if name not in providers:
        raise SceneError(
            f"{name}: no registered data set.{did_you_mean(name, providers)} "
            f"Registered are: {', '.join(providers)}."
        )
    return providers[name].find(name)


@cache
def _providers() -> dict[str, Provider]:
    """Return who provides each name: the first of those that have it, the catalogue before all."""
    found: dict[str, Provider] = {}
    catalogue = cast(Provider, importlib.import_module(_CATALOGUE))
    for provider in (catalogue, *(point.load() for point in entry_points(group=GROUP))):
        for name in provider.names():
            found.setdefault(name, provider)
    return found
