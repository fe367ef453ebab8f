"""Columns on disk: one raw file for each group of them, so that a task holds one group or one tile."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import attach_memmap, create_memmap, note_rows, whole_array
from eigenscape.base.files.whole import remove
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array


@dataclass(frozen=True)
class Vectors:
    """Columns in groups of `WIDTH`.

    Attributes
    ----------
    files
        Path of each group: rows of WIDTH numbers.
    rows, dtype
        Of every group.
    """

    files: tuple[str, ...]
    rows: int
    dtype: str

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.files)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return WIDTH * len(self.files)

    def __getitem__(self, groups: slice) -> "Vectors":
        return Vectors(self.files[groups], self.rows, self.dtype)

    def __add__(self, other: "Vectors") -> "Vectors":
        return Vectors(self.files + other.files, self.rows, self.dtype)

    def create(self) -> "Vectors":
        """Reserve the space; what is there already is kept."""
        for file in self.files:
            create_memmap(file, (self.rows, WIDTH), self.dtype)
        return self

    def attach(self, group: int, mode: str = "r") -> Array:
        """Map one group."""
        return attach_memmap(self.files[group], (self.rows, WIDTH), self.dtype, mode)

    def made(self, group: int) -> AbstractContextManager[Array]:
        """Yield zeros to work on, which become one group as a whole; its space need not be reserved."""
        return whole_array(self.files[group], (self.rows, WIDTH), self.dtype)

    def read(self, rows: slice, dtype: str = "float64") -> NDArray[Any]:
        """Return some rows of all columns."""
        first, last, _ = rows.indices(self.rows)
        values = np.empty((last - first, self.columns), dtype)
        for group in range(self.groups):
            values[:, group * WIDTH : (group + 1) * WIDTH] = self.attach(group)[rows]
        return values

    def write(self, rows: slice, values: NDArray[Any]) -> None:
        """Write some rows of all columns."""
        for group in range(self.groups):
            mapped = self.attach(group, "r+")
            mapped[rows] = values[:, group * WIDTH : (group + 1) * WIDTH]
            note_rows(mapped, *rows.indices(self.rows)[:2])

    def remove(self) -> None:
        """Delete the files."""
        remove(*self.files)
