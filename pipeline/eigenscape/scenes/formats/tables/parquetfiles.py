"""Parquet files: rows in windows, decoded a batch at a time within their row groups."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import local_path, reading
from eigenscape.scenes.formats.tables.columns import Column

try:
    import pyarrow as pa
    import pyarrow.compute
    from pyarrow import parquet
except ImportError:
    raise MissingExtraError("pyarrow", "tables", "A Parquet file") from None

_BATCH = 2**19
"""Values that are decoded at a time."""


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file; fulfils the `TabularFile` protocol.

    Attributes
    ----------
    path
        File or URL.
    columns
        What each holds.
    firsts
        First row of each row group, and the number of rows.
    """

    path: str
    columns: tuple[Column, ...]
    firsts: tuple[int, ...]
    named: bool = True

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.firsts[-1]

    @property
    def row_step(self) -> int:
        """Rows of the largest row group."""
        return int(np.diff(self.firsts).max(initial=1))

    def numbers(
        self, columns: Sequence[int], start: int, stop: int
    ) -> Iterator[NDArray[np.float64]]:
        """Yield rows start ... stop-1 of columns of numbers; see `TabularFile.numbers`."""
        names = [self.columns[place].name for place in columns]
        for batch in self._batches(names, start, stop):
            yield np.stack([_to_float(batch.column(name)) for name in names], axis=1)

    def words(self, column: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Yield rows start ... stop-1 of one column; see `TabularFile.words`."""
        name = self.columns[column].name
        for batch in self._batches([name], start, stop):
            values = batch.column(name)
            # False is a class, as it is in CSV files, and not 0, which means none.
            if self.columns[column].numbers and not pa.types.is_boolean(values.type):
                yield _to_float(values)
                continue
            try:
                yield _to_text(values)
            except pa.ArrowNotImplementedError:
                raise SceneError(
                    f"{self.path}: the column {name!r} is of type {values.type}, and classes are "
                    "numbers or texts. Choose another scene.labels_field or convert it."
                ) from None

    def _batches(self, names: Sequence[str], start: int, stop: int) -> Iterator[Any]:
        group = int(np.searchsorted(self.firsts, start, side="right")) - 1
        row, size = self.firsts[group], max(1, _BATCH // len(names))
        # Mapped and unbuffered: a row group may be larger than the memory.
        with (
            reading(self.path),
            parquet.ParquetFile(local_path(self.path), memory_map=True) as file,
        ):
            groups = range(group, file.num_row_groups)
            for batch in file.iter_batches(size, groups, columns=names, use_threads=False):
                if row >= stop:
                    break
                if row + batch.num_rows > start:
                    begin = max(start - row, 0)
                    yield batch.slice(begin, min(stop - row, batch.num_rows) - begin)
                row += batch.num_rows
        pa.default_memory_pool().release_unused()


def open_parquet(path: str) -> ParquetFile:
    """Open a Parquet file from its footer alone.

    Raises
    ------
    SceneError
        The file is truncated or damaged.
    """
    with reading(path), parquet.ParquetFile(local_path(path), memory_map=True) as file:
        groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        schema = file.schema_arrow
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        # The index of a range has no column, but a description.
        indices = {name for name in stored if isinstance(name, str)}
        columns = tuple(_describe(column, indices) for column in schema)
    return ParquetFile(path, columns, tuple(np.cumsum([0, *groups]).tolist()))


def has_geometries(path: str) -> bool:
    """Return whether a Parquet file is a GeoParquet file, whose metadata tell of columns of geometries."""
    with reading(path), parquet.ParquetFile(local_path(path)) as file:
        return b"geo" in (file.metadata.metadata or {})


def _describe(column: Any, indices: Collection[str]) -> Column:
    kind, is_a = column.type, pa.types
    numbers = is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind)
    numbers = numbers or is_a.is_decimal(kind)
    fault = "" if numbers else f"is of type {kind}, not a number"
    texts = kind.value_type if is_a.is_dictionary(kind) else kind
    word = "text" if is_a.is_string(texts) or is_a.is_large_string(texts) else str(kind)
    return Column(column.name, numbers, fault, index=column.name in indices, kind=word)


def _to_float(values: Any) -> NDArray[np.float64]:
    cast = pyarrow.compute.cast(values, pa.float64(), safe=False)
    return np.asarray(cast.to_numpy(zero_copy_only=False), np.float64)


def _to_text(values: Any) -> NDArray[Any]:
    texts = pyarrow.compute.cast(values, pa.string())
    filled = pyarrow.compute.fill_null(texts, "")
    return np.asarray(pyarrow.compute.utf8_trim_whitespace(filled).to_numpy(zero_copy_only=False))
