"""A finished run as xarray Datasets: lazy, labelled, with the scene's georeference."""

import json
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import xarray
from numpy.typing import NDArray

from eigenscape.base.process.progress import Silent
from eigenscape.errors import InputError
from eigenscape.export.canvas import Canvas
from eigenscape.export.legends.flags import class_flags
from eigenscape.export.report.source import Source
from eigenscape.scenes.ingest.places import source_pixels
from eigenscape.scenes.types import Grid
from eigenscape.store.manifest import HasPath, path_of, read_manifest
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run
from eigenscape.workflow.finished.lazy import lazy_array, still_there
from eigenscape.workflow.finished.reports import source_of

_ARRAYS = {
    "values": "samples/values",
    "origin": "samples/origin",
    "features": "features/values",
    "neighbor_index": "neighbors/index",
    "neighbor_distance": "neighbors/distance",
    "component": "graph/component",
    "eigenvector": "spectrum/vector",
    "eigenvalue": "spectrum/value",
    "residual": "spectrum/residual",
    "label": "labels/given",
    "class": "labels/class",
    "confidence": "labels/confidence",
    "entropy": "labels/entropy",
}


_IMAGES = {
    "class": "labels/class",
    "label": "labels/given",
    "confidence": "labels/confidence",
    "entropy": "labels/entropy",
}
_WHOLE = ("labels/class", "labels/given")
_STRIP_BYTES = 4 * 2**20


def spatial_reference(grid: Grid) -> xarray.Variable:
    """Return the coordinate ``spatial_ref`` of a grid, as the CF conventions and GDAL write it."""
    attributes: dict[str, Any] = {}
    if grid.crs_wkt:
        attributes = {"crs_wkt": grid.crs_wkt, "spatial_ref": grid.crs_wkt}
    if grid.transform:
        a, b, c, d, e, f = grid.transform
        attributes["GeoTransform"] = " ".join(map(repr, (c, a, b, f, d, e)))
    return xarray.Variable((), 0, attributes)


def open_run(run: str | Path | HasPath) -> xarray.Dataset:
    """Open the finished arrays of a run lazily: values are read when they are computed.

    Files are not checked; `eigenscape.verify` does that.

    Parameters
    ----------
    run
        Run directory, or the result of `eigenscape.run`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``sample``, ``band``, ``feature``, ``neighbor``, ``mode``; coordinates ``row`` and
        ``column`` of every sample (with ``scene.samples`` the row in the whole table), ``y`` and ``x`` of the
        centre of its pixel and ``spatial_ref`` (as rioxarray reads it) where the scene has a georeference,
        and ``wavelength`` of every band in nanometres, if the scene has it. ``attrs`` hold ``height``,
        ``width``, ``crs_wkt`` and ``transform`` (if the scene has them), and ``class_names``, JSON text:
        ``json.loads(ds.attrs["class_names"])`` gives the names by number, ``{"1": "corn"}``. ``ds.to_netcdf``
        writes all of it. For an image of a variable, use ``ds["class"].set_index(sample=("row",
        "column")).unstack()``. If there is an ``origin`` (band), it was subtracted from ``values``.
        ``values`` (and sparse ``features``) of a sparse table are omitted, because xarray has no lazy sparse
        array; `eigenscape.store.rows.Rows` reads them.

    Raises
    ------
    InputError
        There is no run in that directory, or it has not read its scene yet.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> path = eigenscape.run(job).path
    >>> arrays = eigenscape.open_run(path)
    >>> arrays["class"].set_index(sample=("row", "column")).unstack().shape
    (40, 40)
    """
    # Absolute, as arrays are read when the process may be in another directory.
    path = path_of(run).absolute()
    ingest = read_manifest(path)["stages"].get("ingest") if path.is_dir() else None
    if ingest is None:
        raise InputError(
            f"{path}: no run directory, or a run that has not read its scene yet. Give a directory "
            "that `eigenscape run` made, such as runs/<job name>-<key>."
        )
    summary = ingest["summary"]
    grid, bands = summary["grid"], summary["bands"]
    store = Run(path, create=False)
    variables: dict[str, Any] = {}
    for name, place in _ARRAYS.items():
        if store.has(place) and not Rows(str(store.array_path(place))).sparse:
            names = store.open(place).metadata.dimension_names
            variables[name] = (names, lazy_array(store.array_path(place)))
    pixel = lazy_array(store.array_path("samples/pixel"))
    if "subset" in summary:
        pixel = pixel.map_blocks(partial(source_pixels, summary), meta=pixel._meta)
    row, column = pixel // grid["width"], pixel % grid["width"]
    coordinates: dict[str, Any] = {"row": ("sample", row), "column": ("sample", column)}
    if grid["transform"] is not None:
        a, b, c, d, e, f = grid["transform"]
        across, down = column + 0.5, row + 0.5
        coordinates["x"] = ("sample", a * across + b * down + c)
        coordinates["y"] = ("sample", d * across + e * down + f)
        coordinates["spatial_ref"] = spatial_reference(Grid.from_json(grid))
    if bands["wavelength"] is not None:
        good = [w for w, keep in zip(bands["wavelength"], bands["good"], strict=True) if keep]
        coordinates["wavelength"] = ("band", good)
    # Values that an attribute of NetCDF can have.
    attributes = {name: value for name, value in grid.items() if value is not None}
    attributes["class_names"] = json.dumps(summary["class_names"], ensure_ascii=False)
    return xarray.Dataset(variables, coordinates, {**attributes, "run": str(path)})


def open_maps(run: str | Path | HasPath) -> xarray.Dataset:
    """Open the maps of a finished run as lazy images: values are read when they are computed.

    Parameters
    ----------
    run
        Run directory, or the result of `eigenscape.run`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``y``, ``x`` and ``mode``, on the grid of the class map (for a scene in sensor geometry,
        the grid of its map). Variables, if the run has them: ``class`` (0: none; with the CF attributes
        ``flag_values`` and ``flag_meanings``), ``label``, ``confidence``, ``entropy``, and ``eigenvector``
        (mode, y, x; without the constant ones, with the coordinate ``eigenvalue``). ``spatial_ref`` is in the
        form that rioxarray reads; ``y`` and ``x`` are the centres of the pixels, if the grid is not rotated.

    Raises
    ------
    InputError
        There is no finished run in that directory, or it is one of a table, which has no images.

    Examples
    --------
    >>> import eigenscape
    >>> job = eigenscape.parse_job({"scene": {"path": "scene.tif", "labels": "scene_labels.tif"}})
    >>> maps = eigenscape.open_maps(eigenscape.run(job))
    >>> maps["class"].shape, maps.spatial_ref.attrs["crs_wkt"][:6]
    ((40, 40), 'PROJCS')
    """
    path = path_of(run).absolute()
    source = source_of(path, Silent())
    grid = source.grid
    if grid.is_table:
        raise InputError(f"{path}: a run of a table has no images. eigenscape.open_run opens it.")
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {"spatial_ref": spatial_reference(grid)}
    for name, place in _IMAGES.items():
        if source.has(place):
            variables[name] = (("y", "x"), _image(path, grid, place, source.open(place).dtype))
    if "class" in variables:
        variables["class"] = (*variables["class"], _flags(source))
    if source.has("spectrum/vector"):
        first = int(source.summary("spectrum")["null_vectors"])
        values = np.asarray(source.open("spectrum/value")[...])
        modes = [
            _image(path, grid, "spectrum/vector", np.dtype(np.float32), mode)
            for mode in range(first, len(values))
        ]
        if modes:
            variables["eigenvector"] = (("mode", "y", "x"), dask.array.stack(modes))
            coordinates["eigenvalue"] = (("mode",), values[first:])
    if grid.transform is not None and not (grid.transform[1] or grid.transform[3]):
        a, _, c, _, e, f = grid.transform
        coordinates["x"] = c + a * (np.arange(grid.width) + 0.5)
        coordinates["y"] = f + e * (np.arange(grid.height) + 0.5)
    return xarray.Dataset(variables, coordinates, {"run": str(path)})


def open_arrays(path: Path) -> xarray.Dataset:
    """Open class, confidence and eigenvectors of a finished run: images, or columns of a table.

    Parameters
    ----------
    path
        The run directory.

    Returns
    -------
    xarray.Dataset
        As from `open_maps`. For a table, the dimension is ``sample`` instead of ``y`` and ``x``, and ``mode``
        is the last dimension of ``eigenvector``.
    """
    source = source_of(path, Silent())
    if not source.grid.is_table:
        return open_maps(path)
    arrays = open_run(path)
    arrays = arrays[[name for name in (*_IMAGES, "eigenvector") if name in arrays]]
    if "class" in arrays:
        arrays["class"].attrs.update(_flags(source))
    if "eigenvector" in arrays:
        values = np.asarray(source.open("spectrum/value")[...])
        arrays = arrays.assign_coords(eigenvalue=("mode", values))
        arrays = arrays.isel(mode=slice(int(source.summary("spectrum")["null_vectors"]), None))
    return arrays


def _flags(source: Source) -> dict[str, Any]:
    """Return numbers and names of the classes as CF has them."""
    if not source.classes:
        return {}
    return class_flags({one.number: one.name for one in source.classes})


def _image(path: Path, grid: Grid, name: str, dtype: Any, mode: int | None = None) -> Any:
    """Return an array of samples as a lazy image, in strips of rows."""
    dtype = np.dtype(dtype)
    rows = max(1, _STRIP_BYTES // (grid.width * dtype.itemsize))
    chunks = dask.array.core.normalize_chunks((rows, -1), (grid.height, grid.width))
    return dask.array.map_blocks(
        _Strips(path), name, mode, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype)
    )


class _Strips:
    """Reads strips of images; in another process it opens the run anew."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def canvas(self) -> Canvas:
        source = source_of(self.path, Silent())
        return Canvas(source, source.grid)

    def __call__(
        self, name: str, mode: int | None, block_info: Mapping[Any, Any] | None = None
    ) -> NDArray[Any]:
        assert block_info is not None, "dask passes it"
        start, stop = block_info[None]["array-location"][0]
        fill = 0 if name in _WHOLE else np.nan
        with still_there(self.path / "store.zarr" / name):
            if mode is None:
                return self.canvas.strip(name, start, stop, fill)
            return np.asarray(self.canvas.strip(name, start, stop, fill, slice(mode, mode + 1))[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)
