"""Finished stages of runs beside one another: a stage is taken over by its key."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from eigenscape.errors import StoreError
from eigenscape.store.run import Run

_KEY = re.compile(rb'"key": *"(\w+)"')
"""In a manifest. The sum over its content is checked for those alone that are opened: it takes thirty times
as long as to look for keys, and a thousand runs may lie beside one another."""


class Siblings:
    """Run directories that may share finished stages, and the finished stages of each.

    Manifests are read once, and again when they change: a study looks for every stage of every
    variant.

    Parameters
    ----------
    directories
        Lists the directories as they are now; those without a manifest are no runs.
    """

    def __init__(self, directories: Callable[[], Iterable[Path]]) -> None:
        self._directories = directories
        self._known: dict[Path, tuple[tuple[int, int], Collection[bytes]]] = {}

    def find(self, stage: str, key: str, *, exclude: Path) -> Iterator[Run]:
        """Yield the runs that have finished a stage with this key, the newest first.

        Parameters
        ----------
        stage, key
            See `Run.is_finished`.
        exclude
            The run itself, which is no sibling.
        """
        for path in self._newest_first():
            if path != exclude and key.encode() in self._known[path][1]:
                try:
                    sibling = Run(path, create=False)
                except (OSError, StoreError):
                    continue  # it is damaged, of another version, or was deleted this moment
                if sibling.is_finished(stage, key):
                    yield sibling

    def _newest_first(self) -> list[Path]:
        versions = []
        try:
            for path in self._directories():
                try:
                    state = (path / "manifest.json").stat()
                except OSError:
                    continue
                versions.append(((state.st_mtime_ns, state.st_ino), path))
        except OSError:
            return []  # the parent is not there yet
        for version, path in versions:
            if self._known.get(path, (None,))[0] != version:
                self._known[path] = (version, _keys(path))
        return [path for _, path in sorted(versions, reverse=True)]


def beside(path: Path) -> Siblings:
    """Return the runs in the directory that holds a run."""
    return Siblings(path.parent.iterdir)


def _keys(path: Path) -> Collection[bytes]:
    """Return the keys that a manifest names."""
    try:
        return frozenset(_KEY.findall((path / "manifest.json").read_bytes()))
    except OSError:
        return ()
