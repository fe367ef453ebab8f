"""NetCDF files, of HDF5 and of the classic format: their arrays, with the names of their axes.

Structure: NetCDF-4 keeps the names of axes as dimension scales of HDF5, which h5netcdf and others write too;
the classic format has them in its header, which SciPy reads.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import reading
from eigenscape.scenes.formats.hdf5 import AxesBands, Hdf5File, attribute, dataset
from eigenscape.scenes.formats.named.arrays import NamedArray, meant_type

_MOST_ATTRIBUTES = 256
_OF_DIMENSIONS = {
    "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid",
}  # fmt: skip
_NO_COORDINATE = "This is a netCDF dimension but not a netCDF variable"
"""How the name of a dataset begins that stands for an axis without coordinates, with zeros."""

_FILLS = {
    "int16": -32767, "uint16": 65535, "int32": -2147483647, "uint32": 4294967295,
    "float32": 9.969209968386869e36, "float64": 9.969209968386869e36,
}  # fmt: skip
"""What NetCDF fills arrays with by default, by type; bytes have none that is not data."""


def netcdf_kind(path: str) -> Literal["hdf5", "classic"] | None:
    """Return how a local file stores named arrays, by its first bytes; None for any other."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as stream:
        start = stream.read(8)
    if start == b"\x89HDF\r\n\x1a\n":
        return "hdf5"
    # The third version, of 64-bit data, is none that SciPy reads.
    return "classic" if start[:4] in (b"CDF\x01", b"CDF\x02") else None


def netcdf_arrays(path: str) -> dict[str, NamedArray]:
    """Return the arrays of numbers of a NetCDF file, or of an HDF5 file, by their names; empty for others.

    Raises
    ------
    SceneError
        The file is damaged.
    """
    kind = netcdf_kind(path)
    if kind is None:
        return {}
    listed = _list_hdf5(path) if kind == "hdf5" else _list_classic(path)
    return {array.name: array for array in listed}


def _list_hdf5(path: str) -> list[NamedArray]:
    import h5py

    found: list[NamedArray] = []

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or _is_length(item):
            return
        if item.shape is not None and item.dtype.kind in "uif":
            load, told = partial(_load_hdf5, path, name), _told(item)
            if item.fillvalue == _FILLS.get(item.dtype.name):
                # What the library fills an array with, of which nothing else is told.
                told = _with_fill(told, item.dtype)
            dtype = meant_type(item.dtype, told)
            found.append(NamedArray(name, item.shape, dtype, _axes(name, item), told, load))

    with Hdf5File(path).open() as file:
        file.visititems(visit)
    return found


def _is_length(item: Any) -> bool:
    """Return whether a dataset is nothing but the length of an axis."""
    return str(attribute(item, "NAME")).startswith(_NO_COORDINATE)


def _axes(name: str, item: Any) -> tuple[str, ...] | None:
    """Return the names of the axes of a dataset: those of its dimension scales."""
    own = name.rpartition("/")[2]
    if item.attrs.get("CLASS") == b"DIMENSION_SCALE" and len(item.shape) == 1:
        return (own,)
    names = [scale[0].name.rpartition("/")[2] if len(scale) else "" for scale in item.dims]
    return tuple(names) if all(names) else None


def _told(item: Any) -> dict[str, Any]:
    names = [name for name in item.attrs if name not in _OF_DIMENSIONS][:_MOST_ATTRIBUTES]
    return {name: attribute(item, name) for name in names}


def _with_fill(told: dict[str, Any], dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return attributes with the value that stands where nothing was written, if they name no other."""
    if {"_FillValue", "missing_value", "_Unsigned"} & told.keys() or dtype.name not in _FILLS:
        return told
    return {**told, "_FillValue": _FILLS[dtype.name]}


def _load_hdf5(path: str, name: str) -> NDArray[Any]:
    with Hdf5File(path).open_numbers() as file:
        return np.asarray(dataset(file, name)[()])


def _list_classic(path: str) -> list[NamedArray]:
    found = []
    with _open_classic(path) as file:
        for name, one in file.variables.items():
            if one.data.dtype.kind in "uif":
                told = {
                    key: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                    for key, value in one._attributes.items()
                }
                shape, stored = tuple(one.data.shape), one.data.dtype.newbyteorder("=")
                load, told = partial(_load_classic, path, name), _with_fill(told, stored)
                dtype = meant_type(stored, told)
                found.append(NamedArray(name, shape, dtype, tuple(one.dimensions), told, load))
            del one  # of a mapping that is closed
    return found


def _load_classic(path: str, name: str) -> NDArray[Any]:
    with _open_classic(path) as file:
        return _native(file.variables[name].data[...])


@contextmanager
def _open_classic(path: str) -> Iterator[Any]:
    """Open a file of the classic format, mapped; whatever SciPy raises becomes a `SceneError`."""
    from scipy.io import netcdf_file

    with reading(path), netcdf_file(path, "r", mmap=True) as file:
        yield file


def _native(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of mapped numbers in the order of bytes of this machine."""
    return np.array(values, values.dtype.newbyteorder("="))


@dataclass(frozen=True, kw_only=True)
class ClassicBands(AxesBands):
    """A variable of the classic format as bands; see `BandSource`.

    Attributes
    ----------
    path, variable
        Where it is.
    """

    path: str
    variable: str

    @property
    def files(self) -> tuple[str, ...]:
        """The file."""
        return (self.path,)

    def read(self, start: int, stop: int, bands: tuple[int, ...]) -> tuple[NDArray[Any], None]:
        """Read rows start ... stop-1 of some bands; see `BandSource.read`."""
        with _open_classic(self.path) as file:
            found = file.variables[self.variable].data
            if tuple(found.shape) != self.shape:
                raise SceneError(
                    f"{self.path}: {self.variable} has changed its shape since it was opened. Start again."
                )
            stored = self.taken(found, start, stop, bands)
            del found  # of a mapping that is closed
        return stored.astype(self.dtype, copy=False), None
