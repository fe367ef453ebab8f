"""Methods of a table by name: each is one class, which is its options and what it does with them.

A method is found by its name, in this order:

::

    built in     the module eigenscape/TABLE/methods/NAME.py, "-" written as "_"
    registered   by `register`, as a decorator of the class
    elsewhere    an entry point NAME of the group "eigenscape.TABLE" of an installed package

Nothing is imported to list the names; the module of a method is imported when a job asks for it. So no
module of a method may import heavy libraries at its top.
"""

import importlib
import inspect
import pkgutil
import sys
from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from eigenscape.base.footprint import Footprint
from eigenscape.errors import JobError, did_you_mean
from eigenscape.job.choices import Choices
from eigenscape.job.scene import Options

_PACKAGE = __name__.partition(".")[0]


class MethodOptions(Options):
    """A table of a job whose key ``method`` says which class it is: its keys, and what is done.

    Attributes
    ----------
    registry
        The methods of the table.
    read_with
        Own keys that are read only where the job has made certain choices besides.
    """

    registry: ClassVar["Registry"]
    read_with: ClassVar[Mapping[str, Choices]] = {}

    method: str
    """Name of the method."""

    @abstractmethod
    def footprint(self, *args: Any, **kwargs: Any) -> Footprint:
        """Return what the stage takes with this method; each table says of what."""

    def needed_extra(self) -> tuple[str, str, str, str] | None:
        """Return what has to be installed for these options, None for nothing.

        Returns
        -------
        tuple
            Module, its package, the extra that brings it, and the key that needs it.
        """
        return None

    @model_validator(mode="wrap")
    @classmethod
    def _by_name(cls, value: Any, handler: ModelWrapValidatorHandler["MethodOptions"]) -> Any:
        """Let the class of the method check a table; keys of other methods are passed over."""
        if not isinstance(value, Mapping) or not cls.model_fields["method"].is_required():
            return handler(value)
        kind = cls.registry.kind(value)
        foreign = cls.registry.foreign(value)
        return kind.model_validate({k: v for k, v in value.items() if k not in foreign})


Kind = TypeVar("Kind", bound=type[MethodOptions])


class Registry:
    """The methods of a table.

    Parameters
    ----------
    table
        Name of the table, of the package in which the built-in methods are, and of the group of
        entry points: "eigenscape.TABLE".
    default
        Method of a job that names none.
    interface
        Class that every method derives from, as "MODULE:NAME" below `eigenscape`.
    """

    def __init__(self, table: str, *, default: str, interface: str) -> None:
        self.table, self.default, self._interface = table, default, interface
        self.package = f"{_PACKAGE}.{table}.methods"
        self.group = f"{_PACKAGE}.{table}"
        self._registered: dict[str, type[MethodOptions]] = {}

    def names(self) -> list[str]:
        """Return the names of all methods, the default first; nothing is imported for it."""
        found = {*self._built_in(), *self._registered, *self._entries()}
        return sorted(found, key=lambda name: (name != self.default, name))

    def find(self, name: str) -> type[MethodOptions]:
        """Return the class of a method.

        Raises
        ------
        JobError
            There is none of that name, or that of another package cannot be used.
        """
        if name in self._built_in():
            return self._of_module(name)
        if name in self._registered:
            return self._registered[name]
        entries = self._entries().get(name, [])
        if len(entries) == 1:
            return self._of_entry(entries[0])
        if entries:
            raise JobError(
                f'{self.table}.method = "{name}": the packages '
                f"{' and '.join(map(_package_of, entries))} both bring a method of that name. "
                "Uninstall one of them."
            )
        names = self.names()
        question = did_you_mean(name, names, shown='"{}"')
        listed = ", ".join(f'"{each}"' for each in names)
        raise JobError(f"no such method.{question} Methods: {listed}")

    def kind(self, table: Mapping[str, Any]) -> type[MethodOptions]:
        """Return the class of the method that a table names.

        Raises
        ------
        ValidationError
            Of the key ``method``: no text, or no method.
        """
        name = table.get("method", self.default)
        try:
            if not isinstance(name, str):
                raise JobError("input should be a valid string")
            return self.find(name)
        except JobError as error:
            # Braces of a message are no fields of a template.
            kind = PydanticCustomError("method", "{text}", {"text": str(error)})
            details = InitErrorDetails(type=kind, loc=("method",), input=name)
            raise ValidationError.from_exception_data(self.table, [details]) from None

    def all(self) -> dict[str, type[MethodOptions]]:
        """Return every method by name, without those of packages that are broken."""
        found = {}
        for name in self.names():
            try:
                found[name] = self.find(name)
            except JobError:
                if name in self._built_in():
                    raise
        return found

    def having(self, key: str) -> dict[str, type[MethodOptions]]:
        """Return the methods that have a key."""
        return {name: kind for name, kind in self.all().items() if key in kind.model_fields}

    def foreign(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a table that its method does not have and another one has.

        Raises
        ------
        ValidationError
            See `kind`.
        """
        unknown = {k: v for k, v in table.items() if k not in self.kind(table).model_fields}
        return {key: value for key, value in unknown.items() if self.having(key)}

    def register(self, kind: type[MethodOptions]) -> None:
        """Add a method; see the function `register`."""
        name = self._check(kind, kind.__qualname__)
        before = self._registered.get(name)
        # The same class again: a notebook cell that is run once more, a module that is reloaded.
        same = before is not None and before.__qualname__ == kind.__qualname__
        if name in self._built_in() or (before is not None and not same):
            raise TypeError(f'{self.table}.method = "{name}" is there: give the class another name')
        self._registered[name] = kind

    def _built_in(self) -> list[str]:
        spec = find_spec(self.package)
        assert spec is not None, self.package
        modules = pkgutil.iter_modules(spec.submodule_search_locations)
        return [found.name.replace("_", "-") for found in modules]

    def _of_module(self, name: str) -> type[MethodOptions]:
        module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        for kind in vars(module).values():
            if not inspect.isclass(kind) or not issubclass(kind, MethodOptions):
                continue
            if kind.__module__ == module.__name__ and kind.model_fields["method"].default == name:
                return kind
        raise TypeError(f"{module.__name__} has no class whose method is {name!r}")

    def _entries(self) -> dict[str, list[EntryPoint]]:
        return _entries_of(self.group, tuple(sys.path))

    def _of_entry(self, entry: EntryPoint) -> type[MethodOptions]:
        place = f'{self.table}.method = "{entry.name}": the package {_package_of(entry)}'
        try:
            kind = entry.load()
            name = self._check(kind, entry.value)
        except Exception as error:
            raise JobError(
                f"{place} brings it as {entry.value}, which cannot be used "
                f"({type(error).__name__}: {error}). Mend or uninstall the package."
            ) from error
        if name != entry.name:
            raise JobError(
                f'{place} calls it so, and {entry.value} calls itself "{name}". Mend the package.'
            )
        loaded: type[MethodOptions] = kind
        return loaded

    def _check(self, kind: Any, place: str) -> str:
        """Return the name of a method that is no part of this package, checked.

        Raises
        ------
        TypeError
            It is no class of that kind, or lacks something.
        """
        module, _, name = self._interface.partition(":")
        interface: type[MethodOptions]
        interface = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)
        if not inspect.isclass(kind) or not issubclass(kind, interface):
            raise TypeError(f"{place} does not derive from {interface.__module__}.{name}")
        if inspect.isabstract(kind):
            lacking = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
            raise TypeError(f"{place} lacks {lacking}")
        called = kind.model_fields["method"].default
        if not isinstance(called, str):
            raise TypeError(f'{place} has no name: give it method: Literal["NAME"] = "NAME"')
        return called


def register(kind: Kind) -> Kind:
    """Add a method to those that jobs can name.

    Parameters
    ----------
    kind
        A class that derives from `eigenscape.features.method.FeatureMethod`, or another interface of a
        table, and says its name: ``method: Literal["NAME"] = "NAME"``. A process that unpickles an object
        of the class imports its module, and has it registered by that.

    Returns
    -------
    type
        The same class: for use as a decorator.

    Raises
    ------
    TypeError
        It lacks something, or its name is taken.
    """
    registry = getattr(kind, "registry", None)
    if not isinstance(registry, Registry):
        raise TypeError(f"{kind!r} is no class of a method")
    registry.register(kind)
    return kind


@cache
def _entries_of(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name; all packages of the path are read for it."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, []).append(entry)
    return found


def _package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value.partition(".")[0]
