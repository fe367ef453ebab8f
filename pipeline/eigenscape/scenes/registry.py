"""Data sets that a job names instead of a path, by whoever provides them.

A provider is a module, or an object, with `names` and `find`. The package's own catalogue is one;
another package adds its own as an entry point of the group ``eigenscape.scenes``.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from eigenscape.base.registry import Additions, origin_of
from eigenscape.errors import SceneError, did_you_mean
from eigenscape.job.scene import SceneOptions
from eigenscape.scenes.types import Legend

PROVIDERS = Additions("provider of data sets", "eigenscape.scenes", SceneError)
"""Entry points of this group are providers."""

_SETS = replace(PROVIDERS, what="registered data set")

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
    """Return the names of all registered data sets.

    Raises
    ------
    SceneError
        A provider of another package cannot be used.
    """
    return tuple(_providers(tuple(sys.path)))


def is_registered(name: str) -> bool:
    """Return whether a ``scene.path`` is the name of a registered data set.

    Raises
    ------
    SceneError
        A provider of another package cannot be used.
    """
    return name in _providers(tuple(sys.path))


def located(path: str, resolve: Callable[[str], str]) -> str:
    """Return a path of a job made absolute by `resolve`; the name of a registered data set as it is."""
    return path if is_registered(path) else resolve(path)


def registered(name: str) -> NamedScene:
    """Return a registered data set.

    Raises
    ------
    SceneError
        There is none of that name, two providers have it, or one cannot be used.
    """
    providers = _providers(tuple(sys.path))
    if name not in providers:
        raise SceneError(
            f"{name}: no registered data set.{did_you_mean(name, providers)} "
            f"Registered are: {', '.join(providers)}."
        )
    first, *others = providers[name].items()
    if others:
        raise _SETS.twice(name, first[0], others[0][0])
    return first[1].find(name)


def registered_file(options: SceneOptions, name: str) -> Path | None:
    """Return a file beside those of the registered data set that a job names; None without either."""
    if not (isinstance(options.path, str) and is_registered(options.path)):
        return None
    located = registered(options.path).locate(options.samples, options.seed)
    path = Path(located.paths[0]).with_name(name)
    return path if path.exists() else None


@cache
def _providers(path: tuple[str, ...]) -> dict[str, dict[str, Provider]]:
    """Return the providers of each name by where they are from, with packages of a path."""
    found: dict[str, dict[str, Provider]] = {}
    catalogue = cast(Provider, importlib.import_module(_CATALOGUE))
    for name in catalogue.names():
        found[name] = {_CATALOGUE: catalogue}
    for entry in (entry for entries in PROVIDERS.by_name().values() for entry in entries):
        provider = PROVIDERS.load(entry)
        try:
            names = tuple(provider.names())
        except Exception as error:  # what the code of another package raises
            raise PROVIDERS.unusable(entry, error) from error
        for name in names:
            found.setdefault(name, {})[origin_of(entry)] = provider
    return found
