"""Raw files that are mapped, and small arrays in files: NumPy alone, no zarr."""

import contextlib
import errno
import math
import mmap
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from eigenscape.base.files import ledger
from eigenscape.base.files.whole import written_whole
from eigenscape.base.process.namedpoints import reached

_WORK = "work"


def create_memmap(path: str | Path, shape: Sequence[int], dtype: DTypeLike) -> None:
    """Create a raw file for `attach_memmap`, its space reserved.

    Reserving makes a full disk an error here; without it a write to the mapping would end the
    process by SIGBUS. What an earlier attempt has written is kept.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # Of the open file: by name, a network file system may return an outdated size, and another machine
        # may have begun to fill the file since.
        there = os.fstat(descriptor).st_size
        if there > size:
            os.ftruncate(descriptor, size)
        elif there < size:
            os.posix_fallocate(descriptor, 0, size)
            reached("file reserved", path)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def scratch_arrays(
    folder: Path | None,
) -> Iterator[Callable[[Sequence[int], DTypeLike], NDArray[Any]]]:
    """Yield a function that creates arrays of zeros: in memory, or in files that are deleted after the block.

    No other attempt at a task has files of the same names: one that was given up may still write.

    Parameters
    ----------
    folder
        Where the files lie, ``work-*``; None for arrays in memory.
    """
    if folder is None:
        yield whole_pages
        return
    stem, files = scratch_stem(folder), list[Path]()

    def zeros(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        path = stem.with_name(f"{stem.name}-{len(files)}")
        files.append(path)
        create_memmap(path, shape, dtype)
        return attach_memmap(path, shape, dtype, "r+")

    try:
        yield zeros
    finally:
        for path in files:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_array(path: str | Path, shape: Sequence[int], dtype: DTypeLike) -> Iterator[NDArray[Any]]:
    """Yield zeros mapped from a scratch file, which takes its place at `path` unless the block fails.

    So the array can be worked on: what another attempt at the task, which was given up and still runs,
    does to its own is not seen.

    Parameters
    ----------
    path
        In a folder that `clear_scratch` clears.
    shape, dtype
        Of the array.
    """
    path = Path(path)
    with written_whole(path, scratch_stem(path.parent)) as temporary:
        create_memmap(temporary, shape, dtype)
        yield attach_memmap(temporary, shape, dtype, "r+")


def whole_pages(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros in memory that begin at a page, so that a row of 64 bytes is one cache line.

    Large pages where the system has them: rows that are read in no order miss the page table less.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, math.prod(shape)).reshape(shape)


def scratch_stem(folder: Path) -> Path:
    """Return how the names of scratch files begin that no other attempt has."""
    return folder / f"{_WORK}-{secrets.token_hex(6)}"


def clear_scratch(folder: Path) -> None:
    """Delete what killed tasks left of `scratch_arrays` and `save_scratch`."""
    for path in folder.glob(f"{_WORK}-*"):
        path.unlink(missing_ok=True)


def save_scratch(path: str | Path, *arrays: NDArray[Any]) -> None:
    """Write arrays one after the other to a file that no resumed run reads, so that no checksum is noted.

    A task that is done once more writes the same bytes over those that are there: whoever reads them
    meanwhile does not notice.

    Parameters
    ----------
    path
        Its name begins with a `scratch_stem`.
    arrays
        Contiguous.
    """
    _write_at(path, 0, *arrays, flags=os.O_CREAT)


def _write_at(path: str | Path, place: int, *arrays: NDArray[Any], flags: int = 0) -> None:
    """Write contiguous arrays one after the other from byte `place` on, other bytes left as they are."""
    descriptor = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        for array in arrays:
            left = array.reshape(-1).view(np.uint8).data
            while left:
                written = os.pwrite(descriptor, left, place)
                left, place = left[written:], place + written
    finally:
        os.close(descriptor)
    reached("data written", path)


def read_scratch(path: str | Path, start: int, *arrays: NDArray[Any]) -> None:
    """Fill contiguous arrays one after the other from byte `start` on of what `save_scratch` wrote.

    Raises
    ------
    OSError
        The file ends before: a network file system may know of an earlier length for some seconds.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for array in arrays:
            left = array.reshape(-1).view(np.uint8).data
            while left:
                count = os.preadv(descriptor, [left], start)
                if not count:
                    raise OSError(errno.ESTALE, "the file is shorter than what was written", path)
                left, start = left[count:], start + count
    finally:
        os.close(descriptor)


def attach_memmap(
    path: str | Path, shape: Sequence[int], dtype: DTypeLike, mode: str = "r"
) -> NDArray[Any]:
    """Map a raw file made by `create_memmap`.

    Report writes through a mapping with `note_rows`, if they are ranges of rows; other files are read
    once more when the step is done.

    Raises
    ------
    ValueError
        The file is shorter than that. One that is cut off later, while it is mapped, ends the process
        by SIGBUS where its end is read: the system has no other way to say it.
    """
    if 0 in shape:
        return np.zeros(shape, dtype)
    if mode == "r+":
        ledger.opened(path)
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    with open(path, "r+b" if mode == "r+" else "rb") as stream:
        # NumPy would lengthen a file that is to be written, by zeros.
        if os.fstat(stream.fileno()).st_size < size:
            raise ValueError(f"{path}: mmap length is greater than file size")
        return np.memmap(stream, dtype=dtype, mode=mode, shape=tuple(shape))  # type: ignore[call-overload, no-any-return]


def note_rows(mapped: NDArray[Any], start: int = 0, stop: int | None = None) -> None:
    """Tell that rows start ... stop-1 of what `attach_memmap` has mapped are written."""
    if isinstance(mapped, np.memmap) and mapped.filename is not None:
        reached("data written", mapped.filename)
        ledger.wrote(str(mapped.filename), start * mapped.strides[0], mapped[start:stop])


def write_range(path: str | Path, start: int, values: NDArray[Any]) -> None:
    """Write rows of a raw file, whose ends may share a page with rows that another machine writes.

    A mapping writes whole pages: over NFS it would take the rows beside its own back to what they
    were when it read them. Ranges of whole tiles share no page.

    Parameters
    ----------
    path
        Made by `create_memmap`.
    start
        First row.
    values : array, shape (rows, ...)
        Of the type of the file.
    """
    values = np.ascontiguousarray(values)
    place = start * values.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    _write_at(path, place, values)
    ledger.wrote(path, place, values)


def save_raw(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array as raw bytes, for `read_raw`."""
    values = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    ledger.removing([path])
    with open(path, "wb") as stream:
        reached("file emptied", path)
        stream.write(values.data)
    reached("data written", path)
    ledger.wrote(path, 0, values)


def read_raw(
    path: str | Path, dtype: DTypeLike, start: int, stop: int, width: int | None = None
) -> NDArray[Any]:
    """Read rows start ... stop-1 of a raw file: cheaper than a mapping where ranges are short.

    Parameters
    ----------
    path
        Written by `save_raw`.
    dtype
        Type of the items.
    start, stop
        Range of rows.
    width
        Items per row; None for a one-dimensional array.
    """
    size = 1 if width is None else width
    with open(path, "rb") as stream:
        stream.seek(start * size * np.dtype(dtype).itemsize)
        values = np.fromfile(stream, dtype, (stop - start) * size)
    return values if width is None else values.reshape(stop - start, width)


def map_array(path: str | Path) -> NDArray[Any]:
    """Map what `save_array` wrote, as an array like any other."""
    return np.asarray(np.load(path, mmap_mode="r"))


def save_array(path: str | Path, array: NDArray[Any]) -> None:
    """Write a .npy file that is whole if it is there, whenever the process is killed.

    Unlike `numpy.save`, it raises an error when the disk is full: NumPy passes small arrays to a
    buffer of C, and the result of its last flush is not checked.
    """
    array = np.asarray(array, order="C")
    with written_whole(Path(path)) as temporary, temporary.open("wb") as stream:
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(array.reshape(-1).view(np.uint8).data)
