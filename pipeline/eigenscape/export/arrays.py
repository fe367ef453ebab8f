"""A run as export reads it: the one whose export stage is at work, or a finished one."""

import tempfile
from pathlib import Path
from typing import Any, Protocol

from eigenscape.base.files.temporary import temporary_place
from eigenscape.base.process.progress import Reporter


class StageRecord(Protocol):
    """The entry of a finished stage: an `eigenscape.store.manifest.Record`."""

    @property
    def seconds(self) -> float:
        """Time that it took."""
        ...

    @property
    def peak_bytes(self) -> int:
        """Memory that it held at most."""
        ...

    @property
    def summary(self) -> dict[str, Any]:
        """What it says of its result."""
        ...


class RunDirectory(Protocol):
    """A run directory: an `eigenscape.store.run.Run`."""

    @property
    def path(self) -> Path:
        """The directory."""
        ...

    @property
    def manifest(self) -> dict[str, Any]:
        """What is finished."""
        ...

    def record(self, stage: str) -> StageRecord | None:
        """Return the record of a finished stage."""
        ...

    def array_path(self, name: str) -> Path:
        """Return the directory of an array."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        ...

    def open(self, name: str) -> Any:
        """Open an array for reading."""
        ...


class Folders(Protocol):
    """Folders for what is not kept: an `eigenscape.store.workspace.Workspace`, or `TemporaryFolders`."""

    def folder(self, name: str) -> Path:
        """Return a folder, made if it is not there."""
        ...


class TemporaryFolders:
    """Folders that are deleted when nothing refers to this object any more."""

    def __init__(self) -> None:
        self._parent: tempfile.TemporaryDirectory[str] | None = None

    def folder(self, name: str) -> Path:
        """Return a folder, made if it is not there."""
        if self._parent is None:
            self._parent = tempfile.TemporaryDirectory(dir=temporary_place())
        path = Path(self._parent.name, name)
        path.mkdir(exist_ok=True)
        return path


class Arrays(Protocol):
    """The arrays of a run: an `eigenscape.context.Context`, or a finished run."""

    @property
    def run(self) -> RunDirectory:
        """The run directory."""
        ...

    @property
    def reporter(self) -> Reporter:
        """Where progress is reported."""
        ...

    @property
    def workspace(self) -> Folders:
        """Where arrays are copied to, of which any sample is to be taken."""
        ...

    def open(self, name: str) -> Any:
        """Open a zarr array."""
        ...
