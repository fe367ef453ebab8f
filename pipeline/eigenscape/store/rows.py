"""The vectors of a table on disk, dense or sparse: what tasks read a range at a time.

A table is one zarr array (sample, column), or, where most entries are 0, three of them below the
same name: ``data``, ``indices`` and ``indptr``, compressed sparse rows.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from eigenscape.base.memory import ROW_TILE
from eigenscape.store.arrays import attach_whole, open_array, open_memmap, write_rows
from eigenscape.store.workspace import Workspace

Dense: TypeAlias = NDArray[np.float32]
Vectors: TypeAlias = Dense | csr_array
"""Some rows in memory, shape (rows, columns), float32."""

Parts: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]
"""Data, column numbers and row starts of compressed sparse rows: what compiled loops take."""


@dataclass(frozen=True)
class Rows:
    """A table of vectors on disk. Small, so that every task can carry it.

    Attributes
    ----------
    path
        Of the zarr array, or of the folder with ``data``, ``indices`` and ``indptr``.
    unit
        Scale every vector to length 1, for angles, with what the table keeps as its origin added
        first. One more column then holds 1 for vectors of zeros and 0 for all others: a vector
        without direction is at a right angle to every other.
    """

    path: str
    unit: bool = False

    @property
    def sparse(self) -> bool:
        """Whether the rows are compressed."""
        return (Path(self.path) / "indptr").exists()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        if self.sparse:
            starts = open_array(Path(self.path) / "indptr")
            rows, columns = starts.shape[0] - 1, int(starts.attrs["columns"])
        else:
            rows, columns = open_array(self.path).shape
        return rows, columns + self.unit

    @property
    def origin(self) -> NDArray[np.float64] | None:
        """What was subtracted from the vectors, None for nothing."""
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
        """Return rows start ... stop-1."""
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


def unit_vectors(vectors: Vectors, origin: NDArray[np.float64] | None = None) -> Vectors:
    """Scale vectors to length 1 and add the column of `Rows.unit`.

    Parameters
    ----------
    vectors : array or csr_array, shape (rows, columns)
    origin : array, shape (columns,), optional
        Added to dense vectors first.

    Returns
    -------
    array or csr_array, shape (rows, columns + 1)
    """
    rows, columns = vectors.shape
    if isinstance(vectors, np.ndarray):
        whole: NDArray[Any] = vectors if origin is None else vectors + origin
        # By the largest entry first: squares of very small or large values leave float32.
        largest = np.abs(whole).max(axis=1, initial=0)
        zero = largest == 0
        unit = np.zeros((rows, columns + 1), np.float32)
        np.divide(
            whole,
            largest[:, None],
            out=unit[:, :columns],
            where=~zero[:, None],
            casting="same_kind",
        )
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(zero, 1, length)[:, None]
        unit[zero, columns] = 1
        return unit
    owner = np.repeat(np.arange(rows), np.diff(vectors.indptr))
    length = np.sqrt(np.bincount(owner, vectors.data.astype(np.float64) ** 2, rows))
    zero = length == 0
    data = (vectors.data / length[owner]).astype(np.float32)
    # Not by adding tables, which would drop entries that came out as 0: rows keep their length.
    at = vectors.indptr[:-1][zero]
    starts = vectors.indptr + np.concatenate([[0], np.cumsum(zero)])
    parts = (np.insert(data, at, 1), np.insert(vectors.indices, at, columns), starts)
    return csr_array(parts, shape=(rows, columns + 1))


def join(pieces: list[Vectors]) -> Vectors:
    """Stack pieces of one table on top of each other."""
    if len(pieces) == 1:
        return pieces[0]
    alike: list[Any] = pieces  # all dense or all sparse, which a type cannot say
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(alike)
    return csr_array(vstack(alike, format="csr"))


def as_parts(vectors: Vectors) -> Dense | Parts:
    """Return vectors as compiled loops take them: an array, or the parts of sparse rows."""
    if isinstance(vectors, np.ndarray):
        return vectors
    return (
        vectors.data,
        vectors.indices.astype(np.int32, copy=False),
        vectors.indptr.astype(np.int64, copy=False),
    )


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
