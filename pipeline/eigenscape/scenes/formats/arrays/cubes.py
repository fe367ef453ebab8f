"""Choice of the array that is the scene, and its layout: both are described, and never guessed silently.

::

    30 x 40 x 20                rows x columns x bands
    156 x 9025, nRow = nCol = 95    bands x pixels, unfolded to 95 x 95 x 156
    9025 x 156                  a table, samples x features
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.arrays.arrayfiles import (
    ArraySource,
    array_format,
    list_variables,
    read_numbers,
)
from eigenscape.scenes.formats.arrays.arraylists import Variable
from eigenscape.scenes.formats.arrays.variables import find_array

_ROWS = {"nrow", "nrows", "n_row", "n_rows", "h", "height", "rows", "lines"}
_COLUMNS = {"ncol", "ncols", "n_col", "n_cols", "w", "width", "cols", "columns", "samples"}
"""Names of the numbers by which a file says of how many rows and columns its pixels are."""

_MOST_PIXELS = 2**40

Size = tuple[int, int]


@dataclass(frozen=True)
class UnfoldedSource:
    """An array of bands x pixels, or pixels x bands, as rows x columns x bands.

    MATLAB keeps the pixels of a column together, NumPy those of a row. Rows lie scattered then, so the
    array is held whole.

    Attributes
    ----------
    source
        The array.
    size
        Rows and columns.
    """

    source: ArraySource
    size: Size

    @property
    def path(self) -> str:
        """File or URL."""
        return self.source.path

    @property
    def variable(self) -> str | None:
        """Its name inside the file."""
        return self.source.variable

    @property
    def label(self) -> str:
        """The name with a blank before it: for messages."""
        return self.source.label

    @property
    def files(self) -> tuple[str, ...]:
        """The file, or the directory of a zarr store."""
        return self.source.files

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored numbers."""
        return self.source.dtype

    @property
    def row_step(self) -> int:
        """No row is nearer to another than to the rest."""
        return 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and bands."""
        return *self.size, math.prod(self.source.shape) // math.prod(self.size)

    @property
    def bands_first(self) -> bool:
        """Whether each band is a row of the array."""
        return self.source.shape[1] == math.prod(self.size)

    @property
    def columns_first(self) -> bool:
        """Whether the pixels of a column lie together."""
        return self.source.format in ("mat", "mat73")

    @property
    def held_bytes(self) -> int:
        """Bytes of all of it."""
        return math.prod(self.source.shape) * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows start ... stop-1 as they are stored, shape (stop - start, columns, bands).

        Raises
        ------
        SceneError
            The file is truncated, damaged or gone.
        """
        whole = self.source.whole()
        pixels = whole.T if self.bands_first else whole
        height, width, bands = self.shape
        if self.columns_first:
            return pixels.reshape(width, height, bands).transpose(1, 0, 2)[start:stop]
        return pixels.reshape(height, width, bands)[start:stop]

    def given(self, start: int, stop: int) -> None:
        """All pixels are taken as they come."""


def find_cube(
    path: str, options: SceneOptions
) -> tuple[ArraySource | UnfoldedSource, tuple[str, ...]]:
    """Find the array of a file that is the scene.

    By default that is the array of three axes with the most bands; one of bands x pixels, or pixels x
    bands, counts as such where the file says how many rows and columns the pixels make. Where there is
    none, it is the only array of two axes, a table.

    Parameters
    ----------
    path
        A .mat, .npy, .npz file or a zarr store.
    options
        ``[scene]`` of the job.

    Returns
    -------
    source
        What is read.
    notes
        What was taken for the scene, and how, where the file has names for its arrays.

    Raises
    ------
    SceneError
        The file is damaged, there is no such variable, or several could be meant.
    """
    kind = array_format(path)
    assert kind is not None
    known = list_variables(path, kind)
    numbers = {
        name: item for name, item in known.items()
        if math.prod(item.shape) == 1 and name.lower() in _ROWS | _COLUMNS
        and item.dtype.kind in "uif"
    }  # fmt: skip
    size = _size(read_numbers(path, kind, numbers)) if numbers else None
    if options.layout == "table":
        size = None
    wanted = "a table" if options.layout == "table" else "a cube or a table"
    pick = partial(_pick, options.layout, options.labels_variable, size)
    source = find_array(path, options.variable, pick, key="scene.variable", wanted=wanted)
    found: ArraySource | UnfoldedSource = source
    if size is not None and _bands_unfolded(source.shape, size):
        found = UnfoldedSource(source, size)
    if source.variable is None:
        return found, ()
    others = [
        name for name, item in known.items()
        if name != source.variable and _bands(item.shape, size) is not None
    ]  # fmt: skip
    return found, (_describe(source, found, others if options.variable is None else []),)


def _describe(source: ArraySource, found: ArraySource | UnfoldedSource, others: list[str]) -> str:
    stored = " x ".join(f"{size:,}" for size in source.shape)
    axes = "rows x columns x bands" if len(source.shape) == 3 else "samples x features"
    if isinstance(found, UnfoldedSource):
        height, width = found.size
        axes = "bands x pixels" if found.bands_first else "pixels x bands"
        order = "column by column" if found.columns_first else "row by row"
        axes += f", {height:,} rows x {width:,} columns by the file's own numbers; taken {order}"
    text = f"array {source.variable} of {Path(source.path).name}: {stored} {source.dtype}, {axes}"
    if others:
        text += f" (the most bands; for {' or '.join(sorted(others))} set scene.variable)"
    return text


def _size(numbers: Mapping[str, float]) -> Size | None:
    """Return the rows and columns that a file says, if it says both."""
    sides = []
    for names in (_ROWS, _COLUMNS):
        values = {value for name, value in numbers.items() if name.lower() in names}
        if len(values) != 1 or not (value := values.pop()).is_integer() or value < 1:
            return None
        sides.append(int(value))
    return (sides[0], sides[1]) if math.prod(sides) < _MOST_PIXELS else None


def _bands(shape: tuple[int, ...], size: Size | None) -> int | None:
    """Return the bands of an array that could be a cube; None of one that could not."""
    if len(shape) == 3 and shape[0] * shape[1] > 1 and shape[2]:
        return shape[2]
    return _bands_unfolded(shape, size) if size is not None else None


def _bands_unfolded(shape: tuple[int, ...], size: Size) -> int | None:
    pixels = math.prod(size)
    if len(shape) != 2 or pixels not in shape or pixels == 1:
        return None
    return shape[0] if shape[1] == pixels else shape[1]


def _pick(
    layout: str, labels: str | None, size: Size | None, known: Mapping[str, Variable]
) -> list[str]:
    """Return the names of the arrays that may be the scene."""
    others = {
        name: item.shape for name, item in known.items() if name != labels and 0 not in item.shape
    }
    bands = {name: count for name, shape in others.items() if (count := _bands(shape, size))}
    most = max(bands.values(), default=0)
    cubes = [name for name, count in bands.items() if count == most]
    planes = [name for name, shape in others.items() if len(shape) == 2]
    if len(cubes) == 1 and size is None:
        # The abundances of 95 x 95 pixels beside their spectra, 156 x 9025: nothing says which is meant.
        pixels = math.prod(others[cubes[0]][:2])
        cubes += [
            name for name in planes
            if pixels in others[name] and math.prod(others[name]) > math.prod(others[cubes[0]])
        ]  # fmt: skip
    # MATLAB files keep numbers and lists as matrices of one row or column.
    wide = [name for name in planes if min(others[name]) > 1]
    tables = wide or planes
    return (tables or cubes) if layout == "table" else (cubes or tables)
