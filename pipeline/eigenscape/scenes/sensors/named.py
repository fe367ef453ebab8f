"""Scenes in NetCDF and HDF5 files by the names of their axes, rows in the order of the file.

GDAL takes the last two axes for rows and columns, and reads rows whose coordinate rises in reverse, while
arrays of labels and of masks count those of the file.
"""

from dataclasses import replace
from pathlib import Path

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.formats.hdf5 import Hdf5Bands, Hdf5File
from eigenscape.scenes.formats.named.arrays import (
    Known,
    NamedArray,
    is_upright,
    packing_of,
    rows_rise,
)
from eigenscape.scenes.formats.named.lists import band_lists
from eigenscape.scenes.formats.named.netcdf import ClassicBands, netcdf_kind
from eigenscape.scenes.formats.named.places import place_image
from eigenscape.scenes.formats.rasters.metadata import note_unplaced
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster, read_grid
from eigenscape.scenes.sensors.contents import BandSource, Contents, Cube, ProductScene
from eigenscape.scenes.sensors.product import assemble
from eigenscape.scenes.types import Grid

_WORDS = {"r": "rows", "c": "columns", "b": "bands"}


def open_named(
    path: str,
    address: str,
    array: NamedArray,
    known: Known,
    axes: str,
    options: SceneOptions,
    others: str = "",
) -> ProductScene:
    """Open an array of a file as a scene, by the names of its axes.

    Parameters
    ----------
    path
        A NetCDF or HDF5 file.
    address
        What GDAL opens for the array: of a grid mapping it reads the parameters too.
    array
        The one that is the scene.
    known
        The arrays of the file.
    axes
        Of `stored_axes`.
    options
        ``[scene]`` of the job.
    others
        What else the file holds, to be told behind the name of the array.

    Raises
    ------
    SceneError
        The file is damaged, or no band is left.
    """
    assert array.axes is not None, "of which the order is known"
    if 0 in array.shape:
        raise SceneError(
            f"{path}: the array {array.name} has the shape {array.shape}, which is empty. Choose another "
            "scene.variable."
        )
    source = _source(path, array, axes)
    grid, placed = _place(path, address, array, known, source.size)
    packing, lists = packing_of(path, array), band_lists(array, known)
    bad = () if lists is None else tuple(n for n, good in enumerate(lists.good) if not good)
    cube = Cube(
        source,
        wavelength=lists.wavelength if lists else None,
        fwhm=lists.fwhm if lists else None,
        scale=packing.scale,
        offset=packing.offset,
        fill=packing.nodata,
        limits=packing.limits,
        dropped={"marked by the list of good bands in the file": bad},
    )
    stored = " x ".join(f"{size:,}" for size in array.shape)
    order = " x ".join(_WORDS.get(name, axis) for name, axis in zip(axes, array.axes, strict=True))
    note = f"array {array.name} of {Path(path).name}: {stored} {array.dtype}, {order}{others}"
    notes = (note, *placed, *packing.told(), *(lists.notes if lists else ()))
    return assemble(path, Contents("NetCDF", grid, (cube,), notes=notes), options)


def _place(
    path: str, address: str, array: NamedArray, known: Known, size: tuple[int, int]
) -> tuple[Grid, tuple[str, ...]]:
    """Return the grid of an array by its coordinates, else by what GDAL makes of them, and notes."""
    with open_raster(address) as dataset:
        told, unplaced = read_grid(dataset, path), note_unplaced(dataset, path)
    grid, notes = place_image(path, array, known, Grid(*size, told.crs_wkt))
    if grid.transform is not None:
        return grid, notes
    if told.transform is None or not is_upright(array, known):
        return grid, notes or (() if unplaced is None else (unplaced,))
    a, b, c, d, e, f = told.transform
    if rows_rise(array, known):
        b, c, e, f = -b, c + b * size[0], -e, f + e * size[0]
    return replace(grid, transform=(a, b, c, d, e, f)), ()


def _source(path: str, array: NamedArray, axes: str) -> BandSource:
    if netcdf_kind(path) == "classic":
        return ClassicBands(
            path=path, variable=array.name, axes=axes, shape=array.shape, dtype=array.dtype.name
        )
    file = Hdf5File(path)
    with file.open() as opened:
        bands = Hdf5Bands.of(file, opened, array.name, axes)
        return replace(bands, dtype=array.dtype.name)
