"""The workspace of one stage until its commit: arrays, files, scratch and journal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from eigenscape.base.files.ledger import complete, recorded_by
from eigenscape.base.process.namedpoints import reached
from eigenscape.store.arrays import chunk_rows, write_rows
from eigenscape.store.journal import Journal


class Workspace:
    """The directory in which one stage works until its commit.

    Parameters
    ----------
    path
        The directory; it is created if necessary.

    Attributes
    ----------
    path
        The directory. Arrays (``store``) and files (``files``) are moved by the commit; the rest is deleted.
    journal
        Finished blocks, and the checksums of their files.
    recording
        Whether checksums are recorded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for part in ("store", "files", "scratch"):
            (path / part).mkdir(parents=True, exist_ok=True)
        self.journal = Journal(path)
        self.recording = False

    def create_array(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        whole: bool = False,
        **attributes: Any,
    ) -> str:
        """Create the zarr array `name` unless an earlier attempt did; return its path.

        Parameters
        ----------
        name
            Path in the store, for example ``"features/values"``.
        shape, dtype
            As in NumPy; the first axis is the one that is chunked.
        whole
            Store it as one uncompressed chunk, which `open_memmap` can map.
        attributes
            Attributes of the array; ``dims`` names its axes.
        """
        import zarr

        path = self.array_path(name)
        if not (path / "zarr.json").exists():
            width = int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize
            rows = shape[0] if whole else chunk_rows(shape[0], width)
            chunks = (max(1, min(rows, shape[0])), *(max(1, size) for size in shape[1:]))
            dims = attributes.pop("dims", None)
            zarr.create_array(
                store=str(path),
                shape=tuple(shape),
                dtype=np.dtype(dtype),
                chunks=chunks,
                compressors=None,
                dimension_names=dims,
                attributes=attributes,
                fill_value=0,
                overwrite=True,
            )
            reached("array created", path)
            complete(path / "zarr.json")
        return str(path)

    def write_array(
        self, name: str, values: NDArray[Any], *, whole: bool = False, **attributes: Any
    ) -> str:
        """Create an array, write all of it, and return its path: one that needs no task, as it is in memory.

        Parameters
        ----------
        name, whole, attributes
            See `create_array`.
        values
            The array, with its dtype.
        """
        path = self.create_array(name, values.shape, values.dtype, whole=whole, **attributes)
        write_rows(path, 0, values)
        return path

    def array_path(self, name: str) -> Path:
        """Return where the array `name` lies until the stage commits."""
        return self.path / "store" / name

    def folder(self, name: str) -> Path:
        """Return a scratch folder, made if need be."""
        path = self.path / "scratch" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def file(self, name: str) -> Path:
        """Return where to write a file that the commit moves to ``outputs/``."""
        reached("output begins", name)
        return self.path / "files" / name

    def finished_blocks(self) -> dict[str, Any]:
        """Return the results of the blocks that earlier attempts finished, by block name."""
        return dict(self.journal.blocks)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record checksums of all data that this thread and its tasks write inside the context.

        A stage that is never resumed needs no checksums.
        """
        self.recording = True
        with recorded_by(self.journal):
            yield

    def sums(self) -> dict[str, str]:
        """Return the checksums of all arrays and files, by their path in the run directory."""
        found = {}
        for part, place in (("store", "store.zarr"), ("files", "outputs")):
            for path in sorted((self.path / part).rglob("*")):
                if path.is_file() and _belongs(path.relative_to(self.path / part)):
                    name = path.relative_to(self.path).as_posix()
                    found[place + name.removeprefix(part)] = self.journal.sum_of(name)
        return found

    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays made so far."""
        root = self.path / "store"
        return tuple(sorted(str(path.parent.relative_to(root)) for path in root.rglob("zarr.json")))

    def files(self) -> tuple[str, ...]:
        """Return the names of the complete output files; files that a killed writer began are left out."""
        names = (path.name for path in (self.path / "files").iterdir())
        return tuple(sorted(name for name in names if not name.startswith(".")))


def _belongs(path: Path) -> bool:
    """Return whether a file is one of the stage: hidden ones are the metadata of Zarr v2, or leftovers."""
    hidden = [part for part in path.parts if part.startswith(".")]
    return not hidden or (
        len(path.parts) > 1 and hidden == [path.name] and path.name.startswith(".z")
    )
