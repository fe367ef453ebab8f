"""A finished run as an xarray Dataset: lazy, labelled, with the scene's georeference."""

from pathlib import Path

import dask.array
import xarray

from eigenscape.errors import InputError
from eigenscape.store.arrays import open_array
from eigenscape.store.manifest import read_manifest
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

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


def open_run(path: str | Path) -> xarray.Dataset:
    """Open the finished arrays of a run; nothing is read until it is computed.

    Nor checked: `eigenscape.verify` does that.

    Parameters
    ----------
    path
        Run directory.

    Returns
    -------
    xarray.Dataset
        Dimensions ``sample``, ``band``, ``feature``, ``neighbor``, ``mode``; coordinates ``row`` and
        ``column`` of every sample (and ``wavelength`` of every band in nanometres, where the scene
        has it). ``attrs`` hold ``crs_wkt``, ``transform``, ``height``, ``width`` and
        ``class_names``. Image of a variable: ``ds["class"].set_index(sample=("row",
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
    path = Path(path)
    ingest = read_manifest(path)["stages"].get("ingest") if path.is_dir() else None
    if ingest is None:
        raise InputError(
            f"{path}: no run directory, or a run that has not read its scene yet. Give a directory "
            "that `eigenscape run` made, such as runs/<job name>-<key>."
        )
    summary = ingest["summary"]
    grid, bands = summary["grid"], summary["bands"]
    run = Run(path, create=False)
    variables = {}
    for name, place in _ARRAYS.items():
        where = run.array_path(place)
        if (where / "zarr.json").exists() and not Rows(str(where)).sparse:
            array = open_array(where)
            variables[name] = (array.metadata.dimension_names, dask.array.from_zarr(array))
    pixel = dask.array.from_zarr(run.open("samples/pixel"))
    coordinates = {
        "row": ("sample", pixel // grid["width"]),
        "column": ("sample", pixel % grid["width"]),
    }
    if bands["wavelength"] is not None:
        good = [w for w, keep in zip(bands["wavelength"], bands["good"], strict=True) if keep]
        coordinates["wavelength"] = ("band", good)
    attributes = {**grid, "class_names": summary["class_names"], "run": str(path)}
    return xarray.Dataset(variables, coordinates, attributes)
