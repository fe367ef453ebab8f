"""Windows of the two arrays of a geolocation lookup, from HDF5 and NetCDF files and from rasters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster
from eigenscape.scenes.types import Geolocation, LookupArray

F8 = NDArray[np.float64]


def lookup_shape(geolocation: Geolocation) -> tuple[int, int]:
    """Return rows and columns of both arrays of a lookup.

    Raises
    ------
    SceneError
        They cannot be opened, have not two axes, or differ.
    """
    one, other = (_shape(array) for array in (geolocation.x, geolocation.y))
    if one != other:
        raise SceneError(
            f"{geolocation.x.path}: its lookup has {one[0]} x {one[1]} columns (or eastings) and "
            f"{other[0]} x "
            f"{other[1]} rows (or northings); both have one size. Copy or download it again."
        )
    return one


def _shape(array: LookupArray) -> tuple[int, int]:
    if isinstance(array.band, int):
        with open_raster(array.path) as dataset:
            if not 1 <= array.band <= dataset.count:
                raise SceneError(
                    f"{array.path}: has {dataset.count} bands, and a lookup needs its columns (or "
                    "eastings) in "
                    "the first one and its rows (or northings) in the second one. Give a GLT or an IGM."
                )
            return dataset.height, dataset.width
    shape = _with_dataset(array, lambda data: tuple(data.shape))
    if len(shape) != 2:
        raise SceneError(f"{array.path}: {array.band} has {len(shape)} axes; a lookup has two.")
    return int(shape[0]), int(shape[1])


def read_window(array: LookupArray, rows: tuple[int, int], columns: tuple[int, int]) -> F8:
    """Return a window of an array, NaN where nothing is known.

    Parameters
    ----------
    array
        The array.
    rows, columns
        First row and the one after the last, and so of columns.

    Raises
    ------
    SceneError
        It cannot be read.
    """
    stored: Any
    if isinstance(array.band, int):
        window = Window(columns[0], rows[0], columns[1] - columns[0], rows[1] - rows[0])
        with open_raster(array.path) as dataset:
            stored = dataset.read(array.band, window=window)
    else:
        stored = _with_dataset(array, lambda data: data[slice(*rows), slice(*columns)])
    stored = np.asarray(stored)
    if stored.dtype.kind not in "uif":
        raise SceneError(
            f"{array.path}: the lookup {array.band} holds {stored.dtype}; it has to be numbers. Give a "
            "GLT or an IGM of this scene."
        )
    values: F8 = stored.astype(np.float64)
    if array.fill is not None:
        # As stored: -3.4e38 in single precision is another number in double.
        with np.errstate(over="ignore", invalid="ignore"):
            values[stored == np.asarray(array.fill).astype(stored.dtype)] = np.nan
    return values


def _with_dataset(array: LookupArray, work: Callable[[Any], Any]) -> Any:
    import h5py

    try:
        with h5py.File(array.path, "r") as file:
            return work(file[array.band])
    except (OSError, KeyError, RuntimeError, AttributeError, ValueError, TypeError) as error:
        raise SceneError(
            f"{array.path}: {array.band} cannot be read ({error}). Copy or download the file again."
        ) from error


def local_files(array: LookupArray) -> tuple[str, ...]:
    """Return the file of an array, where it is one of this machine's."""
    return (array.path,) if Path(array.path).is_file() else ()
