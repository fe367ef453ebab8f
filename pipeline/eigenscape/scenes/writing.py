"""Cubes, tables and geometries in memory, written as files that are named by their content.

The same cube is written once, and a second run of the same job takes over what the first one has finished.
"""

import contextlib
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, save_npz

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.errors import MissingExtraError, SceneError
from eigenscape.scenes.formats.rasters.rasterfiles import expect_missing_georeference
from eigenscape.scenes.labels.vectorclasses import choose_attribute, possible_attributes
from eigenscape.scenes.labels.vectors.layers import attributes
from eigenscape.scenes.objects import Raster

_STRIP_BYTES = 32 * 2**20
_GROUP_ROWS = 2**15
"""Rows of a group of a Parquet file, which is read from its first row on."""


def write_raster(raster: Raster, folder: Path, name: str) -> Path:
    """Write a GeoTIFF, a strip of rows at a time; return its path.

    Parameters
    ----------
    raster
        What to write.
    folder
        Made if it is not there.
    name
        First half of the file's name.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    import rasterio

    expect_missing_georeference()
    values, grid = raster.values, raster.grid
    kind = _written(values.dtype)
    place = {} if grid.transform is None else {"transform": rasterio.Affine(*grid.transform)}

    def write(path: Path, digest: Any) -> None:
        digest.update(repr((grid, raster.wavelength, raster.nodata, kind.str)).encode())
        with rasterio.open(
            path, "w", driver="GTiff", height=grid.height, width=grid.width, count=values.shape[2],
            dtype=kind, crs=grid.crs_wkt, nodata=raster.nodata, bigtiff="IF_SAFER", **place,
        ) as target:  # fmt: skip
            if raster.packing is not None:
                digest.update(repr(raster.packing).encode())
                scale, offset = raster.packing
                target.scales = [scale] * target.count
                target.offsets = [offset] * target.count
            if raster.wavelength is not None:
                for band, centre in enumerate(raster.wavelength, 1):
                    target.update_tags(band, wavelength=centre, wavelength_units="nm")
            for start, strip in _strips(values):
                strip = np.ascontiguousarray(strip, kind)
                digest.update(strip)
                window = rasterio.windows.Window(0, start, grid.width, len(strip))
                target.write(np.moveaxis(strip, 2, 0), window=window)

    return _write_named(folder, name, ".tif", write)


def _written(dtype: Any) -> Any:
    """Return the type in which GDAL stores numbers of a type: the bytes of this machine, at most 64 bits."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind == "f":
        single = np.dtype(np.float32)
        return single if dtype.itemsize <= single.itemsize else np.dtype(np.float64)
    return dtype.newbyteorder("=")


def _strips(values: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield first row and values of strips: of a dask array whole chunks, so that each is computed once."""
    row_bytes = max(1, int(np.prod(values.shape[1:])) * values.dtype.itemsize)
    rows = max(1, _STRIP_BYTES // row_bytes)
    sizes = values.chunks[0] if hasattr(values, "dask") else None
    start = 0
    while start < values.shape[0]:
        stop = min(start + rows, values.shape[0])
        if sizes is not None:
            ends = np.cumsum(sizes)
            whole = ends[(ends > start) & (ends <= stop)]
            stop = int(whole[-1]) if len(whole) else int(ends[ends > start][0])
        yield start, np.asarray(values[start:stop])
        start = stop


def write_table(values: Any, folder: Path, name: str) -> Path:
    """Write an array of samples, shape (n, d), or of their labels, shape (n,), as ``.npy``.

    Parameters
    ----------
    values
        Array or dask array.
    folder, name
        As of `write_raster`.
    """

    def write(path: Path, digest: Any) -> None:
        target = np.lib.format.open_memmap(path, "w+", values.dtype, values.shape)
        digest.update(repr((values.shape, values.dtype.str)).encode())
        for start, strip in _strips(values):
            target[start : start + len(strip)] = strip
            digest.update(np.ascontiguousarray(strip))
        target.flush()

    return _write_named(folder, name, ".npy", write)


def write_sparse(values: Any, folder: Path, name: str) -> Path:
    """Write a sparse array of samples, shape (n, d), as ``.npz`` of compressed rows.

    Parameters
    ----------
    values
        Sparse array or matrix of scipy.
    folder, name
        As of `write_raster`.

    Raises
    ------
    SceneError
        Its values are no real numbers.
    OutputError
        It cannot be written.
    """
    table = csr_array(values)
    if table.dtype.kind not in "uifb":
        raise SceneError(
            f"scene: a sparse array of type {table.dtype}; real numbers are needed. Convert it with .astype."
        )

    def write(path: Path, digest: Any) -> None:
        digest.update(repr((table.shape, table.dtype.str)).encode())
        for part in (table.indptr, table.indices, table.data):
            digest.update(np.ascontiguousarray(part))
        save_npz(path, table, compressed=False)

    return _write_named(folder, name, ".npz", write)


def as_pandas(given: Any, what: str) -> Any:
    """Return a table or column of polars, pyarrow and others as that of pandas; other objects as they are.

    Parameters
    ----------
    given
        Anything.
    what
        What errors call it.

    Raises
    ------
    SceneError
        It is a data frame of dask.
    MissingExtraError
        polars needs pyarrow for it.
    """
    if hasattr(given, "divisions"):
        raise SceneError(
            f"{what}: a data frame of dask, whose length is not known. Call its method compute() first, or "
            "write it to a Parquet file and give its path; .to_dask_array(lengths=True) keeps the values "
            "without the names of the columns."
        )
    # Arrays of xarray would become data frames whose columns are coordinates.
    if hasattr(given, "dims") or not hasattr(given, "to_pandas"):
        return given
    try:
        return given.to_pandas()
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", "tables", f"A table of {_package(given)}") from None


def _package(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def has_named_columns(given: Any) -> bool:
    """Whether a table is a data frame of pandas whose columns have names."""
    return hasattr(given, "iloc") and all(
        isinstance(name, str) for name in getattr(given, "columns", [None])
    )


def write_columns(frame: Any, folder: Path, name: str) -> Path:
    """Write a data frame under the names of its columns: as Parquet, or as CSV without the extra "tables".

    Parameters
    ----------
    frame
        A data frame for which `has_named_columns` is true.
    folder, name
        As of `write_raster`.

    Raises
    ------
    SceneError
        Columns have the same name.
    OutputError
        It cannot be written.
    """
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise SceneError(f"scene: several columns are called {twice!r}. Rename or drop one.")
    frame = frame.infer_objects()
    for column in frame.select_dtypes("object").columns:
        frame[column] = frame[column].map(str, na_action="ignore")
    parquet = importlib.util.find_spec("pyarrow") is not None

    def write(path: Path, digest: Any) -> None:
        if parquet:
            frame.to_parquet(path, index=False, engine="pyarrow", row_group_size=_GROUP_ROWS)
        else:
            frame.to_csv(path, index=False)
        with path.open("rb") as stream:
            while block := stream.read(_STRIP_BYTES):
                digest.update(block)

    return _write_named(folder, name, ".parquet" if parquet else ".csv", write)


def write_frame(frame: Any, folder: Path, name: str, field: str | None = None) -> Path:
    """Write geometries and the columns of a GeoDataFrame that can hold the class as GeoPackage.

    Parameters
    ----------
    frame
        Geometries with classes; its coordinate system goes with it.
    folder, name
        As of `write_raster`.
    field
        The column that holds the class; None if it is not given.

    Raises
    ------
    SceneError
        It has no rows, or no column that could hold a class.
    OutputError
        It cannot be written.
    """
    frame = _with_classes(frame, field)
    # A column of this name would be taken for the numbers of the features.
    options = {"FID": "_feature"} if "fid" in map(str.lower, frame.columns) else {}

    def write(path: Path, digest: Any) -> None:
        digest.update(frame.to_wkb().to_csv().encode() + repr(frame.crs).encode())
        frame.to_file(
            path,
            driver="GPKG",
            layer="labels",
            engine="pyogrio",
            index=False,
            layer_options=options,
        )

    return _write_named(folder, name, ".gpkg", write)


def _with_classes(frame: Any, field: str | None) -> Any:
    """Return a GeoDataFrame with the columns that classes may be read from, among them those of the index."""
    if not hasattr(frame, "columns"):
        raise SceneError(
            "labels: geometries without classes. Give a GeoDataFrame with a column of class numbers or names."
        )
    if not len(frame):
        raise SceneError(
            "labels: the GeoDataFrame has no rows. Give points or polygons with classes."
        )
    geometry = frame.geometry.name
    frame = _with_index(frame)
    frame = frame.rename(columns={old: str(old) for old in frame.columns if old != geometry})
    if not frame.columns.is_unique:
        raise SceneError(
            "labels: the GeoDataFrame has columns of the same name. Rename or drop one."
        )
    columns = attributes(frame.drop(columns=geometry))
    kept = [one for one in possible_attributes(columns) if one.lower() != "fid" or one == field]
    kept += [field] if field in columns and field not in kept else []
    if not kept:
        choose_attribute(columns, field, "labels")  # says why
    return frame[[*kept, geometry]].reset_index(drop=True)


def holds_points(labels: Any) -> bool:
    """Whether labels are a data frame of pandas with a row of coordinates and class for each point."""
    if not (hasattr(labels, "to_csv") and hasattr(labels, "columns")):
        return False
    # Points are read by pandas, which takes 30 MiB that a run without tables does not need.
    from eigenscape.scenes.labels.points import coordinate_columns

    names = [*map(str, labels.columns), *map(str, labels.index.names)]
    return coordinate_columns(names) is not None


def write_points(frame: Any, folder: Path, name: str) -> Path:
    """Write a data frame of points with coordinates and classes as CSV; return its path.

    Parameters
    ----------
    frame
        A data frame for which `holds_points` is true.
    folder, name
        As of `write_raster`.

    Raises
    ------
    OutputError
        It cannot be written.
    """

    def write(path: Path, digest: Any) -> None:
        _with_index(frame).to_csv(path, index=False)
        digest.update(path.read_bytes())

    return _write_named(folder, name, ".csv", write)


def _with_index(frame: Any) -> Any:
    """Return a data frame whose named levels of the index are columns."""
    levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=levels) if levels else frame


def _write_named(folder: Path, name: str, ending: str, write: Callable[[Path, Any], None]) -> Path:
    """Write a file beside its place, name it by its content, and leave one that is there as it is."""
    digest = hashlib.blake2b(digest_size=6)
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(suffix=ending, prefix=".", dir=folder)
        os.close(handle)
        os.unlink(unfinished)  # some drivers refuse files that are there
        try:
            write(Path(unfinished), digest)
            path = folder / f"{name}-{digest.hexdigest()}{ending}"
            if not path.exists():
                os.replace(unfinished, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
    return path
