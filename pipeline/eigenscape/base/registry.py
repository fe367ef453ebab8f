"""Classes by name: methods of a table, kinds of cluster, readers of scenes, output formats.

A class is found in one of three places:

::

    folder      clusters/kinds/slurm.py                            "-" of the name is "_" of the file's
    call        @eigenscape.register                               above the class
    other       [project.entry-points."eigenscape.clusters"]       polite = "mine:Polite"

Nothing is imported to list the names; the module of a class is imported when its name is asked for.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar, get_args

from eigenscape.errors import InputError, did_you_mean

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type[Any])


@dataclass(frozen=True)
class Additions:
    """The objects that installed packages add, from the entry points of a group.

    Attributes
    ----------
    what
        Name of such an object in messages, such as "method".
    group
        The group of entry points.
    error
        Class of the errors that are raised.
    """

    what: str
    group: str
    error: type[InputError]

    def by_name(self) -> dict[str, list[EntryPoint]]:
        """Return the entry points of each name; nothing is imported for it."""
        return _entry_points(self.group, tuple(sys.path))

    def load(self, entry: EntryPoint) -> Any:
        """Return the object of an entry point.

        Raises
        ------
        InputError
            It cannot be imported.
        """
        try:
            return entry.load()
        except Exception as error:  # what the code of another package raises
            raise self.unusable(entry, error) from error

    def unusable(self, entry: EntryPoint, error: Exception) -> InputError:
        """Return the error to raise for an object of a package that cannot be used."""
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        return self.error(
            f"{entry.name!r}: the {self.what} of {origin_of(entry)} cannot be used ({reason}). Update that "
            "package, correct its entry point, or uninstall it."
        )

    def misplaced(self, name: str) -> str:
        """Return a sentence about an entry point of that name in another group of ours, or an empty text."""
        found = _all_entry_points(tuple(sys.path)).select(name=name)
        for entry in found:
            if entry.group.startswith("eigenscape."):
                return f" There is {origin_of(entry)}; the group of a {self.what} is {self.group}."
        return ""

    def twice(self, name: str, first: str, second: str) -> InputError:
        """Return the error to raise for a name that two of them have."""
        return self.error(
            f"{name!r}: two of them are a {self.what} of this name: {first} and {second}. Rename one, or "
            "uninstall its package."
        )


class Registry(Generic[Base]):
    """Classes that can be added to without touching what asks for them.

    Parameters
    ----------
    what
        What one of them is, for messages.
    folder
        Dotted name of the package that holds the built-in ones: each of its modules one, which has the
        name of the module.
    group
        Entry-point group in which other packages name theirs.
    base
        What all of them derive from, as "MODULE:NAME"; imported on demand. It has the registry as its
        attribute ``registry``.
    key
        The attribute, or the field of a model, whose value is the name of a class.
    error
        What is raised.
    """

    def __init__(
        self, *, what: str, folder: str, group: str, base: str, key: str, error: type[InputError]
    ) -> None:
        self.what, self.folder, self.base, self.key, self.error = what, folder, base, key, error
        self.additions = Additions(what, group, error)
        self._registered: dict[str, type[Base]] = {}
        self._own: dict[str, type[Base]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all of them, built-in ones first; nothing is imported for it."""
        names = [*_modules(self.folder), *self._registered, *self.additions.by_name()]
        return tuple(dict.fromkeys(names))

    def find(self, name: str) -> type[Base]:
        """Return the class of a name.

        Raises
        ------
        InputError
            There is none, two packages claim the name, or the class of a package cannot be used.
        """
        entries = self.additions.by_name().get(name, [])
        if name in _modules(self.folder):
            if entries:
                raise self.additions.twice(name, self.folder, origin_of(entries[0]))
            return self._of_module(name)
        if len(entries) > 1:
            raise self.additions.twice(name, *map(origin_of, entries[:2]))
        if name in self._registered:
            return self._registered[name]
        if entries:
            return self._of_entry(entries[0])
        raise self.error(
            f"{name!r}: no such {self.what}.{did_you_mean(name, self.names())} There are: "
            f"{', '.join(self.names())}.{self.additions.misplaced(name)}"
        )

    def __iter__(self) -> Iterator[type[Base]]:
        """Yield the class of every name; see `find`."""
        return map(self.find, self.names())

    def all(self) -> dict[str, type[Base]]:
        """Return every class by name, without those of packages that cannot be used."""
        found = {}
        for name in self.names():
            try:
                found[name] = self.find(name)
            except self.error:  # said where the name is asked for
                continue
        return found

    def register(self, given: Class) -> Class:
        """Add a class; see the function `register`."""
        name = self.check(given)
        other: type = self._registered.get(name, given)
        # The same class again: a notebook cell that is run once more, a module that is reloaded.
        if (other.__module__, other.__qualname__) != (given.__module__, given.__qualname__):
            raise self.additions.twice(name, other.__module__, given.__module__)
        if name in _modules(self.folder):
            if given.__module__ != self._home(name):
                raise self.additions.twice(name, self.folder, given.__module__)
        else:
            self._registered[name] = given
        return given

    def check(self, given: Any) -> str:
        """Return the name of a class that can be one of them.

        Raises
        ------
        InputError
            It does not derive from the base, defines too little, or has no name.
        """
        module, _, attribute = self.base.partition(":")
        base = getattr(importlib.import_module(module), attribute)
        shown, place = (
            f"{given!r} is not a valid {self.what}",
            f"{base.__module__}.{base.__qualname__}",
        )
        if not (inspect.isclass(given) and issubclass(given, base)):
            raise self.error(f"{shown}: it must be a class derived from {place}.")
        if inspect.isabstract(given):
            lacking = ", ".join(sorted(getattr(given, "__abstractmethods__", ())))
            raise self.error(f"{shown}: it does not define {lacking}.")
        name = self._name_of(given)
        if not isinstance(name, str):
            raise self.error(f'{shown}: it has no name. Give it {self.key} = "NAME".')
        field = self._field_of(given)
        if field is not None and get_args(field.annotation) != (name,):
            raise self.error(
                f"{shown}: its name may be changed by a job. Write "
                f'{self.key}: Literal["{name}"] = "{name}".'
            )
        return name

    def _name_of(self, given: type[Any]) -> object:
        field = self._field_of(given)
        return getattr(given, self.key, None) if field is None else field.default

    def _field_of(self, given: type[Any]) -> Any:
        """Return the field of a model that holds the name; None of a class that is no model."""
        return getattr(given, "model_fields", {}).get(self.key)

    def _home(self, name: str) -> str:
        return f"{self.folder}.{name.replace('-', '_')}"

    def _of_module(self, name: str) -> type[Base]:
        module = importlib.import_module(self._home(name))
        known = self._own.get(name)
        # Not if the module was loaded again.
        if known is not None and vars(module).get(known.__name__) is known:
            return known
        for given in vars(module).values():
            own = inspect.isclass(given) and given.__module__ == module.__name__
            if own and self._name_of(given) == name:
                self._own[name] = given
                return self._own[name]
        raise TypeError(f"{module.__name__} has no class whose {self.key} is {name!r}")

    def _of_entry(self, entry: EntryPoint) -> type[Base]:
        given: type[Base] = self.additions.load(entry)
        try:
            name = self.check(given)
        except InputError as error:
            raise self.additions.unusable(entry, error) from error
        if name != entry.name:
            raise self.error(
                f"{entry.name!r}: the {self.what} of {origin_of(entry)} has the name {name!r}. Its entry "
                "point must have the same name."
            )
        return given


def register(given: Class) -> Class:
    """Add a method, a kind of cluster, a reader of scenes or an output format, for job and cluster files.

    Parameters
    ----------
    given
        The class, which contains its name. A method derives from `eigenscape.features.method.FeatureMethod`,
        or from the interface of another table, and has ``method: Literal["NAME"] = "NAME"``; a kind of
        cluster derives from `eigenscape.clusters.ClusterOptions` and has ``kind``; a reader derives from
        `eigenscape.scenes.Reader` and has ``name = "NAME"``; an output format derives from
        `eigenscape.export.Format` and has ``name``. A process that unpickles an object of the class imports
        its module, which registers the class there.

    Returns
    -------
    type
        The same class, so that the function can be used as a decorator.

    Raises
    ------
    InputError
        The class is incomplete, or another class has the same name.

    Examples
    --------
    Built-in classes are already registered. Your own class is registered in the same way, or with the
    decorator ``@eigenscape.register``.

    >>> import eigenscape
    >>> from eigenscape.learn.methods.centroid_angle import CentroidAngle
    >>> eigenscape.register(CentroidAngle).__name__
    'CentroidAngle'
    """
    registry = getattr(given, "registry", None)
    if not isinstance(registry, Registry):
        raise InputError(
            f"{given!r} is not a method, a kind of cluster, a reader of scenes or an output format: it must "
            "derive from the method of a table, eigenscape.clusters.ClusterOptions, "
            "eigenscape.scenes.Reader or eigenscape.export.Format."
        )
    return registry.register(given)


def origin_of(entry: EntryPoint) -> str:
    """Return where an entry point is declared, for messages."""
    package = f" of the package {entry.dist.name}" if entry.dist is not None else ""
    return f"the entry point {entry.value}{package} (group {entry.group})"


@cache
def _modules(folder: str) -> tuple[str, ...]:
    """Return the names that the modules of a package stand for."""
    spec = find_spec(folder)
    assert spec is not None, folder
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return tuple(module.name.replace("_", "-") for module in modules)


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in _all_entry_points(path).select(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found


@cache
def _all_entry_points(path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of all groups: finding them reads a file of every package of the path."""
    found = entry_points()
    return EntryPoints(entry for group in found.groups for entry in found.select(group=group))
