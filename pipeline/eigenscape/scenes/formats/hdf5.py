"""HDF5 and NetCDF4 files of products through h5py, within the file and within its declared sizes."""

import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import SceneError
from eigenscape.scenes.files.places import check_exists
from eigenscape.scenes.formats.arrays.arrayfiles import reading
from eigenscape.scenes.formats.heaps import CheckedStream
from eigenscape.scenes.formats.rasters.handles import chunk_cache_bytes, opened
from eigenscape.scenes.formats.rasters.pixels import sensible_row_step

MOST_CHUNK = 2**28
"""Bytes of a chunk, which is read whole."""

_MOST_LISTED = 2**16

_LEAST_CACHE, _CACHE_SLOTS = 2**20, 10_007
"""Bytes of decoded chunks that HDF5 keeps by itself, and chunks that it finds among more of them."""


@dataclass(frozen=True)
class Hdf5File:
    """An HDF5 file, or one in a zip file.

    Attributes
    ----------
    path
        The file on disk.
    member
        Its name in the zip file.
    """

    path: str
    member: str | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.path}, {self.member}" if self.member else self.path

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open it; whatever h5py raises becomes a `SceneError`.

        Yields
        ------
        h5py.File
            Its heaps, which hold texts, are checked.
        """
        import h5py

        check_exists(self.path)
        with (
            reading(self.path), self._stream() as stream,
            h5py.File(CheckedStream(stream, self.name), "r") as file,
        ):  # fmt: skip
            yield file

    @contextmanager
    def open_numbers(self) -> Iterator[Any]:
        """Open it to read numbers alone, no texts; it stays open within `handles.kept_open`."""
        check_exists(self.path)
        with reading(self.path), opened((self.path, self.member), self._opened) as file:
            yield file

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import h5py

        cache = {"rdcc_nbytes": max(_LEAST_CACHE, chunk_cache_bytes()), "rdcc_nslots": _CACHE_SLOTS}
        if self.member is None:
            with h5py.File(self.path, "r", **cache) as file:
                yield file
            return
        with self._stream() as stream, h5py.File(stream, "r", **cache) as file:
            yield file

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with open(self.path, "rb") as stream:
                yield stream
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
            yield stream


def has(file: Any, *names: str) -> bool:
    """Return whether an open file has all of some datasets and groups."""
    try:
        return all(name in file for name in names)
    except Exception:  # what h5py raises of a damaged file
        return False


def dataset(file: Any, name: str) -> Any:
    """Return a dataset of numbers, in this file and no other.

    Raises
    ------
    SceneError
        There is none, it lies in another file, or is stored in chunks larger than `MOST_CHUNK`.
    """
    import h5py

    where = _inside(file, name)
    if not isinstance(where, h5py.Dataset) or where.dtype.kind not in "uif" or where.shape is None:
        raise _wrong(file, f"{name} is not a dataset of numbers")
    if where.is_virtual or where.external:
        raise _wrong(file, f"the dataset {name} is stored in other files, which are not opened")
    if 0 in where.shape:
        raise _wrong(file, f"the dataset {name} has the shape {where.shape}, which is empty")
    size = math.prod(where.chunks or ()) * where.dtype.itemsize
    if size > MOST_CHUNK:
        raise _wrong(
            file,
            f"the dataset {name} is stored in chunks of {size:,} bytes, {MOST_CHUNK:,} at most are read",
        )
    return where


def listed(file: Any, name: str) -> NDArray[np.float64]:
    """Return a dataset of one axis, such as wavelengths.

    Raises
    ------
    SceneError
        There is none, or it is too long.
    """
    found = dataset(file, name)
    if found.ndim > 1 or found.size > _MOST_LISTED:
        raise _wrong(file, f"{name} has the shape {found.shape}, and a list of numbers is expected")
    return np.atleast_1d(np.asarray(found[()], np.float64))


def attribute(item: Any, name: str) -> Any:
    """Return an attribute: a text, a number or an array; None where there is none."""
    if name not in item.attrs:
        return None
    value = item.attrs[name]
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.ravel()[0]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value


def number(item: Any, name: str, default: float | None = None) -> float:
    """Return an attribute that is a number.

    Raises
    ------
    SceneError
        It is not there and has no default, or is no number.
    """
    value = attribute(item, name)
    if value is None and default is not None:
        return default
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise _wrong(item, f"the attribute {name} is {value!r}, and a number is expected") from None
    if not math.isfinite(found):
        raise _wrong(item, f"the attribute {name} is {value!r}, and a finite number is expected")
    return found


def numbers(item: Any, name: str) -> NDArray[np.float64]:
    """Return an attribute that is a list of numbers, or a text of such.

    Raises
    ------
    SceneError
        It is not there, or no list of numbers.
    """
    value = attribute(item, name)
    try:
        if isinstance(value, str):
            value = value.replace(",", " ").split()
        if value is None:
            raise ValueError
        return np.atleast_1d(np.asarray(value, np.float64)).ravel()
    except (TypeError, ValueError):
        raise _wrong(
            item, f"the attribute {name} is {value!r}, and a list of numbers is expected"
        ) from None


def text(file: Any, name: str) -> str:
    """Return a dataset that is a text; "" where there is none."""
    import h5py

    link = file.get(name)
    if not isinstance(link, h5py.Dataset) or link.size != 1 or link.external:
        return ""
    value = link[()]
    value = value.ravel()[0] if isinstance(value, np.ndarray) else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def texts(file: Any, name: str) -> list[str]:
    """Return a dataset of one axis of texts, such as names of bands; empty where there is none.

    Raises
    ------
    SceneError
        It lies in another file, or is too long.
    """
    import h5py

    if not has(file, name):
        return []
    found = _inside(file, name)
    if not isinstance(found, h5py.Dataset) or h5py.check_string_dtype(found.dtype) is None:
        return []
    if found.is_virtual or found.external or found.ndim != 1 or found.size > _MOST_LISTED:
        raise _wrong(file, f"{name} has the shape {found.shape}, and a list of texts is expected")
    return [str(one) for one in found.asstr(errors="replace")[()]]


def is_hdf5_with(path: str, endings: tuple[str, ...], known: Callable[[Any], bool]) -> bool:
    """Return whether a path is a file of such an ending that h5py opens, known by what it holds."""
    if not path.lower().endswith(endings) or not os.path.isfile(path):
        return False
    try:
        with Hdf5File(path).open() as opened:
            return known(opened)
    except SceneError:
        return False


@dataclass(frozen=True, kw_only=True)
class AxesBands:
    """Bands of an array whose axes have any order: what is common to all places where such an array is.

    Attributes
    ----------
    axes
        The order of its axes: "r" rows, "c" columns, "b" bands, which a single one may lack, and "1" for
        others, of one entry.
    shape
        Its shape.
    dtype
        Name of the type of its numbers.
    row_step
        Rows of a chunk.
    chunk_bytes, row_bytes
        Bytes of a chunk, and of all chunks in as many rows; 0 of what is not chunked.
    """

    axes: str
    shape: tuple[int, ...]
    dtype: str
    row_step: int = 1
    chunk_bytes: int = 0
    row_bytes: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.shape[self.axes.index("r")], self.shape[self.axes.index("c")]

    @property
    def count(self) -> int:
        """Number of bands."""
        return self.shape[self.axes.index("b")] if "b" in self.axes else 1

    def taken(self, array: Any, start: int, stop: int, bands: tuple[int, ...]) -> NDArray[Any]:
        """Return rows start ... stop-1 of some bands of the array, shape (rows, columns, bands), copied."""
        where: list[slice | int] = [0 if axis == "1" else slice(None) for axis in self.axes]
        where[self.axes.index("r")] = slice(start, stop)
        axes = self.axes.replace("1", "")
        if "b" not in axes:
            stored = _copied(array[tuple(where)])
            return stored.transpose([axes.index(axis) for axis in "rc"])[..., np.newaxis]
        # One slice that holds them all: lists of indices are slow in HDF5.
        first, last = min(bands), max(bands) + 1
        where[self.axes.index("b")] = slice(first, last)
        stored = _copied(array[tuple(where)])
        stored = stored.transpose([axes.index(axis) for axis in "rcb"])
        chosen = [band - first for band in bands]
        return stored if chosen == list(range(stored.shape[2])) else stored[..., chosen]


def _copied(values: Any) -> NDArray[Any]:
    """Return what was read from a file; of a mapped one a copy."""
    return (
        np.array(values) if isinstance(values, np.ndarray) and not values.flags.owndata else values
    )


@dataclass(frozen=True, kw_only=True)
class Hdf5Bands(AxesBands):
    """A dataset of three axes as bands, or of two as one; see `BandSource`.

    Attributes
    ----------
    file, dataset
        Where it is.
    """

    file: Hdf5File
    dataset: str

    @classmethod
    def of(cls, file: Hdf5File, opened: Any, name: str, axes: str) -> "Hdf5Bands":
        """Return a dataset of an open file.

        Raises
        ------
        SceneError
            There is none, or it has another number of axes.
        """
        found = dataset(opened, name)
        if found.ndim != len(axes):
            raise _wrong(
                opened, f"{name} has the shape {found.shape}, and {len(axes)} axes are expected"
            )
        place = axes.index("r")
        rows = found.chunks[place] if found.chunks else 1
        chunks, item = found.chunks or (), found.dtype.itemsize
        across = [-(-length // side) for length, side in zip(found.shape, chunks, strict=False)]
        size = math.prod(chunks) * item if chunks else 0
        return cls(
            file=file,
            dataset=name,
            axes=axes,
            shape=tuple(found.shape),
            dtype=found.dtype.name,
            row_step=sensible_row_step(rows, found.shape[place]),
            chunk_bytes=size,
            row_bytes=size * math.prod(across) // across[place] if chunks else 0,
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The file."""
        return (self.file.path,)

    def read(self, start: int, stop: int, bands: tuple[int, ...]) -> tuple[NDArray[Any], None]:
        """Read rows start ... stop-1 of some bands; see `BandSource.read`."""
        with self.file.open_numbers() as file:
            found = dataset(file, self.dataset)
            if tuple(found.shape) != self.shape:
                raise _wrong(file, f"{self.dataset} has changed its shape since it was opened")
            return self.taken(found, start, stop, bands).astype(self.dtype, copy=False), None


def _inside(file: Any, name: str) -> Any:
    """Return what a name stands for, in this file and no other."""
    import h5py

    where: Any = file
    for part in name.split("/"):
        link = where.get(part, getlink=True) if isinstance(where, h5py.Group) else None
        if link is None:
            raise _wrong(file, f"has no dataset {name}")
        if not isinstance(link, h5py.HardLink):
            raise _wrong(file, f"the dataset {name} is a link to elsewhere, which is not followed")
        where = where[part]
    return where


def _wrong(item: Any, what: str) -> SceneError:
    name = item.file.filename
    name = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return SceneError(f"{name}: {what}. Check the file, or download the product again.")
