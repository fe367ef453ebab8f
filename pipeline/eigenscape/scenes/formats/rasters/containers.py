"""NetCDF, HDF and other files of several rasters (GDAL's subdatasets): which of them is the scene."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eigenscape.errors import SceneError
from eigenscape.scenes.files.outside import source_file
from eigenscape.scenes.formats.named.arrays import Known, NamedArray, image_axes, is_upright
from eigenscape.scenes.formats.named.netcdf import netcdf_arrays
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster

SUFFIXES = {".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".he5", ".hdf", ".h4"}
"""Endings of files that hold several rasters as a rule."""

Size = tuple[int, int]

_SHAPE = re.compile(r"\[(\d+(?:x\d+)*)\]")


@dataclass(frozen=True)
class Layer:
    """One raster of a file.

    Attributes
    ----------
    name
        As the file calls it.
    address
        What GDAL opens.
    shape
        Bands (of any number of axes), rows and columns; empty where the file does not say.
    """

    name: str
    address: str
    shape: tuple[int, ...]

    @property
    def bands(self) -> int | None:
        """Bands of what could be a scene; None of what could not."""
        if len(self.shape) < 2 or 0 in self.shape or math.prod(self.shape[-2:]) == 1:
            return None
        return math.prod(self.shape[:-2])

    def __str__(self) -> str:
        return f"{self.name} ({' x '.join(map(str, self.shape)) or 'of unknown size'})"


def find_layer(path: str, variable: str | None, known: Known) -> Layer | None:
    """Find the raster of a file that is the scene: the one named, or else that of most bands.

    Parameters
    ----------
    path
        A file that GDAL opens.
    variable
        Its name, of which the last part will do, or None.
    known
        Arrays of the file, whose names of axes say which are bands; empty where nothing is known.

    Returns
    -------
    Layer or None
        None for a file that is one raster.

    Raises
    ------
    SceneError
        The file is damaged, there is no such raster, or several could be meant.
    """
    layers = list_layers(path, known)
    if not layers:
        return None
    if variable is not None:
        return _named(path, layers, variable, "scene.variable")
    most = max((one.bands or 0 for one in layers), default=0)
    found = [one for one in layers if one.bands == most]
    if len(found) != 1 or not all(one.shape for one in layers):
        count = f"{len(found)} that could be" if found else "none that is known to be"
        raise SceneError(
            f"{path}: holds {count} the scene. Name it in scene.variable. {_listing(layers)}"
        )
    return found[0]


def find_labels_layer(path: str, variable: str | None, size: Size) -> Layer | None:
    """Find the raster of a file that has the labels of a scene: the one named, or the only one that fits.

    Parameters
    ----------
    path
        A file that GDAL opens.
    variable
        Its name, of which the last part will do, or None.
    size
        Rows and columns of the scene.

    Returns
    -------
    Layer or None
        None for a file that is one raster.

    Raises
    ------
    SceneError
        The file is damaged, there is no such raster, or not exactly one fits.
    """
    layers = list_layers(path, netcdf_arrays(path))
    if not layers:
        return None
    if variable is not None:
        return _named(path, layers, variable, "scene.labels_variable")
    fitting = [one for one in layers if one.bands == 1 and one.shape[-2:] == size]
    if len(fitting) != 1:
        names = ", ".join(sorted(one.name for one in fitting)) or f"none. {_listing(layers)}"
        raise SceneError(
            f"{path}: has {len(layers)} rasters, and it is unknown which of them are the labels. Name one in "
            f"scene.labels_variable. On the grid of the scene, {size[0]} x {size[1]}, with one band: "
            f"{names}"
        )
    return fitting[0]


def check_upright(path: str, array: NamedArray, known: Known, *, key: str) -> None:
    """Refuse an array whose axes are not rows and columns in this order, as GDAL takes them.

    Raises
    ------
    SceneError
        They are known to have another order.
    """
    order = image_axes(array, known)
    if array.axes is None or order is None or is_upright(array, known):
        return
    wanted = ", ".join(f'"{array.axes[place]}"' for place in (*order[2:], *order[:2]))
    raise SceneError(
        f"{path}: {key}, the array {array.name}, has the axes ({', '.join(array.axes)}); rows x columns are "
        f"needed. Write it so, for example in xarray with .transpose({wanted})."
    )


def _named(path: str, layers: Sequence[Layer], variable: str, key: str) -> Layer:
    found = [one for one in layers if one.name == variable]
    found = found or [one for one in layers if one.name.rpartition("/")[2] == variable]
    if len(found) != 1:
        many = f"{len(found)} rasters" if found else "no raster"
        raise SceneError(f"{path}: has {many} {variable!r} ({key}). {_listing(layers)}")
    return found[0]


def _listing(layers: Sequence[Layer]) -> str:
    return f"Rasters in the file (bands x rows x columns): {', '.join(map(str, layers))}."


def describe_layer(path: str, layer: Layer) -> str:
    """Return which raster of a file was taken."""
    shape = " x ".join(f"{size:,}" for size in layer.shape)
    return f"raster {layer.name} of {Path(path).name}: {shape}, bands x rows x columns"


def told_others(path: str, layer: Layer, known: Known) -> str:
    """Return what else of a file could have been taken, in brackets; "" for nothing."""
    others = [
        one.name
        for one in list_layers(path, known)
        if one.name != layer.name and one.bands is not None
    ]
    listed = " or ".join(sorted(others))
    return f" (the most bands; for {listed} set scene.variable)" if others else ""


def list_layers(path: str, known: Known) -> list[Layer]:
    """Return the rasters of a file of several, as GDAL lists them; none for a file that is one raster."""
    with open_raster(path) as dataset:
        tags: Mapping[str, str] = {} if dataset.count else dataset.tags(ns="SUBDATASETS")
    layers = []
    for number in range(1, len(tags) // 2 + 1):
        address = tags.get(f"SUBDATASET_{number}_NAME", "")
        shape = _SHAPE.search(tags.get(f"SUBDATASET_{number}_DESC", ""))
        name = address.partition(path)[2].strip('":/')
        if name:
            sizes = tuple(map(int, shape[1].split("x"))) if shape else ()
            layers.append(Layer(name, address, _bands_first(sizes, known.get(name), known)))
    return layers


def _bands_first(sizes: tuple[int, ...], array: NamedArray | None, known: Known) -> tuple[int, ...]:
    """Return the shape of a raster as bands, rows and columns, if the names of its axes say them."""
    order = None if array is None or array.shape != sizes else image_axes(array, known)
    if order is None:
        return sizes
    rows, columns, *others = order
    return tuple(sizes[place] for place in (*others, rows, columns))


def named_array(path: str) -> tuple[NamedArray | None, Known]:
    """Return what a NetCDF or HDF5 file says of the one raster that GDAL opens, and of all its arrays."""
    known = netcdf_arrays(source_file(path))
    return only_array(path, known), known


def only_array(path: str, known: Known) -> NamedArray | None:
    """Return what is known of the array of a file that is one raster."""
    if not known:
        return None
    with open_raster(path) as dataset:
        name = str(dataset.tags(1).get("NETCDF_VARNAME")) if dataset.count else ""
    if name in known:
        return known[name]
    found = [one for one in known.values() if len(one.shape) > 1]
    return found[0] if len(found) == 1 else None
