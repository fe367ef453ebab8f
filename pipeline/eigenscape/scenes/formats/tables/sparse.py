"""Sparse tables in the files of `scipy.sparse.save_npz`: a row is a sample, a column a feature."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.arrays.arrayfiles import (
    list_variables,
    load_npz,
    local_path,
    reading,
)
from eigenscape.scenes.formats.bandlists import parse_bad_bands
from eigenscape.scenes.formats.rasters.pixels import check_some_band
from eigenscape.scenes.types import Bands, Grid
from eigenscape.scenes.views.draws import Subset

SparseFormat: TypeAlias = Literal["csr", "csc", "coo"]

MOST_COLUMNS = 2**24
"""The manifest of a run says of every column whether it is used."""

_PLACES = {"indices", "indptr", "row", "col", "coords", "offsets"}
"""Names of the arrays that say where the entries stand; offsets are those of diagonals."""


@dataclass(frozen=True)
class SparseScene:
    """A sparse table as a scene one pixel wide, without georeference.

    Attributes
    ----------
    grid
        As many rows as the table, one column.
    bands
        The columns of the table.
    path
        The file.
    format
        How it stores the table.
    entries
        Number of values it stores.
    scale
        Factor from stored values to values.
    subset
        The rows of the file that are taken; None for all.
    """

    grid: Grid
    bands: Bands
    path: str
    format: SparseFormat
    entries: int
    scale: float
    subset: Subset | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The file."""
        return (self.path,)

    @property
    def row_step(self) -> int:
        """All rows: the file decompresses as a whole only, whatever is read of it."""
        return self.grid.height

    def read(self, start: int, stop: int) -> tuple[csr_array, NDArray[np.bool_]]:
        """Read rows start ... stop-1 of the good columns. The whole file is held meanwhile.

        Returns
        -------
        values : csr_array, shape (stop - start, bands.count), float32
            Scaled; columns ascend within a row, none stands twice, and no 0 is stored.
        valid : array of bool, shape (stop - start, 1)
            False where a good column is NaN or infinite (or too large for float32).

        Raises
        ------
        SceneError
            The file is truncated, damaged or gone, or its parts contradict each other.
        """
        assert 0 <= start < stop <= self.grid.height
        with reading(self.path):
            table = self._load()
        if stop - start < self.grid.height:
            table = table[start:stop]
        if not all(self.bands.good):
            table = table[:, self.bands.good_index]
        table.sum_duplicates()
        with np.errstate(over="ignore", invalid="ignore"):
            table.data *= self.scale
            table = table.astype(np.float32)
        valid = np.ones(stop - start, np.bool_)
        missing = ~np.isfinite(table.data)
        if missing.any():
            row = np.repeat(np.arange(stop - start), np.diff(table.indptr))
            valid[row[missing]] = False
            table.data[~valid[row]] = 0
        table.eliminate_zeros()
        return table, valid[:, np.newaxis]

    def _load(self) -> csr_array:
        path = local_path(self.path)
        names = ["row", "col"] if self.format == "coo" else ["indices", "indptr"]
        if "coords" in list_variables(self.path, "npz"):
            names = ["coords"]
        data, *stored = load_npz(path, "data", *names)
        # In double: duplicates are added up, and sums of bytes would wrap.
        data = data.astype(np.float64, copy=False)
        one, two = (_signed(part) for part in (stored if len(stored) == 2 else stored[0]))
        subset = self.subset
        height = self.grid.height if subset is None else subset.total
        shape = (height, len(self.bands.good))
        if self.format == "coo":
            table = csr_array(coo_array((data, (one, two)), shape=shape))
        else:
            kind = csr_array if self.format == "csr" else csc_array
            table = kind((data, one, two), shape=shape)
            # What converts and sums is compiled, and would follow a wrong index out of the array.
            table.check_format(full_check=True)
            table = csr_array(table)
        return table if subset is None else csr_array(table[subset.rows])


def _signed(index: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as SciPy wants them for an index; raise TypeError for any others."""
    wide = index.dtype.itemsize > 4 or index.dtype.kind == "u"
    return index.astype(np.int64 if wide else np.int32, casting="same_kind", copy=False)


def is_sparse(path: str) -> bool:
    """Return whether an .npz file holds the parts of a sparse matrix, not arrays to choose from.

    Raises
    ------
    SceneError
        The file is truncated or damaged.
    """
    names = set(list_variables(path, "npz"))
    marked = "format" in names and names & _PLACES
    return "data" in names and bool(marked or {"indices", "indptr"} <= names)


def open_sparse_scene(path: str, options: SceneOptions) -> SparseScene:
    """Open a sparse table from its headers alone.

    Parameters
    ----------
    path
        A file for which `is_sparse` is true.
    options
        ``[scene]`` of the job; ``bad_bands`` leaves out columns, ``scale`` multiplies values.

    Raises
    ------
    SceneError
        The file is damaged or stores its table in another way, or a key has no meaning for it.
    """
    _refuse_keys(path, options)
    known = list_variables(path, "npz")
    if lacking := sorted({"shape", "format"} - known.keys()):
        raise SceneError(
            f"{path}: has the parts of a sparse matrix (data, indices, ...) but lacks "
            f"{' and '.join(lacking)}. Write it with scipy.sparse.save_npz(path, matrix)."
        )
    with reading(path):
        sides, text = load_npz(local_path(path), "shape", "format")
        shape, name = tuple(int(size) for size in sides.ravel()), text.item()
    name = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    known_formats: tuple[SparseFormat, ...] = get_args(SparseFormat)
    stored = next((kind for kind in known_formats if kind == name), None)
    if stored is None:
        raise SceneError(
            f"{path}: holds a sparse matrix of the format {name!r}; {', '.join(known_formats)} can "
            "be read. Convert it: scipy.sparse.save_npz(path, matrix.tocsr())."
        )
    if len(shape) != 2 or min(shape) < 1 or shape[1] > MOST_COLUMNS:
        raise SceneError(
            f"{path}: the sparse matrix has the shape {shape}; a table is rows x columns, at least "
            f"1 x 1 and of {MOST_COLUMNS} columns at most. Reshape it or leave columns out."
        )
    data = known["data"]
    if data.dtype.kind not in "uifb":
        raise SceneError(
            f"{path}: the sparse matrix is of type {data.dtype}; whole and real numbers can be "
            "used. Convert it: scipy.sparse.save_npz(path, matrix.astype('float32'))."
        )
    rows, columns = shape
    bad = parse_bad_bands(options.bad_bands, columns)
    good = tuple(index not in bad for index in range(columns))
    check_some_band(good, path)
    return SparseScene(
        grid=Grid(height=rows, width=1),
        bands=Bands(good),
        path=path,
        format=stored,
        entries=int(np.prod(data.shape)),
        scale=1.0 if isinstance(options.scale, str) else float(options.scale),
    )


def _refuse_keys(path: str, options: SceneOptions) -> None:
    if options.layout == "image":
        raise SceneError(
            f'scene.layout = "image": a sparse matrix is a table ({path}). Leave the key out.'
        )
    reasons = {
        "variable": "the file is one sparse matrix, with nothing to choose from",
        "nodata": "what a sparse matrix does not store is 0, and NaN marks what is missing",
        "mask": "a sparse matrix is a table, without pixels to mask; select its rows instead",
    }
    for key, reason in reasons.items():
        value = getattr(options, key)
        if value is not None:
            raise SceneError(f"scene.{key} = {value!r}: {reason} ({path}). Leave the key out.")
