"""The directory of a fitted estimator's run, kept while it is in use."""

import io
import os
import shutil
import tarfile
import tempfile
import weakref
from pathlib import Path
from typing import Any

from eigenscape.base.files.temporary import SHARED, remove_own, temporary_place
from eigenscape.base.files.whole import explain_write_errors
from eigenscape.base.memory import format_bytes
from eigenscape.errors import EstimatorError
from eigenscape.workflow.finished.lazy import lazy_array

SMALL_BYTES = 4 * 2**20
"""Samples up to this size make a small run."""

_ROOM = 2**28
"""Bytes that must stay free there."""

_SAFE: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Options that keep an archive from writing outside of its directory; Python 3.11 has it from 3.11.4 on."""


class RunFolder:
    """A directory for one run: kept where the user asks for it, otherwise deleted with its owner.

    A folder that would be deleted goes into pickles with all its files; one that is kept goes as its
    path.

    Parameters
    ----------
    parent
        Directory in which it is made; None for the system's place for temporary files, or for small
        runs for its shared memory, where hundreds of small files take half of the time.
    small
        Whether it will hold a few megabytes.
    name
        First part of its name, such as that of the estimator.

    Attributes
    ----------
    path
        The directory.
    temporary
        Whether it is deleted with this object.
    """

    path: Path
    temporary: bool

    def __init__(
        self, parent: str | Path | None = None, *, small: bool = False, name: str = "run"
    ) -> None:
        self.temporary = parent is None
        self._name = name
        if parent is not None:
            with explain_write_errors(Path(parent)):
                Path(parent).mkdir(parents=True, exist_ok=True)
                self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent)).resolve()
        else:
            self._make(small)

    def _make(self, small: bool) -> None:
        roomy = small and SHARED.is_dir() and shutil.disk_usage(SHARED).free > _ROOM
        place = temporary_place(SHARED if roomy else None)
        self.path = Path(tempfile.mkdtemp(prefix=f"{self._name}-", dir=place))
        weakref.finalize(self, remove_own, self.path, os.getpid())

    def check_room(self, needed: int) -> None:
        """Refuse a fit that would fill the disk of temporary files.

        Parameters
        ----------
        needed
            Bytes that the run is projected to take at most.

        Raises
        ------
        EstimatorError
            There are fewer, with both numbers and the fix.
        """
        free = shutil.disk_usage(self.path).free
        if self.temporary and needed > free:
            raise EstimatorError(
                f"directory = None: the fit is projected to take up to {format_bytes(needed)} below "
                f"{self.path.parent}, where {format_bytes(free)} are free. Set directory to one on a "
                "larger disk."
            )

    def held(self) -> "HeldPath":
        """Return the path as something to hand to lazy tasks."""
        return HeldPath(self, self.path)

    def trim(self) -> None:
        """Delete the samples, which only a fit reads, if the folder is not kept."""
        if self.temporary:
            shutil.rmtree(self.path / "store.zarr" / "samples" / "values", ignore_errors=True)

    def __getstate__(self) -> dict[str, Any]:
        if not self.temporary:
            return {"path": self.path}
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.add(self.path, ".")
        return {"files": stream.getvalue(), "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.temporary = "files" in state
        self._name = state.get("name", "run")
        if not self.temporary:
            self.path = state["path"]
            return
        self._make(len(state["files"]) < SMALL_BYTES)
        with tarfile.open(fileobj=io.BytesIO(state["files"])) as archive:
            archive.extractall(self.path, **_SAFE)


class HeldPath:
    """The path of a run's array or directory, whose folder stays while this object does.

    In another process it is the path alone: the owner of the files is here.
    """

    def __init__(self, folder: RunFolder, path: Path) -> None:
        self.folder, self.path = folder, path

    def __fspath__(self) -> str:
        return str(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Path, (str(self.path),)


def read_lazily(folder: RunFolder, path: Path) -> Any:
    """Return a zarr array of a run as a dask array that keeps its folder."""
    return lazy_array(HeldPath(folder, path))
