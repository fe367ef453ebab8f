"""Windows of the two arrays of a geolocation lookup, from HDF5 and NetCDF files and from rasters."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.rasterfiles import open_raster
from eigenscape.scenes.types import LookupArray

F8 = NDArray[np.float64]


def lookup_shape(array: LookupArray) -> tuple[int, int]:
    """Return rows and columns of an array.

    Raises
    ------
    SceneError
        It cannot be opened, or has not two axes.
    """
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
    if isinstance(array.band, int):
        window = Window(columns[0], rows[0], columns[1] - columns[0], rows[1] - rows[0])
        with open_raster(array.path) as dataset:
            stored = dataset.read(array.band, window=window)
    else:
        stored = _with_dataset(array, lambda data: data[slice(*rows), slice(*columns)])
    values = np.asarray(stored, np.float64)
    if array.fill is not None:
        values[stored == np.asarray(array.fill).astype(stored.dtype)] = np.nan
    return values


def _with_dataset(array: LookupArray, work):  # type: ignore[no-untyped-def]
    import h5py

    try:
        with h5py.File(array.path, "r") as file:
            return work(file[array.band])
    except (OSError, KeyError, RuntimeError) as error:
        raise SceneError(
            f"{array.path}: {array.band} cannot be read ({error}). Copy or download the file again."
        ) from error


def local_files(array: LookupArray) -> tuple[str, ...]:
    """Return the file of an array, where it is one of this machine's."""
    return (array.path,) if Path(array.path).is_file() else ()
