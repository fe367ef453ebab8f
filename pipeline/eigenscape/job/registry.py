"""Methods of a table by name: each is one class, which is its options and what it does with them.

Each is a module eigenscape/TABLE/methods/NAME.py, a class that is registered, or an entry point NAME of the
group "eigenscape.TABLE" (`eigenscape.base.registry`). The module of a method is imported when a job asks for
it; so no module of a method may import heavy libraries at its top.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from eigenscape.base.footprint import Footprint
from eigenscape.base.registry import Registry
from eigenscape.errors import JobError
from eigenscape.job.choices import Choices
from eigenscape.job.scene import Options

_PACKAGE = __name__.partition(".")[0]


class MethodOptions(Options):
    """The base class of the tables with a key ``method``, which selects the class and so the other keys.

    Attributes
    ----------
    registry
        The methods of the table.
    read_with
        Keys of the class that are read only if the job also makes certain choices.
    """

    registry: ClassVar["MethodRegistry"]
    read_with: ClassVar[Mapping[str, Choices]] = {}

    method: str
    """Name of the method."""

    @abstractmethod
    def footprint(self, *args: Any, **kwargs: Any) -> Footprint:
        """Return memory and disk of the stage with this method; each table defines the arguments."""

    def needed_extra(self) -> tuple[str, str, str, str] | None:
        """Return the optional package that these options need, or None.

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
        kind = cls.registry.of_table(value)
        foreign = cls.registry.foreign(value)
        return kind.model_validate({k: v for k, v in value.items() if k not in foreign})


class MethodRegistry(Registry[MethodOptions]):
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
        super().__init__(
            what=f"method of [{table}]", folder=f"{_PACKAGE}.{table}.methods", group=f"{_PACKAGE}.{table}",
            base=f"{_PACKAGE}.{interface}", key="method", error=JobError,
        )  # fmt: skip
        self.table, self.default = table, default

    def names(self) -> tuple[str, ...]:
        """Return the names of all methods, the default first; nothing is imported for it."""
        return tuple(sorted(super().names(), key=lambda name: (name != self.default, name)))

    def of_table(self, table: Mapping[str, Any]) -> type[MethodOptions]:
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
            # The error is of a key, whose value is said before it.
            text = str(error).removeprefix(f"{name!r}: ")
            # Braces of a message are no fields of a template.
            kind = PydanticCustomError("method", "{text}", {"text": text})
            details = InitErrorDetails(type=kind, loc=("method",), input=name)
            raise ValidationError.from_exception_data(self.table, [details]) from None

    def having(self, key: str) -> dict[str, type[MethodOptions]]:
        """Return the methods that have a key."""
        return {name: kind for name, kind in self.all().items() if key in kind.model_fields}

    def foreign(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a table that its method does not have and another one has.

        Raises
        ------
        ValidationError
            See `of_table`.
        """
        unknown = {k: v for k, v in table.items() if k not in self.of_table(table).model_fields}
        return {key: value for key, value in unknown.items() if self.having(key)}
