"""The parts of the rows: what each needs of the others, written once before the first step.

A part is a range of rows, cut where tiles begin (`eigenscape.spectrum.kernels.tiles`). It numbers the
columns of its rows anew: its own rows first, then the halo, which are the foreign rows that it names.
Entries keep their order.

::

    find_halo      part       its halo, its columns as places among own rows and halo
    fill_outbox    part       its rows in the halos of others, one receiver after the other
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import blocks
from eigenscape.base.files.mapped import create_memmap, save_array, save_raw, write_range
from eigenscape.base.files.whole import write_json
from eigenscape.base.memory import CHUNK_ROWS
from eigenscape.spectrum.kernels import tiles
from eigenscape.spectrum.kernels.operator import Array
from eigenscape.spectrum.stored import StoredOperator, open_stored


@dataclass(frozen=True)
class Cut:
    """How the rows are cut into parts.

    Attributes
    ----------
    bounds
        First row of each part, and the number of rows.
    folder
        Where halos, columns and outboxes lie.
    """

    bounds: tuple[int, ...]
    folder: Path

    @classmethod
    def of(cls, rows: int, parts: int, directory: Path) -> "Cut":
        """Return a cut into no more than `parts` parts, whole tiles each and nearly alike."""
        starts = [first for first, _ in tiles.tiles(rows)]
        count = min(parts, len(starts))
        bounds = [starts[number * len(starts) // count] for number in range(count)]
        return cls((*bounds, rows), directory / f"rows-{count}")

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.bounds) - 1

    def rows(self, part: int) -> slice:
        """Return the rows of a part."""
        return slice(self.bounds[part], self.bounds[part + 1])

    def file(self, name: str, part: int) -> Path:
        """Return a file of a part; a name with an ending keeps it: "halo.npy" of part 3 is halo-3.npy."""
        return _file(self.folder, name, part)


def _file(folder: Path, name: str, part: int) -> Path:
    stem, dot, ending = name.partition(".")
    return folder / f"{stem}-{part}{dot}{ending}"


def find_halo(operator: StoredOperator, cut: Cut, part: int) -> dict[str, Any]:
    """Write halo and columns of a part; return the size of its halo, and the parts that own it."""
    rows = cut.rows(part)
    own = rows.stop - rows.start
    pieces = [*_pieces(operator, rows)]
    foreign = [np.zeros(0, np.int64)]
    for piece in pieces:
        for columns in piece.columns():
            foreign.append(np.unique(columns[(columns < rows.start) | (columns >= rows.stop)]))
    halo = np.unique(np.concatenate(foreign)).astype(np.int64)
    save_array(cut.file("halo.npy", part), halo)
    starts, segments, at = [], list[dict[str, Any]](), 0
    entries = sum(piece.stop - piece.start for piece in pieces)
    path = cut.file("columns", part)
    create_memmap(path, (entries,), np.int32)
    for piece in pieces:
        segments.append(piece.described(at))
        starts.append(piece.indptr - piece.start)
        for columns in piece.columns():
            inside = (columns >= rows.start) & (columns < rows.stop)
            places = np.where(inside, columns - rows.start, own)
            places[~inside] += np.searchsorted(halo, columns[~inside])
            write_range(path, at, places.astype(np.int32))
            at += len(columns)
    save_raw(cut.file("starts", part), np.concatenate(starts).astype(np.int64))
    write_json(
        cut.file("part.json", part),
        {"segments": segments, "entries": entries, "halo": len(halo)},
    )
    ends = np.searchsorted(halo, cut.bounds)
    return {"halo": len(halo), "owners": np.flatnonzero(np.diff(ends)).tolist()}


def halo_rows(folder: Path, part: int) -> int | None:
    """Return the size of the halo that `find_halo` has noted, None if it has not."""
    path = _file(folder, "part.json", part)
    return int(json.loads(path.read_text())["halo"]) if path.exists() else None


@dataclass(frozen=True)
class _Piece:
    """The rows of a part that lie in one block of the matrix."""

    data: str
    block_entries: int
    indices: Array
    indptr: NDArray[np.int64]

    @property
    def start(self) -> int:
        return int(self.indptr[0])

    @property
    def stop(self) -> int:
        return int(self.indptr[-1])

    def columns(self) -> Iterator[NDArray[Any]]:
        """Yield the columns, slice by slice."""
        step = CHUNK_ROWS * 8
        for begin, end in blocks(self.stop - self.start, step):
            yield np.asarray(self.indices[self.start + begin : self.start + end])

    def described(self, at: int) -> dict[str, Any]:
        """Return what `Part.open` needs, the entries before it counted."""
        return {
            "data": self.data, "block_entries": self.block_entries, "start": self.start,
            "rows": len(self.indptr) - 1, "at": at, "entries": self.stop - self.start,
        }  # fmt: skip


def _pieces(operator: StoredOperator, rows: slice) -> Iterator[_Piece]:
    ends = (*operator.starts[1:], operator.rows)
    stored = zip(operator.graph, operator.data, operator.starts, ends, strict=True)
    for (indptr, indices), data, first, last in stored:
        begin, end = max(first, rows.start), min(last, rows.stop)
        if begin < end:
            columns = open_stored(indices)
            starts = np.asarray(open_stored(indptr)[begin - first : end - first + 1], np.int64)
            yield _Piece(data, len(columns), columns, starts)


def fill_outbox(cut: Cut, part: int) -> int:
    """Write the rows of a part that others have in their halos; return how many."""
    rows = cut.rows(part)
    wanted, ends = list[NDArray[np.int64]](), [0]
    for other in range(cut.parts):
        halo = np.load(cut.file("halo.npy", other), mmap_mode="r")
        begin, end = np.searchsorted(halo, [rows.start, rows.stop])
        # A part names none of its own rows in its halo.
        wanted.append(np.asarray(halo[begin:end]) - rows.start)
        ends.append(ends[-1] + len(wanted[-1]))
    save_array(cut.file("outbox.npy", part), np.concatenate(wanted))
    save_array(cut.file("mail.npy", part), np.array(ends))
    return ends[-1]


@dataclass(frozen=True)
class Sender:
    """Where the mail of another part for this one lies, and where it goes.

    Attributes
    ----------
    part
        The other one.
    first
        Row of its mail at which that for this part begins.
    halo
        Range of the halo.
    """

    part: int
    first: int
    halo: slice
