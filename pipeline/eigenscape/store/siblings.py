"""Finished stages of runs beside one another: a stage is taken over by its key."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from eigenscape.errors import StoreError
from eigenscape.store.manifest import read_manifest
from eigenscape.store.run import Run


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
        self._known: dict[Path, tuple[tuple[int, int], dict[str, str]]] = {}

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
            if path != exclude and self._keys(path).get(stage) == key:
                try:
                    yield Run(path, create=False)
                except (OSError, StoreError):
                    continue  # it was damaged or deleted this moment

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
                self._known[path] = (version, _finished_keys(path))
        return [path for _, path in sorted(versions, reverse=True)]

    def _keys(self, path: Path) -> dict[str, str]:
        return self._known[path][1]


def beside(path: Path) -> Siblings:
    """Return the runs in the directory that holds a run."""
    return Siblings(path.parent.iterdir)


def _finished_keys(path: Path) -> dict[str, str]:
    try:
        stages = read_manifest(path)["stages"]
    except (OSError, StoreError):
        return {}  # damaged or of another version: not ours to judge here
    return {name: record["key"] for name, record in stages.items()}
