"""Readers of scenes: each says which paths it takes, and opens them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, cast

from eigenscape.base.fingerprint import module_in_a_file
from eigenscape.base.registry import Registry
from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.types import Scene

_KEYS = ("layout", "variable", "bad_bands", "scale", "nodata")
"""Of ``[scene]``, that nobody but the reader can apply."""
_ALSO_DROPPED = ", which has the bands of scene.drop_wavelengths too"

Resolve = Callable[[str], str]
"""Turns a path of the job into an absolute one; URLs stay as they are."""


READERS: Registry["Reader"] = Registry(
    what="reader of scenes", folder="eigenscape.scenes.readers", group="eigenscape.readers",
    base="eigenscape.scenes.reading:Reader", key="name", error=SceneError,
)  # fmt: skip
"""All of them; packages add theirs by the entry-point group ``eigenscape.readers``."""


class Reader(ABC):
    """A reader of scenes in one file or directory.

    A reader derives from this class and is registered (`eigenscape.register`).
    """

    registry: ClassVar[Registry["Reader"]] = READERS
    name: ClassVar[str]
    """Of the reader, as its file or entry point is called."""
    priority: ClassVar[int] = 10
    """Readers of a higher one are asked before: those of the package have 0 (GDAL, which takes all that is
    left) or 20 and more."""
    columns: ClassVar[bool] = False
    """Whether ``scene.columns`` has a meaning for it."""

    @abstractmethod
    def recognises(self, path: str) -> bool:
        """Return whether it takes a path: by its ending, its directory or the first bytes of the file.

        Parameters
        ----------
        path
            A path that is there, or a URL.
        """

    @abstractmethod
    def open(self, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
        """Open a scene by its header; see `Scene` for what is returned.

        Parameters
        ----------
        path
            A path that it takes.
        options
            ``[scene]`` of the job: the reader refuses keys that have no meaning for it.
        resolve
            Makes other paths of the job absolute.

        Raises
        ------
        SceneError
            The file cannot be used.
        """

    def variable(self, path: str, options: SceneOptions) -> str | None:
        """Return the name of the array that a scene is taken from; None where there is nothing to choose."""
        return None

    def files(self, path: str) -> tuple[str, ...] | None:
        """Return every file that a scene is read from, or None.

        With None, these are the file of the path and its side-cars of the same stem and, for a
        reader of another package, `Scene.files` of the opened scene.
        """
        return None


def find_reader(path: str) -> Reader:
    """Return the reader of a path: of those that take it, the one of the highest priority.

    Raises
    ------
    SceneError
        A reader of another package cannot be imported, or a file is damaged so that none can say.
    """
    from eigenscape.scenes.sensors.product import PRODUCTS

    kinds: tuple[type[Reader], ...] = (*READERS, *PRODUCTS)
    ordered = sorted(kinds, key=lambda reader: (-reader.priority, reader.name))
    found = (reader() for reader in ordered)
    return next(reader for reader in found if _takes(reader, path))


def _takes(reader: Reader, path: str) -> bool:
    try:
        return reader.recognises(path)
    except SceneError:
        raise
    except Exception as error:  # what the code of another package raises
        raise SceneError(
            f"{path}: the reader {reader.name!r} of {type(reader).__module__} fails when it is asked "
            f"whether it takes it ({type(error).__name__}: {error}). Update or uninstall its package."
        ) from error


def open_by(reader: Reader, path: str, options: SceneOptions, resolve: Resolve) -> Scene:
    """Open a scene by a reader; one of another package must look at every key that a job sets for it.

    Raises
    ------
    SceneError
        The file cannot be used, or the reader has left out a key: its scene would be another one than was
        asked for.
    """
    if not _is_foreign(reader):
        return reader.open(path, options, resolve)
    seen = _Seen(options)
    scene = reader.open(path, cast("SceneOptions", seen), resolve)
    for key in _KEYS:
        value = getattr(options, key)
        if value != SceneOptions.model_fields[key].default and key not in seen.keys:
            raise SceneError(
                f"scene.{key} = {value!r}: the reader {reader.name!r} of {type(reader).__module__} does not "
                f"read this key{_ALSO_DROPPED * (key == 'bad_bands')}. Leave it out, or have the reader "
                "apply it."
            )
    return scene


class _Seen:
    """The keys of ``[scene]`` for a reader; it notes which of them are read."""

    def __init__(self, options: SceneOptions) -> None:
        self._options = options
        self.keys: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        # Methods, such as `model_copy`, hand on all keys.
        self.keys.update([name] if name in SceneOptions.model_fields else _KEYS)
        return getattr(self._options, name)


def _is_foreign(reader: Reader) -> bool:
    return not type(reader).__module__.startswith(f"{type(reader).registry.folder}.")


def foreign_module(reader: Reader) -> str | None:
    """Return the module of a reader of another package, None for one that comes with this package.

    Raises
    ------
    SceneError
        Its class was typed in.
    """
    if not _is_foreign(reader):
        return None
    return module_in_a_file(type(reader), f"The reader {reader.name!r}", SceneError)
