"""Fingerprints of the code that produces results, and of what it is given."""

import ast
import hashlib
import json
import marshal
import py_compile
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from types import CodeType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_IMPORT = re.compile(
    rf"^[ \t]*(?:from ({_PACKAGE}[\w.]*) import (\([^)]*\)|[^\n]*)|import ({_PACKAGE}[\w.]*))",
    re.MULTILINE,
)

_FOLDER = re.compile(rf'folder="({_PACKAGE}[\w.]+)"')
"""Of a registry (`eigenscape.base.registry`): its modules are imported by name."""
_CHECKED_HASH = (0b11).to_bytes(4, "little")
"""Flags of a compiled file that is valid as long as the hash of its source is (PEP 552)."""
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+[^\n]*\n|\n)+", re.MULTILINE)


def content_key(value: Any) -> str:
    """Return 32 digits by which a JSON value is known, in whatever order its keys stand."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def code_fingerprint(files: Iterable[Path]) -> str:
    """Return a hash of what Python modules do, not of how they are laid out or explained.

    It is of their compiled code: comments, the text of docstrings, assertions and the place of the
    package change nothing; another minor version of Python does. Of other files it is of their bytes.

    Parameters
    ----------
    files
        Modules, and the data that they read, in an order that is always the same.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(_file_digest(file, file.stat().st_mtime_ns))
    return digest.hexdigest()


def reachable_modules(module: str, neutral: Collection[str] = ()) -> dict[str, Path]:
    """Return the modules that a module imports, directly or through others, and itself.

    They are those of this package, and of the module's own where it is part of another one.

    Imports count wherever they stand, in functions too, except those for types alone; and all modules
    of a folder that a registry takes them from. The ``__init__`` of every package on the way counts too.

    Parameters
    ----------
    module
        Dotted name; of another package it has been imported.
    neutral
        Modules and packages that do not affect any result: they are left out, and so are modules that
        only they import.

    Returns
    -------
    dict
        File of each module by its name, in the order of the names.
    """
    found: dict[str, Path] = {}
    waiting, own = [module], module.partition(".")[0]
    while waiting:
        name = waiting.pop()
        path = _file_of_any(name)
        if name in found or path is None or any(f"{name}.".startswith(f"{n}.") for n in neutral):
            continue
        found[name] = path
        if name.partition(".")[0] == _PACKAGE:
            waiting += _imports(path)
        else:
            waiting += [
                n for n in _imports_elsewhere(name, path) if n.partition(".")[0] in (own, _PACKAGE)
            ]
        waiting += [name.rpartition(".")[0]] if "." in name else []
    return dict(sorted(found.items()))


def module_in_a_file(kind: type[Any], what: str, error: type[Exception]) -> str:
    """Return the name of the module of a class.

    Parameters
    ----------
    kind
        The class, which results depend on.
    what
        What asks for it, in words.
    error
        What is raised where the class was typed in: changes of its code could not be detected.
    """
    if _file_of_any(kind.__module__) is None:
        raise error(
            f"{what}: its class {kind.__qualname__} is not defined in a file, so changes of its code cannot "
            "be detected. Put it into a module."
        )
    return kind.__module__


def data_files(modules: Iterable[Path]) -> list[Path]:
    """Return the files that modules read: those beside them, or in a folder without modules, that they name.

    Parameters
    ----------
    modules
        Files of modules.

    Returns
    -------
    list of Path
        Templates and tables, sorted.
    """
    return sorted({file for module in modules for file in _data_of(module)})


@cache
def _data_of(module: Path) -> tuple[Path, ...]:
    beside = [file for file in _data_beside(module.parent) if file.suffix != ".py"]
    text = module.read_text(encoding="utf-8") if beside else ""
    return tuple(file for file in beside if f'{file.name}"' in text)


@cache
def _data_beside(folder: Path) -> tuple[Path, ...]:
    found = []
    for entry in folder.iterdir():
        if entry.is_file():
            found.append(entry)
        elif entry.name != "__pycache__" and not (entry / "__init__.py").exists():
            found += [file for file in entry.iterdir() if file.is_file()]
    return tuple(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return the names in a file that can be modules of the package."""
    names: list[str] = []
    text = _FOR_TYPES.sub("", path.read_text(encoding="utf-8"))
    for package, members, module in _IMPORT.findall(text):
        names.append(package or module)
        names += [f"{package}.{word}" for word in re.findall(r"\w+", members)]
    for package in _FOLDER.findall(text):
        names += [
            f"{package}.{file.stem}"
            for file in package_folder().joinpath(*package.split(".")).glob("*.py")
        ]
    return tuple(names)


def package_folder() -> Path:
    """Return the folder that holds the package."""
    return Path(__file__).parents[2]


def _file_of_any(module: str) -> Path | None:
    own = module.partition(".")[0] == _PACKAGE
    return _file_of(module) if own else _file_elsewhere(module)


@cache
def _file_of(module: str) -> Path | None:
    base = package_folder().joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _file_elsewhere(module: str) -> Path | None:
    """Return the file of an imported module of another package; None where it has none."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file) if file and file.endswith(".py") else None


def _imports_elsewhere(module: str, path: Path) -> Iterator[str]:
    """Yield the names in a file of another package that can be modules; its imports may be relative."""
    inside = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = inside.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def _file_digest(file: Path, changed: int) -> bytes:
    if file.suffix != ".py":
        return hashlib.sha256(file.read_bytes()).digest()
    # Version 2 has no references between objects, which differ from call to call.
    return hashlib.sha256(marshal.dumps(_without_place(_compiled(file)), 2)).digest()


def _compiled(file: Path) -> CodeType:
    """Return the code of a module without docstrings and assertions.

    It is kept where `python -OO` keeps it, with a hash of its text: most commands compile nothing.
    """
    source = file.read_bytes()
    kept = Path(cache_from_source(str(file), optimization=2))
    head = MAGIC_NUMBER + _CHECKED_HASH + source_hash(source)
    with suppress(OSError, EOFError, TypeError, ValueError):  # absent or damaged
        content = kept.read_bytes()
        if content.startswith(head) and isinstance(code := marshal.loads(content[16:]), CodeType):
            return code
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            py_compile.compile(
                str(file), str(kept), doraise=True, optimize=2,
                invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
            )  # fmt: skip
    return compile(source, "", "exec", dont_inherit=True, optimize=2)


def _without_place(code: CodeType) -> CodeType:
    constants = tuple(
        _without_place(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_consts=constants, co_filename="", co_firstlineno=1, co_linetable=b"")
