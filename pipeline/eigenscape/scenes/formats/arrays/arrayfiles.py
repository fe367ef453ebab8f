"""Arrays in .mat, .npy, .npz files and zarr stores: which variable, and windows of its rows."""

import contextlib
import math
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arraylists import LISTERS, Format, Variable

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# A MATLAB 7.3 file is HDF5 behind a header block of this many bytes.
_MATLAB_HEADER = 512


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
    order
        Places of these axes among the stored ones; None where they are stored so.
    """

    path: str
    format: Format
    variable: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    row_step: int
    order: tuple[int, ...] | None = None

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
                return self.whole()[start:stop]
            if self.format == "npy":
                mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
                return mapped[start:stop]
            if self.format == "mat73":
                import h5py

                with h5py.File(path, "r") as file:
                    # MATLAB writes column-major: in HDF5 the axes stand in reverse.
                    return np.asarray(file[self.variable][..., start:stop]).T
            from eigenscape.scenes.formats.arrays.zarrstores import open_zarr

            array = open_zarr(path, self.variable)
            if self.order is None:
                return np.asarray(array[start:stop]).astype(self.dtype, copy=False)
            window = [slice(None)] * len(array.shape)
            window[self.order[0]] = slice(start, stop)
            stored = np.asarray(array[tuple(window)]).astype(self.dtype, copy=False)
            return _turned(stored, self.order)

    def given(self, start: int, stop: int) -> NDArray[np.bool_] | None:
        """Return what of rows start ... stop-1 the store has, by its second axis; None for all.

        A zarr store may lack chunks. Reading gives their fill value, which is nothing that was measured.
        """
        if self.format != "zarr":
            return None
        from eigenscape.scenes.formats.arrays.zarrstores import given_pixels

        with reading(self.path):
            return given_pixels(local_path(self.path), self.variable, self.order, start, stop)

    def attributes(self) -> dict[str, Any]:
        """Return what a zarr store says of the array; other files say nothing."""
        if self.format != "zarr":
            return {}
        from eigenscape.scenes.formats.arrays.zarrstores import open_zarr

        with reading(self.path):
            return dict(open_zarr(local_path(self.path), self.variable).attrs)

    def whole(self) -> NDArray[Any]:
        """Return all of it as it is stored, kept in memory for the next call.

        Raises
        ------
        SceneError
            The file is truncated, damaged or gone.
        """
        path = local_path(self.path)
        with reading(self.path), _whole_lock:
            modified = os.stat(path).st_mtime_ns
            whole = _load_whole(path, modified, self.format, self.variable or "")
        if self.order is not None:
            whole = _turned(whole, self.order)
        if self.format == "zarr":
            whole = whole.astype(self.dtype, copy=False)
        if whole.shape != self.shape:
            raise SceneError(
                f"{self.path}: the array{self.label} has the shape {whole.shape}, and the file's header "
                f"says {self.shape}: the file is damaged. Copy or download it again."
            )
        return whole

    @property
    def held_bytes(self) -> int:
        """Bytes that reading any part takes, where a file is read whole: of MATLAB, in two copies."""
        copies = {"npz": 1, "mat": 2}.get(self.format, 0)
        return int(math.prod(self.shape)) * self.dtype.itemsize * copies


def _turned(stored: NDArray[Any], order: tuple[int, ...]) -> NDArray[Any]:
    """Return an array with some of its axes in an order, without the others, which have one entry."""
    others = tuple(axis for axis in range(stored.ndim) if axis not in order)
    return stored.squeeze(others).transpose(np.argsort(np.argsort(order)))


def read_numbers(path: str, format: Format, known: Mapping[str, Variable]) -> dict[str, float]:
    """Read the single numbers of a file, by their names.

    Parameters
    ----------
    path, format
        The file.
    known
        Arrays of one number each.

    Raises
    ------
    SceneError
        The file is damaged.
    """
    with reading(path):
        local = local_path(path)
        return {name: float(_read_whole(local, format, name).ravel()[0]) for name in known}


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
        return dict(LISTERS[format](local_path(path)))


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
def _load_whole(path: str, modified: int, format: Format, variable: str) -> NDArray[Any]:
    """Keep an array of a file; `modified` makes a changed file a new entry."""
    return _read_whole(path, format, variable)


def load_npz(path: str, *names: str) -> list[NDArray[Any]]:
    """Read arrays of a .npz file whole; raise ValueError where one is shorter than its header says."""
    known = dict(LISTERS["npz"](path))
    with np.load(path, allow_pickle=False) as archive:
        for name in names:
            # Memory for all of it would be taken before its end is found.
            size = archive.zip.getinfo(f"{name}.npy").file_size
            if math.prod(known[name].shape) * known[name].dtype.itemsize > size:
                raise ValueError(f"{name} is shorter than its header says, {known[name].shape}")
        return [np.asarray(archive[name]) for name in names]


def _read_whole(path: str, format: Format, variable: str) -> NDArray[Any]:
    if format == "npz":
        return load_npz(path, variable)[0]
    if format == "mat":
        from scipy.io import loadmat

        return np.asarray(loadmat(path, variable_names=[variable])[variable])
    if format == "mat73":
        import h5py

        with h5py.File(path, "r") as file:
            return np.asarray(file[variable]).T
    from eigenscape.scenes.formats.arrays.zarrstores import open_zarr

    return np.asarray(open_zarr(path, variable)[...])


def _is_hdf5(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            start = stream.read(_MATLAB_HEADER + len(_HDF5_MAGIC))
    except OSError:
        return False
    return start.startswith(_HDF5_MAGIC) or start[_MATLAB_HEADER:] == _HDF5_MAGIC
