"""The vectors of a table on disk, dense or sparse, which tasks read a range at a time.

A table is one zarr array (sample, column), or, where most entries are 0, three of them below the
same name: ``data``, ``indices`` and ``indptr``, compressed sparse rows.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors, join, unit_vectors
from eigenscape.store.arrays import attach_whole, open_array, open_memmap, write_rows
from eigenscape.store.workspace import Workspace


@dataclass(frozen=True)
class Rows:
    """A table of vectors on disk. Small, so that every task can carry it.

    Attributes
    ----------
    path
        Path of the zarr array, or of the folder with ``data``, ``indices`` and ``indptr``.
    unit
        Whether to scale every vector to length 1 (for angles), after adding the origin of the table. There is
        then one more column, which is 1 for vectors of zeros and 0 for all others, so that a vector without
        direction is at a right angle to every other vector.
    """

    path: str
    unit: bool = False

    @property
    def sparse(self) -> bool:
        """Return whether the table is sparse (compressed rows)."""
        return (Path(self.path) / "indptr").exists()

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and columns."""
        if self.sparse:
            starts = open_array(Path(self.path) / "indptr")
            rows, columns = starts.shape[0] - 1, int(starts.attrs["columns"])
        else:
            rows, columns = open_array(self.path).shape
        return rows, columns + self.unit

    @property
    def origin(self) -> NDArray[np.float64] | None:
        """Origin that was subtracted from the vectors, None for nothing."""
        kept = None if self.sparse else open_array(self.path).attrs.get("origin")
        return None if kept is None else np.array(kept, np.float64)

    @property
    def stored(self) -> int:
        """Number of values on disk."""
        if self.sparse:
            return int(open_array(Path(self.path) / "data").shape[0])
        rows, columns = open_array(self.path).shape
        return int(rows * columns)

    @property
    def step(self) -> int:
        """Rows that are best read together: a chunk."""
        return ROW_TILE if self.sparse else int(open_array(self.path).chunks[0])

    def read(self, start: int, stop: int) -> Vectors:
        """Return the rows from `start` up to, but not including, `stop`."""
        if self.sparse:
            folder = Path(self.path)
            starts = np.asarray(open_memmap(folder / "indptr")[start : stop + 1])
            piece = slice(int(starts[0]), int(starts[-1]))
            data, columns = (
                np.array(open_memmap(folder / name)[piece]) for name in ("data", "indices")
            )
            shape = (len(starts) - 1, self.shape[1] - self.unit)
            vectors: Vectors = csr_array((data, columns, starts - starts[0]), shape=shape)
        else:
            vectors = open_array(self.path)[start:stop]
        return unit_vectors(vectors, self.origin) if self.unit else vectors

    def take(self, samples: NDArray[np.int64]) -> Vectors:
        """Return some rows, given in ascending order, reading one chunk after the other."""
        found = []
        step = self.step
        for start in range(0, self.shape[0], step):
            first, last = np.searchsorted(samples, [start, start + step])
            if last > first:
                block = self.read(start, min(start + step, self.shape[0]))
                found.append(block[samples[first:last] - start])
        return join(found) if found else self.read(0, 0)


def create_sparse(
    workspace: Workspace, name: str, starts: NDArray[np.int64], columns: int
) -> tuple[str, str, str]:
    """Create the arrays of a sparse table in a workspace; return the paths of its arrays.

    Parameters
    ----------
    workspace
        Where a stage writes.
    name
        Name of the table, for example ``"samples/values"``.
    starts : array, shape (rows + 1,)
        Where each row begins: written here.
    columns
        Length of a row.

    Returns
    -------
    data, indices, indptr
        Paths of the arrays; the first two, of ``starts[-1]`` entries, are the caller's to fill.
    """
    entries = int(starts[-1])
    make = workspace.create_array
    data = make(f"{name}/data", (entries,), np.float32, whole=True, dims=("entry",))
    indices = make(f"{name}/indices", (entries,), np.int32, whole=True, dims=("entry",))
    indptr = make(
        f"{name}/indptr", starts.shape, np.int64, whole=True, dims=("row_start",), columns=columns
    )
    write_rows(indptr, 0, starts)
    for path in (data, indices):
        # Reserved here, once: tasks that did it side by side would empty each other's files.
        attach_whole(path)
    return data, indices, indptr
