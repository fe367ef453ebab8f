"""Cubes and labels in memory, written as files that a job can name.

A file is named by its content, so that the same cube is written once and a second run of the same job
takes over what the first one has finished.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.whole import explain_write_errors
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.bandlists import to_nanometers
from eigenscape.scenes.formats.rasters.rasterfiles import expect_missing_georeference
from eigenscape.scenes.labels.vectorclasses import classify
from eigenscape.scenes.types import Grid

_STRIP_BYTES = 32 * 2**20
_ROW_AXES, _COLUMN_AXES = (
    ("y", "row", "rows", "lat", "latitude", "northing"),
    ("x", "column", "columns", "lon", "longitude", "easting"),
)
_UNEVEN = 1e-3
"""Share of a pixel by which coordinates may differ from an even grid."""


@dataclass(frozen=True)
class Raster:
    """An array on a grid, as a file of it is written.

    Attributes
    ----------
    values
        Array or dask array, shape (rows, columns, bands).
    grid
        Where its pixels are.
    wavelength
        Centre of each band in nanometres; None where they are not known.
    nodata
        Value that marks missing pixels; None for none.
    """

    values: Any
    grid: Grid
    wavelength: tuple[float, ...] | None = None
    nodata: float | None = None


def raster_of(given: Any, what: str = "scene") -> Raster:
    """Return a cube, or labels, with its georeference.

    Parameters
    ----------
    given
        `xarray.DataArray` or `xarray.Dataset` (each variable is a band) with two axes in space, whose
        coordinate system is that of rioxarray or a coordinate ``spatial_ref``; or a NumPy or dask array,
        shape (rows, columns, bands) or (rows, columns).
    what
        What errors call it.

    Raises
    ------
    SceneError
        Its axes are not known, or its coordinates are no grid.
    """
    if hasattr(given, "data_vars"):
        given = given.to_dataarray("band")
    if not hasattr(given, "dims"):
        values = given if hasattr(given, "dask") else np.asarray(given)
        return Raster(*_cube(values, what))
    rows, columns = _axis(given, _ROW_AXES, what), _axis(given, _COLUMN_AXES, what)
    others = [name for name in given.dims if name not in (rows, columns)]
    if len(others) > 1:
        raise SceneError(
            f"{what}: an array with the axes {', '.join(map(str, given.dims))}; two axes in space and one "
            "of bands are needed. Select from the others first, with .isel or .sel."
        )
    values, grid = _cube(given.transpose(rows, columns, *others).data, what)
    transform = _transform(given, rows, columns, what)
    grid = Grid(grid.height, grid.width, _crs(given), transform)
    nodata = given.encoding.get(
        "_FillValue", given.attrs.get("_FillValue", given.attrs.get("nodata"))
    )
    return Raster(
        values, grid, _wavelengths(given, others), None if nodata is None else float(nodata)
    )


def numbered(labels: Any) -> tuple[Any, dict[int, str]]:
    """Return labels that are names of classes as class numbers, in alphabetical order, and the names.

    Labels that are numbers are returned as they are, without names; names are numbered as those in a file.

    Parameters
    ----------
    labels
        Array, dask array, `xarray.DataArray`, list, or series of pandas. An empty name, None and NaN mean no
        label.

    Raises
    ------
    SceneError
        Names are mixed with other values.
    """
    given = labels.data if hasattr(labels, "dims") else labels
    if getattr(getattr(given, "dtype", None), "kind", "O") in "uifb":
        return labels, {}
    values = np.asarray(given)
    if values.dtype.kind not in "USO":
        return labels, {}
    # Commands that have no data in memory would load it for nothing.
    import pandas

    # Bytes are text in ASCII.
    values = (values.astype(str) if values.dtype.kind == "S" else values).astype(object)
    values[pandas.isna(values)] = ""
    kinds = {type(value) for value in values[values != ""].tolist()}
    if kinds != {str}:
        if str in kinds:
            others = sorted(kind.__name__ for kind in kinds - {str})
            raise SceneError(
                f"labels: names of classes (str) are mixed with values of type {', '.join(others)}. Give "
                "names alone, with an empty one where there is no label, or numbers alone, with 0 there."
            )
        return labels, {}
    numbers, found = classify({"class": values.ravel()}, "class", "labels")
    numbers = numbers.reshape(values.shape)
    return (labels.copy(data=numbers) if hasattr(labels, "dims") else numbers), found


def _cube(values: Any, what: str) -> tuple[Any, Grid]:
    if values.ndim not in (2, 3) or not all(values.shape) or values.dtype.kind not in "uifb":
        raise SceneError(
            f"{what}: an array of type {values.dtype} and shape {tuple(values.shape)}; real numbers of shape "
            "(rows, columns, bands) or (rows, columns) are needed."
        )
    values = values[:, :, None] if values.ndim == 2 else values
    return values, Grid(*values.shape[:2])


def _axis(given: Any, names: Sequence[str], what: str) -> str:
    for name in given.dims:
        if str(name).lower() in names:
            return str(name)
    raise SceneError(
        f"{what}: none of its axes {', '.join(map(str, given.dims))} is called {' or '.join(names[:2])}. "
        f'Rename one: .rename({{"{given.dims[0]}": "{names[0]}"}}).'
    )


def _crs(given: Any) -> str | None:
    for name in (
        given.encoding.get("grid_mapping"),
        given.attrs.get("grid_mapping"),
        "spatial_ref",
    ):
        if name in given.coords:
            attributes = given.coords[name].attrs
            found = attributes.get("crs_wkt") or attributes.get("spatial_ref")
            return None if not found else str(found)
    return None


def _transform(
    given: Any, rows: str, columns: str, what: str
) -> tuple[float, float, float, float, float, float] | None:
    """Return the affine coefficients that the coordinates of pixel centres stand for."""
    mapped = given.coords["spatial_ref"].attrs if "spatial_ref" in given.coords else {}
    told: tuple[float | None, float | None] = (None, None)
    if "GeoTransform" in mapped:
        # GDAL's order: x of the corner first.
        c, a, b, f, d, e = map(float, str(mapped["GeoTransform"]).split())
        if b or d or not {rows, columns} <= given.coords.keys():
            return (a, b, c, d, e, f)
        told = a, e
    if not {rows, columns} <= given.coords.keys():
        return None
    (x, dx), (y, dy) = _even(given, columns, what), _even(given, rows, what)
    # One coordinate has no step: pixels are as wide as high, and rows go south.
    dx = dx or told[0] or abs(dy or told[1] or 1.0)
    dy = dy or told[1] or -abs(dx)
    return (dx, 0.0, x - dx / 2, 0.0, dy, y - dy / 2)


def _even(given: Any, axis: str, what: str) -> tuple[float, float | None]:
    """Return the first coordinate of an axis, and the step between them, None of a single one."""
    places = np.asarray(given.coords[axis], np.float64)
    if len(places) == 1:
        return float(places[0]), None
    step = float(places[-1] - places[0]) / (len(places) - 1)
    away = np.abs(places - places[0] - step * np.arange(len(places))).max()
    if not step or not away <= _UNEVEN * abs(step):
        raise SceneError(
            f"{what}: the coordinates of the axis {axis} are no even grid: they differ from one by up to "
            f"{away:.3g}, with a pixel of {abs(step):.3g}. Reproject it first, with .rio.reproject."
        )
    return float(places[0]), step


def _wavelengths(given: Any, others: Sequence[Any]) -> tuple[float, ...] | None:
    """Return the wavelengths of a coordinate along the bands, in nanometres."""
    for name in ("wavelength", "wavelengths", *others):
        found = given.coords.get(name)
        if (
            found is None
            or not others
            or found.dims != (others[0],)
            or found.dtype.kind not in "uif"
        ):
            continue
        if "wave" not in str(name).lower() and "units" not in found.attrs:
            continue  # numbers of bands
        return to_nanometers(np.asarray(found, float).tolist(), found.attrs.get("units"))
    return None


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
    kind = np.dtype(np.uint8) if values.dtype.kind == "b" else values.dtype
    place = {} if grid.transform is None else {"transform": rasterio.Affine(*grid.transform)}

    def write(path: Path, digest: Any) -> None:
        digest.update(repr((grid, raster.wavelength, raster.nodata, kind.str)).encode())
        with rasterio.open(
            path, "w", driver="GTiff", height=grid.height, width=grid.width, count=values.shape[2],
            dtype=kind, crs=grid.crs_wkt, nodata=raster.nodata, bigtiff="IF_SAFER", **place,
        ) as target:  # fmt: skip
            if raster.wavelength is not None:
                for band, centre in enumerate(raster.wavelength, 1):
                    target.update_tags(band, wavelength=centre, wavelength_units="nm")
            for start, strip in _strips(values):
                strip = np.ascontiguousarray(strip, kind)
                digest.update(strip)
                window = rasterio.windows.Window(0, start, grid.width, len(strip))
                target.write(np.moveaxis(strip, 2, 0), window=window)

    return _write_named(folder, name, ".tif", write)


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


def write_frame(frame: Any, folder: Path, name: str) -> Path:
    """Write a GeoDataFrame as GeoPackage.

    Parameters
    ----------
    frame
        Geometries with classes; its coordinate system goes with it.
    folder, name
        As of `write_raster`.
    """

    def write(path: Path, digest: Any) -> None:
        digest.update(frame.to_wkb().to_csv().encode() + repr(frame.crs).encode())
        frame.to_file(path, driver="GPKG", layer="labels", engine="pyogrio")

    return _write_named(folder, name, ".gpkg", write)


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
