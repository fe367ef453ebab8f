"""Arrays in .mat, .npy, .npz files and zarr stores: which variable, and windows of its rows."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.pixels import sensible_row_step

Format = Literal["npy", "npz", "mat", "mat73", "zarr"]

_MATLAB_NUMBERS = {
    "double": "f8", "single": "f4", "logical": "u1",
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
}  # fmt: skip
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# A MATLAB 7.3 file is HDF5 behind a header block of this many bytes.
_MATLAB_HEADER = 512


@dataclass(frozen=True)
class Variable:
    """What a file says about one of its arrays, without reading it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    row_step: int = 1

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.shape))} {self.dtype}"


@dataclass(frozen=True)
class ArraySource:
    """One numeric array in a file, read in windows of its first axis.

    Attributes
    ----------
    path
        File or URL.
    format
        How it is stored.
    variable
        Its name inside the file; None where the file is one array.
    shape
        (rows, columns) or (rows, columns, bands).
    dtype
        Type of the stored numbers.
    row_step
        Rows per storage block.
    """

    path: str
    format: Format
    variable: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    row_step: int

    @property
    def files(self) -> tuple[str, ...]:
        """The file, or the directory of a zarr store."""
        return (self.path,)

    @property
    def label(self) -> str:
        """The name with a blank before it, or nothing: for messages."""
        return f" {self.variable}" if self.variable else ""

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows start ... stop-1 as they are stored, shape (stop - start, ...).

        Raises
        ------
        SceneError
            The file is truncated, damaged or gone.
        """
        path = local_path(self.path)
        with reading(self.path):
            if self.format in ("npz", "mat"):
                # These decompress as a whole only: see `_load_whole`.
                with _whole_lock:
                    whole = _load_whole(path, os.stat(path).st_mtime_ns, self.variable or "")
                return whole[start:stop]
            if self.format == "npy":
                mapped: NDArray[Any] = np.load(path, mmap_mode="r")
                return mapped[start:stop]
            if self.format == "mat73":
                import h5py

                with h5py.File(path, "r") as file:
                    # MATLAB writes column-major: in HDF5 the axes stand in reverse.
                    return np.asarray(file[self.variable][..., start:stop]).T
            import zarr

            store: Any = zarr.open(path, mode="r")
            array = store[self.variable] if self.variable else store
            return np.asarray(array[start:stop])


def array_format(path: str) -> Format | None:
    """Return how a path stores arrays, or None if it is no array file (then GDAL may know it)."""
    suffix = Path(path).suffix.lower()
    if is_zarr(path):
        return "zarr"
    if suffix == ".npy":
        return "npy"
    if suffix == ".npz":
        return "npz"
    if suffix == ".mat":
        return "mat73" if _is_hdf5(local_path(path)) else "mat"
    return None


def is_zarr(path: str) -> bool:
    """Return whether a path is a zarr store, or a group or array within one."""
    if "://" in path:
        return path.rstrip("/").lower().endswith(".zarr")
    marks = ("zarr.json", ".zarray", ".zgroup")
    return any(os.path.exists(os.path.join(path, mark)) for mark in marks)


def list_variables(path: str, format: Format) -> dict[str, Variable]:
    """List the numeric arrays of a file without reading them; the name is "" if it is one array.

    Raises
    ------
    SceneError
        The file is truncated or damaged.
    """
    with reading(path):
        return dict(_LISTERS[format](local_path(path)))


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever a reader raises inside the context into a `SceneError` that names the file."""
    try:
        yield
    except SceneError:
        raise
    except MemoryError:
        raise
    # Damaged files make these readers raise anything: zlib.error, struct.error, TypeError ...
    except Exception as error:
        raise SceneError(
            f"{path}: cannot be read: the file is truncated or damaged, or not what its name says "
            f"({type(error).__name__}: {error}). Copy or download it again."
        ) from error


@lru_cache(maxsize=8)
def local_path(path: str) -> str:
    """Return a local copy of a URL, made once per process; a local path is returned as it is."""
    if "://" not in path or is_zarr(path):
        return path
    import fsspec

    with reading(path):
        return str(fsspec.open_local(f"simplecache::{path}"))


# Two arrays per process: the cube and its labels. Without them every window of rows would
# decompress the whole file again. It is the one place where a source is held whole.
_whole_lock = threading.Lock()


@lru_cache(maxsize=2)
def _load_whole(path: str, modified: int, variable: str) -> NDArray[Any]:
    """Read an array of a .npz or MATLAB 5 file; `modified` makes a changed file a new entry."""
    if path.lower().endswith(".npz"):
        with np.load(path) as archive:
            return np.asarray(archive[variable])
    from scipy.io import loadmat

    return np.asarray(loadmat(path, variable_names=[variable])[variable])


def _list_npy(path: str) -> Iterator[tuple[str, Variable]]:
    array = np.load(path, mmap_mode="r")
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
                if reader is not None:
                    shape, _, dtype = reader(stream)
                    yield name.removesuffix(".npy"), Variable(shape, dtype)


def _list_mat(path: str) -> Iterator[tuple[str, Variable]]:
    from scipy.io import whosmat

    for name, shape, kind in whosmat(path):
        if kind in _MATLAB_NUMBERS:
            yield name, Variable(tuple(shape), np.dtype(_MATLAB_NUMBERS[kind]))


def _list_mat73(path: str) -> Iterator[tuple[str, Variable]]:
    import h5py

    with h5py.File(path, "r") as file:
        for name, item in file.items():
            kind = item.attrs.get("MATLAB_class", b"double")
            if isinstance(item, h5py.Dataset) and bytes(kind).decode() in _MATLAB_NUMBERS:
                step = sensible_row_step(item.chunks[-1] if item.chunks else 1, item.shape[-1])
                yield name, Variable(item.shape[::-1], item.dtype, step)


def _list_zarr(path: str) -> Iterator[tuple[str, Variable]]:
    import zarr

    def describe(array: Any) -> Variable:
        blocks = getattr(array, "shards", None) or array.chunks
        step = sensible_row_step(blocks[0], array.shape[0]) if array.shape else 1
        return Variable(tuple(array.shape), np.dtype(array.dtype), step)

    store = zarr.open(path, mode="r")
    if isinstance(store, zarr.Array):
        yield "", describe(store)
        return
    for name, item in sorted(store.members(max_depth=None)):
        if isinstance(item, zarr.Array):
            yield name, describe(item)


_LISTERS: Mapping[Format, Any] = {
    "npy": _list_npy,
    "npz": _list_npz,
    "mat": _list_mat,
    "mat73": _list_mat73,
    "zarr": _list_zarr,
}


def _is_hdf5(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            start = stream.read(_MATLAB_HEADER + len(_HDF5_MAGIC))
    except OSError:
        return False
    return start.startswith(_HDF5_MAGIC) or start[_MATLAB_HEADER:] == _HDF5_MAGIC
