"""CSV and Parquet files as their readers tell of them: columns with names, rows in windows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError, did_you_mean
from eigenscape.scenes.formats.tables.columns import Column
from eigenscape.scenes.labels.vectorclasses import LIKELY

Item = TypeVar("Item")


class TabularFile(Protocol):
    """A file of rows and named columns; small, and pickles (it holds a path, not an open file)."""

    @property
    def path(self) -> str:
        """File or URL."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column, in the file's order."""
        ...

    @property
    def named(self) -> bool:
        """Whether the names are the file's own, not the numbers of the columns."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows, the header not counted."""
        ...

    @property
    def row_step(self) -> int:
        """Rows that are read together, whatever is asked of them."""
        ...

    def numbers(
        self, columns: Sequence[int], start: int, stop: int
    ) -> Iterator[NDArray[np.float64]]:
        """Yield rows start ... stop-1 of columns of numbers, a part of them at a time.

        Each part has the shape (part, columns), in the order of `columns`; NaN where a value is missing.
        """
        ...

    def words(self, column: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Yield rows start ... stop-1 of one column, a part of them at a time.

        Objects, texts with "" where a value is missing; of a column of numbers float64 with NaN.
        """
        ...


def _open_csv(path: str) -> TabularFile:
    from eigenscape.scenes.formats.tables.csvfiles import open_csv

    return open_csv(path)


def _open_parquet(path: str) -> TabularFile:
    from eigenscape.scenes.formats.tables.parquetfiles import open_parquet

    return open_parquet(path)


_OPENERS: Mapping[str, Callable[[str], TabularFile]] = {
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".parquet": _open_parquet,
    ".pq": _open_parquet,
}


def is_tabular(path: object) -> bool:
    """Return whether a path names a CSV or Parquet file."""
    return isinstance(path, str) and Path(path).suffix.lower() in _OPENERS


def is_geoparquet(path: str) -> bool:
    """Return whether a file is a Parquet file with geometries (GeoParquet).

    Raises
    ------
    SceneError
        It is a Parquet file, and damaged.
    MissingExtraError
        Parquet needs pyarrow.
    """
    if _OPENERS.get(Path(path).suffix.lower()) is not _open_parquet:
        return False
    from eigenscape.scenes.formats.tables.parquetfiles import has_geometries

    return has_geometries(path)


def open_tabular(path: str) -> TabularFile:
    """Open a file for which `is_tabular` is true.

    A CSV file is read through once, for its rows and for what its columns hold.

    Raises
    ------
    SceneError
        The file is damaged, or its rows or columns contradict each other.
    MissingExtraError
        Parquet needs pyarrow.
    """
    file = _OPENERS[Path(path).suffix.lower()](path)
    if twice := repeated(column.name for column in file.columns if column.name):
        raise SceneError(f"{path}: the column {twice[0]!r} stands twice. Rename one of the two.")
    if not file.rows:
        raise SceneError(f"{path}: has no rows below its header. A table has one for each sample.")
    return file


def repeated(items: Iterable[Item]) -> list[Item]:
    """Return what stands more than once, in the order of its first places."""
    return [item for item, count in Counter(items).items() if count > 1]


def find_column(file: TabularFile, name: str, key: str) -> int:
    """Return the place of a column from 0.

    Raises
    ------
    SceneError
        There is none of that name.
    """
    names = [column.name for column in file.columns]
    if name not in names:
        shown = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
        raise SceneError(
            f"{file.path}: has no column {name!r} ({key}).{did_you_mean(name, names)} "
            f"Columns: {shown}."
        )
    return names.index(name)


def find_label_column(file: TabularFile, field: str | None) -> int:
    """Return the place of the column that holds the classes.

    Parameters
    ----------
    file
        Where it is.
    field
        Its name (``scene.labels_field``); by default the only column, or one with a telling name.

    Raises
    ------
    SceneError
        There is no such column, or several could be meant.
    """
    if field is not None:
        return find_column(file, field, "scene.labels_field")
    names = [column.name.lower() for column in file.columns]
    likely = [names.index(name) for name in LIKELY if name in names]
    if len(names) == 1 or likely:
        return likely[0] if likely else 0
    raise SceneError(
        f"{file.path}: none of its columns is called like a class. Name the one with the labels in "
        f"scene.labels_field. Columns: {', '.join(column.name for column in file.columns[:20])}."
    )
