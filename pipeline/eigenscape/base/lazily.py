"""Names of a package that are imported when they are used first (PEP 562)."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names and modules are there on demand.

    Parameters
    ----------
    package
        Its ``__name__``.
    homes
        The module below the package that each public name comes from.
    modules
        Its documented modules. Others are found too, and not listed.
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        whole = f"{package}.{name}"
        if not name.startswith("_") and importlib.util.find_spec(whole) is not None:
            return importlib.import_module(whole)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *modules})

    return find, listed
