"""Classes by name: in files of a folder of the package, in other packages, or registered by a call.

::

    folder      eigenscape/clusters/kinds/slurm.py   imported when "slurm" is asked for
    other       [project.entry-points."eigenscape.clusters"]   polite = "mine:Polite"
    call        register_kind(Polite)
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from eigenscape.errors import InputError, did_you_mean

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type[Any])


@dataclass(frozen=True)
class Registry(Generic[Base]):
    """Classes that can be added to without touching what asks for them.

    Attributes
    ----------
    what
        What one of them is, for messages.
    folder
        Dotted name of the package in which each module holds one, which `register` is called with; the
        module is named as the class is.
    group
        Entry-point group in which other packages name theirs.
    base
        What all of them derive from, imported on demand.
    name_of
        Gives the name of a class.
    error
        What is raised.
    """

    what: str
    folder: str
    group: str
    base: Callable[[], type[Base]]
    name_of: Callable[[Any], str]
    error: type[InputError]
    _found: dict[str, type[Base]] = field(default_factory=dict)

    def register(self, given: Class) -> Class:
        """Add a class under its name; returns it, so that it can decorate one.

        Raises
        ------
        InputError
            It does not derive from the base, or another class has its name.
        """
        self._check(given)
        name = self.name_of(given)
        other: type = self._found.get(name, given)
        # A module that is imported anew brings the same class again.
        if (other.__module__, other.__qualname__) != (given.__module__, given.__qualname__):
            raise self._twice(name, other.__module__, given.__module__)
        if self.folder != given.__module__.rpartition(".")[0] and name in self._built_in():
            raise self._twice(name, self.folder, given.__module__)
        self._found[name] = given
        return given

    def _check(self, given: object) -> None:
        base = self.base()
        if not (inspect.isclass(given) and issubclass(given, base)):
            raise self.error(
                f"{given!r} is no {self.what}: it must be a class derived from "
                f"{base.__module__}.{base.__qualname__}."
            )
        if inspect.isabstract(given):
            lacking = ", ".join(sorted(getattr(given, "__abstractmethods__", ())))
            raise self.error(f"{given!r} is no {self.what}: it does not define {lacking}.")

    def names(self) -> tuple[str, ...]:
        """Return the names of all of them: built-in ones first."""
        return tuple(dict.fromkeys([*self._built_in(), *self._found, *self._entries()]))

    def get(self, name: str) -> type[Base]:
        """Return the class of a name.

        Raises
        ------
        InputError
            There is none, two packages claim the name, or the class cannot be imported.
        """
        entries = self._entries().get(name, [])
        if name in self._built_in():
            if entries:
                raise self._twice(name, self.folder, _origin(entries[0]))
            if name not in self._found:
                importlib.import_module(f"{self.folder}.{name}")
        elif len(entries) > 1:
            raise self._twice(name, *map(_origin, entries))
        elif entries and name not in self._found:
            self._load(name, entries[0])
        if name not in self._found:
            raise self.error(
                f"{name!r}: no such {self.what}.{did_you_mean(name, self.names())} There are: "
                f"{', '.join(self.names())}."
            )
        return self._found[name]

    def __iter__(self) -> Iterator[type[Base]]:
        """Yield the class of every name; see `get`."""
        return map(self.get, self.names())

    def _built_in(self) -> tuple[str, ...]:
        return _modules(self.folder)

    def _entries(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for entry in _entry_points(self.group, tuple(sys.path)):
            found.setdefault(entry.name, []).append(entry)
        return found

    def _load(self, name: str, entry: EntryPoint) -> None:
        try:
            given = self.register(entry.load())
        except InputError:
            raise
        except Exception as error:  # what the code of another package raises
            raise self.error(
                f"{name!r}: the {self.what} of {_origin(entry)} cannot be imported "
                f"({type(error).__name__}: {error}). Update that package, or uninstall it."
            ) from error
        if self.name_of(given) != name:
            raise self.error(
                f"{name!r}: the {self.what} of {_origin(entry)} calls itself "
                f"{self.name_of(given)!r}. Its entry point must have the same name."
            )

    def _twice(self, name: str, first: str, second: str) -> InputError:
        return self.error(
            f"{name!r}: two of them are a {self.what} of this name: {first} and {second}. Rename one, or "
            "uninstall its package."
        )


@cache
def _modules(folder: str) -> tuple[str, ...]:
    package = importlib.import_module(folder)
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; finding them reads a file of every package on the path."""
    return tuple(entry_points(group=group))


def _origin(entry: EntryPoint) -> str:
    package = f" of the package {entry.dist.name}" if entry.dist is not None else ""
    return f"the entry point {entry.value}{package} (group {entry.group})"
