"""Where the pixels of an array in a zarr store are: its axes, and the coordinates beside it.

Structure: xarray and the CF conventions have an array of coordinates named as each axis, and a grid mapping
(``spatial_ref``) with ``crs_wkt`` and ``GeoTransform``, as our own class maps have. The names of the axes are
in the metadata of zarr 3, and in the attribute ``_ARRAY_DIMENSIONS`` of zarr 2.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rasterio.crs import CRS
from rasterio.errors import CRSError

from eigenscape.scenes.formats.arrays.zarrstores import axes_of, image_order, open_zarr
from eigenscape.scenes.formats.rasters.rasterfiles import unreadable_crs
from eigenscape.scenes.grids import COLUMN_AXES, ROW_AXES, even_steps, transform_of_centres
from eigenscape.scenes.types import Grid


def place_in_store(path: str, variable: str | None, grid: Grid) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid of an image in a store with its place, and what a user should know.

    Parameters
    ----------
    path, variable
        The array.
    grid
        Its rows and columns.

    Raises
    ------
    SceneError
        The coordinate system cannot be read.
    """
    import zarr

    store: Any = zarr.open(path, mode="r")
    if variable is None:
        return grid, ()
    array = store[variable]
    axes = axes_of(array)
    if axes is None:
        return grid, ()
    rows, columns = (axes[place] for place in image_order(array)[:2])
    if rows.lower() not in ROW_AXES or columns.lower() not in COLUMN_AXES:
        return grid, ()
    folder = variable.rpartition("/")[0]
    within = f"{folder}/" if folder else ""
    mapping = _mapping(store, within, dict(array.attrs))
    crs = _crs(path, mapping)
    known = [f"{within}{name}" in store for name in (rows, columns)]
    try:
        told = tuple(map(float, str(mapping["GeoTransform"]).split()))
        c, a, b, f, d, e = told
    except (KeyError, ValueError):
        a = b = c = d = e = f = 0.0
    if a and (b or d or not all(known)):
        return Grid(grid.height, grid.width, crs, (a, b, c, d, e, f)), ()
    if not all(known):
        return Grid(grid.height, grid.width, crs), ()
    try:
        x, y = (
            even_steps(np.asarray(open_zarr(path, f"{within}{name}")[...], np.float64))
            for name in (columns, rows)
        )
    except ValueError as error:
        return Grid(grid.height, grid.width, crs), (
            f"the place of the pixels is not known: their coordinates are {error}",
        )
    transform = transform_of_centres(x, y, (a or None, e or None))
    return Grid(grid.height, grid.width, crs, transform), ()


def _mapping(store: Any, within: str, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of the grid mapping."""
    for name in (attributes.get("grid_mapping"), "spatial_ref"):
        if name is not None and f"{within}{name}" in store:
            return dict(store[f"{within}{name}"].attrs)
    return {}


def _crs(path: str, mapping: Mapping[str, Any]) -> str | None:
    text = mapping.get("crs_wkt") or mapping.get("spatial_ref")
    if not text:
        return None
    try:
        return str(CRS.from_wkt(str(text)).to_wkt())
    except CRSError as error:
        raise unreadable_crs(path, str(error)) from error
