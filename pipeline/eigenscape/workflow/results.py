"""A finished run as an xarray Dataset: lazy, labelled, with the scene's georeference."""

from pathlib import Path
from typing import Any

import dask.array
import xarray

from eigenscape.errors import InputError
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import read_manifest
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run
from eigenscape.workflow.objects import HasPath, path_of

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
    """Open the finished arrays of a run; nothing is read until it is computed.

    Nor checked: `eigenscape.verify` does that.

    Parameters
    ----------
    run
        Run directory, or the result of `eigenscape.run`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``sample``, ``band``, ``feature``, ``neighbor``, ``mode``; coordinates ``row`` and
        ``column`` of every sample, ``y`` and ``x`` of the centre of its pixel and ``spatial_ref`` (as
        rioxarray reads it) where the scene has a georeference, and ``wavelength`` of every band in
        nanometres, where the scene has it. ``attrs`` hold ``crs_wkt``, ``transform``, ``height``,
        ``width`` and ``class_names``. Image of a variable: ``ds["class"].set_index(sample=("row",
        "column")).unstack()``. Of a scene with ``origin`` (band), ``values`` are what it has beyond
        that. ``values`` (and ``features``, where they stay sparse) of a sparse
        table are left out: xarray has no lazy sparse array. `eigenscape.store.rows.Rows` reads them.

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
    path = path_of(run)
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
        where = store.array_path(place)
        if (where / "zarr.json").exists() and not Rows(str(where)).sparse:
            array = open_array(where)
            variables[name] = (array.metadata.dimension_names, dask.array.from_zarr(array))
    pixel = dask.array.from_zarr(store.open("samples/pixel"))
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
    attributes = {**grid, "class_names": summary["class_names"], "run": str(path)}
    return xarray.Dataset(variables, coordinates, attributes)
