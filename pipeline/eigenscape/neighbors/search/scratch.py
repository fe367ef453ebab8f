"""The scratch files of a search: vectors in runs, and features and lists in the locality order.

Everything is a raw file that tasks map, so that they read and write ranges of it and the system
keeps what it can in memory.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenscape.base.files.mapped import (
    attach_memmap,
    create_memmap,
    read_raw,
    save_array,
    save_raw,
    write_range,
)
from eigenscape.base.files.whole import remove, written_whole
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.base.vectors import Dense, Parts, Vectors

_WRITE_ROWS = CHUNK_ROWS // 8


def index_type(rows: int) -> type[np.signedinteger]:
    """Return the integer type that holds every sample's number and its negative."""
    return np.int32 if rows < 2**31 else np.int64


def save_vectors(path: Path, vectors: Vectors, rows: NDArray[np.signedinteger]) -> None:
    """Write some rows of a block, in the order in which they are given."""
    if isinstance(vectors, np.ndarray):
        with written_whole(path) as temporary, temporary.open("wb") as stream:
            for start in range(0, len(rows), _WRITE_ROWS):
                stream.write(vectors[rows[start : start + _WRITE_ROWS]].data)
        return
    taken = vectors[rows]
    save_raw(path.with_suffix(".data"), taken.data)
    save_raw(path.with_suffix(".columns"), taken.indices.astype(np.int32, copy=False))
    save_raw(path.with_suffix(".starts"), taken.indptr.astype(np.int64, copy=False))


def load_vectors(path: Path, columns: int, start: int, stop: int, *, sparse: bool) -> Vectors:
    """Read a range of the rows that `save_vectors` wrote."""
    if not sparse:
        return read_raw(path, np.float32, start, stop, columns)
    starts = read_raw(path.with_suffix(".starts"), np.int64, start, stop + 1)
    first, last = int(starts[0]), int(starts[-1])
    data = read_raw(path.with_suffix(".data"), np.float32, first, last)
    indices = read_raw(path.with_suffix(".columns"), np.int32, first, last)
    return csr_array((data, indices, starts - first), shape=(stop - start, columns))


@dataclass(frozen=True)
class Ranked:
    """Features in the locality order: row r is the sample of rank r.

    Attributes
    ----------
    folder
        Where its files are.
    rows, columns
        Its shape.
    sparse
        Whether rows are compressed.
    """

    folder: Path
    rows: int
    columns: int
    sparse: bool

    def create(self, lengths: NDArray[np.int64] | None) -> None:
        """Reserve the files; sparse rows need the number of entries of each."""
        if lengths is None:
            create_memmap(self.folder / "features", (self.rows, self.columns), np.float32)
            return
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        save_array(self.folder / "starts.npy", starts)
        for name, kind in (("data", np.float32), ("columns", np.int32)):
            create_memmap(self.folder / name, (int(starts[-1]),), kind)

    def write(self, first: int, vectors: Vectors) -> None:
        """Put the features of ranks first ... in their place."""
        if isinstance(vectors, np.ndarray):
            write_range(self.folder / "features", first, np.asarray(vectors, np.float32))
            return
        start = int(np.load(self.folder / "starts.npy", mmap_mode="r")[first])
        write_range(self.folder / "data", start, np.asarray(vectors.data, np.float32))
        write_range(self.folder / "columns", start, np.asarray(vectors.indices, np.int32))

    def parts(self) -> Dense | Parts:
        """Map all features as compiled loops take them."""
        # Copy on write: one type for the compiler, and nothing is ever written.
        if not self.sparse:
            return attach_memmap(
                self.folder / "features", (self.rows, self.columns), np.float32, "c"
            )
        starts = np.load(self.folder / "starts.npy", mmap_mode="c")
        entries = (int(starts[-1]),)
        return (
            attach_memmap(self.folder / "data", entries, np.float32, "c"),
            attach_memmap(self.folder / "columns", entries, np.int32, "c"),
            starts,
        )

    def take(self, ranks: NDArray[np.int64]) -> Vectors:
        """Return the features of some ranks."""
        parts = self.parts()
        if isinstance(parts, np.ndarray):
            return np.asarray(parts[ranks])
        return csr_array(parts, shape=(self.rows, self.columns))[ranks]

    def read(self, start: int, stop: int) -> Vectors:
        """Return the features of ranks start ... stop-1."""
        parts = self.parts()
        if isinstance(parts, np.ndarray):
            return np.asarray(parts[start:stop])
        data, columns, starts = parts
        entries = slice(int(starts[start]), int(starts[stop]))
        here = np.array(starts[start : stop + 1]) - starts[start]
        shape = (stop - start, self.columns)
        return csr_array((np.array(data[entries]), np.array(columns[entries]), here), shape=shape)


@dataclass(frozen=True)
class Lists:
    """Neighbour lists by rank, in two versions at a time: a step reads one and writes the next.

    Whatever version a killed step was reading is untouched, so the step can be done again. A version's
    files have names of their own: another machine may still hold the content of older ones.

    Attributes
    ----------
    folder
        Where the files are.
    rows, k
        Number and length of the lists.
    dtype
        Name of the integer type of the neighbours.
    """

    folder: Path
    rows: int
    k: int
    dtype: str

    def create(self, version: int) -> None:
        """Reserve the files of a version, and delete those of two versions before.

        Nothing is done for a version that is no more: an earlier attempt came further.
        """
        there = [int(path.name.rpartition("-")[2]) for path in self.folder.glob("fresh-*")]
        if version < max(there, default=0):
            return
        for name, kind in (("fresh", "?"), ("index", self.dtype), ("distance", "f4")):
            remove(self._file(name, version - 2))
            create_memmap(self._file(name, version), (self.rows, self.k), kind)

    def write(
        self,
        version: int,
        first: int,
        index: NDArray[Any],
        distance: NDArray[Any],
        fresh: NDArray[np.bool_] | None = None,
    ) -> None:
        """Write the lists of ranks first ..., and which entries the version before did not have."""
        write_range(self._file("index", version), first, index.astype(self.dtype, copy=False))
        write_range(self._file("distance", version), first, distance.astype("f4", copy=False))
        if fresh is not None:
            write_range(self._file("fresh", version), first, fresh)

    def index(self, version: int) -> NDArray[np.signedinteger]:
        """Map the neighbours' ranks, -1 where there is none."""
        return self._attach("index", version, self.dtype)

    def distance(self, version: int) -> NDArray[np.float32]:
        """Map the squared distances, inf where there is none."""
        return self._attach("distance", version, "f4")

    def fresh(self, version: int) -> NDArray[np.bool_]:
        """Map which entries the version before did not have."""
        return self._attach("fresh", version, "?")

    def _attach(self, name: str, version: int, kind: str) -> NDArray[Any]:
        # Copy on write: one type for the compiler, and nothing is ever written.
        return attach_memmap(self._file(name, version), (self.rows, self.k), kind, "c")

    def _file(self, name: str, version: int) -> Path:
        return self.folder / f"{name}-{version}"
