"""CSV files: found once where blocks of whole rows begin, then read in windows of rows.

::

    header | block 0 | block 1 | ...      each some MiB, cut where a row ends

One pass parses every block: it counts rows and learns which columns hold numbers. A window of rows
is read by parsing the blocks that it touches.
"""

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eigenscape.base.files.cells import is_number, separator_of
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import local_path, reading
from eigenscape.scenes.formats.tables.columns import Column

_BLOCK = 4 * 2**20
_LONGEST_ROW = 64 * 2**20
_NUMERAL = re.compile(r"[+-]?\d[\d.,_' ]*")
"""What is meant for a number, in a notation that is not read: 1,5 or 1 000."""
_QUOTE, _NEWLINE = ord('"'), ord("\n")


@dataclass(frozen=True)
class CsvFile:
    """A CSV or TSV file; fulfils the `TabularFile` protocol.

    Attributes
    ----------
    path
        File or URL.
    separator
        What stands between values.
    columns
        What each holds.
    named
        Whether the first row holds the names.
    offsets
        Byte at which each block begins, and the end of the last.
    firsts
        First row of each block, and the number of rows.
    """

    path: str
    separator: str
    columns: tuple[Column, ...]
    named: bool
    offsets: tuple[int, ...]
    firsts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of rows, the header not counted."""
        return self.firsts[-1]

    @property
    def row_step(self) -> int:
        """Rows of the largest block."""
        return max(after - first for first, after in pairwise(self.firsts))

    def numbers(
        self, columns: Sequence[int], start: int, stop: int
    ) -> Iterator[NDArray[np.float64]]:
        """Yield rows start ... stop-1 of columns of numbers; see `TabularFile.numbers`."""
        for frame in self._frames(columns, start, stop, dtype=np.float64):
            yield frame[list(columns)].to_numpy()

    def words(self, column: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Yield rows start ... stop-1 of one column as texts; see `TabularFile.words`."""
        for frame in self._frames([column], start, stop, dtype=str, keep_default_na=False):
            yield frame[column].str.strip().to_numpy(object)

    def _frames(
        self, columns: Sequence[int], start: int, stop: int, **options: Any
    ) -> Iterator[pd.DataFrame]:
        """Yield the windows of rows start ... stop-1 within each block."""
        first = int(np.searchsorted(self.firsts, start, side="right")) - 1
        # Columns that are left out may hold anything: their own types cost nothing.
        options = {"usecols": sorted(columns), **options}
        with reading(self.path), open(local_path(self.path), "rb") as stream:
            for number in range(first, len(self.firsts) - 1):
                row, after = self.firsts[number : number + 2]
                if row >= stop:
                    return
                stream.seek(self.offsets[number])
                text = stream.read(self.offsets[number + 1] - self.offsets[number])
                frame = _parse(text, self.separator, **options)
                if len(frame) != after - row:
                    raise SceneError(
                        f"{self.path}: was changed while it was being read. Give the same command "
                        "again once it is complete."
                    )
                yield frame[max(start, row) - row : min(stop, after) - row]


_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass
class _Contents:
    """What was found in a column so far: first row, from 1, of each kind of value."""

    numbers: bool = False
    booleans: bool = True
    text: tuple[int, str] | None = None
    missing: int = 0
    infinite: int = 0

    def column(self, name: str) -> Column:
        """Return what the column is, with the first reason why it can be no feature."""
        if self.text is not None:
            row, value = self.text
            if _DECIMAL_COMMA.fullmatch(value.strip()):
                fault = f"holds {value!r} in row {row}, and decimals need a point, not a comma"
                return Column(name, self.numbers, fault)
            fault = f"holds {value!r} in row {row}, which is not a number"
            return Column(name, self.numbers, fault, kind="booleans" if self.booleans else "text")
        if self.missing:
            return Column(name, True, f"has no value in row {self.missing}")
        if self.infinite:
            return Column(name, True, f"is infinite in row {self.infinite}")
        return Column(name, True)


@dataclass
class _Scan:
    """One pass over the rows of a file."""

    path: str
    separator: str
    contents: list[_Contents]
    offsets: list[int]
    firsts: list[int] = field(default_factory=lambda: [0])

    def take(self, text: bytes) -> None:
        """Parse a block of whole rows and learn from it."""
        row = self.firsts[-1]
        self.offsets.append(self.offsets[-1] + len(text))
        try:
            frame = _parse(text, self.separator)
        except pd.errors.ParserError as error:
            raise SceneError(
                f"{self.path}: after row {row}, rows have different numbers of values: "
                f"{str(error).strip()} (lines counted from there). Every row needs "
                f"{len(self.contents)}; a value that holds a {self.separator!r} stands in quotes."
            ) from error
        if len(frame) and frame.shape[1] != len(self.contents):
            raise SceneError(
                f"{self.path}: row {row + 1} has {frame.shape[1]} values, and the first line "
                f"{len(self.contents)}. Give every row a value for each column."
            )
        self.firsts.append(row + len(frame))
        # Tens of thousands of columns are learned of one by one only where that tells something.
        numeric = len(frame) > 0 and all(kind.kind in "uif" for kind in frame.dtypes)
        if numeric and np.isfinite(frame.to_numpy(np.float64)).all():
            for content in self.contents:
                content.numbers = True
            return
        for place, values in frame.items():
            self._learn(self.contents[int(str(place))], values, row)

    @staticmethod
    def _learn(content: _Contents, values: pd.Series, row: int) -> None:
        empty = values.isna().to_numpy()
        content.missing = content.missing or _first(empty, row)
        content.booleans &= values.dtype.kind == "b"
        numeric = values
        if values.dtype.kind not in "uif":
            as_text = values.astype(object).map(str)
            numeric = pd.to_numeric(as_text.where(~empty), errors="coerce")
            other = numeric.isna().to_numpy() & ~empty
            if content.text is None and (found := _first(other, row)):
                content.text = found, as_text.iloc[found - row - 1]
                content.numbers |= _NUMERAL.fullmatch(content.text[1]) is not None
        known = numeric.to_numpy(np.float64)
        content.numbers |= not np.isnan(known).all()
        content.infinite = content.infinite or _first(np.isinf(known), row)


def open_csv(path: str) -> CsvFile:
    """Read a CSV file through once; the result is kept while the file stays as it is.

    Values are separated by commas, semicolons or tabs (in .tsv by tabs alone), in UTF-8. The first
    line holds the names, unless all of it is numbers: then columns are called by their numbers from 1.

    Raises
    ------
    SceneError
        The file is damaged, or its rows differ in length.
    """
    with reading(path):
        state = os.stat(local_path(path))
        try:
            return _open(path, state.st_mtime_ns, state.st_size)
        except UnicodeDecodeError as error:
            raise SceneError(
                f"{path}: is not in UTF-8 ({error}). Convert it, for example with: iconv -f latin1 "
                "-t utf-8 IN > OUT"
            ) from error


@lru_cache(maxsize=4)
def _open(path: str, modified: int, size: int) -> CsvFile:
    """Scan a file; `modified` and `size` make a changed file a new entry."""
    with open(local_path(path), "rb") as stream:
        offset, line = _first_line(stream, path)
        separator = separator_of(path, line.decode("utf-8", "replace"))
        cells = next(csv.reader([line.decode("utf-8-sig")], delimiter=separator))
        names = [cell.strip() for cell in cells]
        # numpy.savetxt puts its mark of comments before the names.
        names[0] = names[0].removeprefix("#").strip()
        named = not all(map(is_number, names))
        begin = offset + len(line) if named else offset
        scan = _Scan(path, separator, [_Contents() for _ in names], [begin])
        stream.seek(begin)
        for text in _blocks(stream, path):
            scan.take(text)
    names = names if named else [str(number) for number in range(1, len(names) + 1)]
    columns = tuple(
        content.column(name) for content, name in zip(scan.contents, names, strict=True)
    )
    return CsvFile(path, separator, columns, named, tuple(scan.offsets), tuple(scan.firsts))


def _first_line(stream: BinaryIO, path: str) -> tuple[int, bytes]:
    """Return where the first line that is not blank begins, and the line."""
    offset = 0
    for text in _blocks(stream, path):
        for line in _rows(text):
            if line.strip(b"\xef\xbb\xbf \t\r\n"):
                return offset, line
            offset += len(line)
    raise SceneError(f"{path}: the file is empty. A table has a row for each sample.")


def _rows(text: bytes) -> Iterator[bytes]:
    """Yield rows of a block with their ends; a quoted value may run over several lines."""
    begin = 0
    for end in _row_ends(text):
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


def _blocks(stream: BinaryIO, path: str) -> Iterator[bytes]:
    """Yield the file from where it stands, cut where rows end."""
    left = b""
    while more := stream.read(_BLOCK):
        text = left + more
        ends = _row_ends(text)
        cut = int(ends[-1]) if len(ends) else 0
        if not cut and len(text) > _LONGEST_ROW:
            raise SceneError(
                f"{path}: no row ends within {_LONGEST_ROW >> 20} MiB up to byte {stream.tell()}. A "
                'quote (") may lack its partner: double those that are part of a value.'
            )
        if cut:
            yield text[:cut]
        left = text[cut:]
    if left:
        yield left


def _row_ends(text: bytes) -> NDArray[np.intp]:
    """Return where rows end: behind every line break that is not within quotes."""
    letters = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(letters == _NEWLINE)
    if b'"' in text:
        quotes = np.flatnonzero(letters == _QUOTE)
        breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    return breaks + 1


def _parse(text: bytes, separator: str, **options: Any) -> pd.DataFrame:
    """Parse whole rows; columns are called 0, 1, ... Blank lines are no rows."""
    if not text.strip():
        return pd.DataFrame()
    return pd.read_csv(
        io.BytesIO(text), header=None, sep=separator, skipinitialspace=True, low_memory=False,
        **options,
    )  # fmt: skip


def _first(found: NDArray[np.bool_], row: int) -> int:
    """Return the number, from 1, of the first row that was found in a block, 0 for none."""
    return row + int(found.argmax()) + 1 if found.any() else 0
