"""The arrays of a file, by its headers alone: name, shape and type of each."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from eigenscape.scenes.formats.rasters.pixels import sensible_row_step

Format = Literal["npy", "npz", "mat", "mat73", "zarr"]

_MATLAB_NUMBERS = {
    "double": "f8", "single": "f4", "logical": "u1",
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
}  # fmt: skip
_DEFLATED = 1032
"""Bytes that one byte of a compressed MATLAB 5 file can stand for at most."""


@dataclass(frozen=True)
class Variable:
    """What a file says about one of its arrays, without reading it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    row_step: int = 1
    order: tuple[int, ...] | None = None
    """Places of rows, columns and bands among the stored axes; None where they are stored so.

    Others have one entry.
    """

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.shape))} {self.dtype}"


def _list_npy(path: str) -> Iterator[tuple[str, Variable]]:
    with open(path, "rb") as stream:
        start = stream.read(12)
    # NumPy makes room for a header of whatever length the file says, of up to 4 GiB from version 2 on.
    if start[6:7] > b"\x01" and int.from_bytes(start[8:12], "little") > os.path.getsize(path):
        raise ValueError("its header is longer than the file, by what it says")
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    yield "", Variable(array.shape, array.dtype)


def _list_npz(path: str) -> Iterator[tuple[str, Variable]]:
    import zipfile

    readers: Mapping[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as stream:
                # Version 3 is for field names outside Latin-1: never a plain array of numbers.
                reader = readers.get(np.lib.format.read_magic(stream))
                if reader is None:
                    continue
                shape, _, dtype = reader(stream)
                yield name.removesuffix(".npy"), Variable(shape, dtype)


def _list_mat(path: str) -> Iterator[tuple[str, Variable]]:
    from scipy.io import whosmat

    most = _DEFLATED * os.path.getsize(path)
    for name, shape, kind in whosmat(path):
        if kind not in _MATLAB_NUMBERS:
            continue
        # Numbers may be stored in a shorter type: a byte each at least.
        if min(shape, default=0) < 0 or math.prod(shape) > most:
            raise ValueError(f"the array {name} is shorter than its header says, {shape}")
        yield name, Variable(tuple(shape), np.dtype(_MATLAB_NUMBERS[kind]))


def _list_mat73(path: str) -> Iterator[tuple[str, Variable]]:
    import h5py

    with h5py.File(path, "r") as file:
        for name, item in file.items():
            kind = item.attrs.get("MATLAB_class", b"double")
            if isinstance(item, h5py.Dataset) and bytes(kind).decode() in _MATLAB_NUMBERS:
                shape = item.shape or (1,)
                step = sensible_row_step(item.chunks[-1] if item.chunks else 1, shape[-1])
                yield name, Variable(shape[::-1], item.dtype, step)


def _list_zarr(path: str) -> Iterator[tuple[str, Variable]]:
    from eigenscape.scenes.formats.arrays.zarrstores import block_shape, named_arrays, zarr_arrays
    from eigenscape.scenes.formats.named.arrays import image_axes

    known = named_arrays(path)
    for name, array in zarr_arrays(path):
        stored = tuple(range(len(array.shape)))
        order = image_axes(known[name], known) or stored
        if (
            len(order) > 3
            and len(long := [axis for axis in order[2:] if array.shape[axis] > 1]) < 2
        ):
            # An axis of one entry, such as the time of an image, says nothing.
            order = (*order[:2], *(long or order[-1:]))
        shape = tuple(array.shape[axis] for axis in order)
        step = sensible_row_step(block_shape(array)[order[0]], shape[0]) if shape else 1
        moved = None if order == stored else order
        yield name, Variable(shape, known[name].dtype, step, moved)


LISTERS: Mapping[Format, Any] = {
    "npy": _list_npy,
    "npz": _list_npz,
    "mat": _list_mat,
    "mat73": _list_mat73,
    "zarr": _list_zarr,
}
