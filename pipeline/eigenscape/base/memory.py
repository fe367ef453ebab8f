"""Memory is arithmetic in one place: budgets to block sizes, projected peaks, measured peaks."""

import ctypes
import gc
import math
import mmap
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eigenscape.errors import InputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_PAGE = mmap.PAGESIZE

# malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

_LEAST_HEAP, _MOST_HEAP = 4 * 2**20, 16 * 2**20
_HEAPS_SHARE = 1 / 64
"""Of ``limits.memory``, in all heaps together."""

CHUNK_VARIABLE = "EIGENSCAPE_CHUNK_ROWS"
"""Environment variable with the most rows of a chunk, for tests: with few of them a small scene has
as many chunks, blocks and tiles as a large one. Results are the same up to rounding, and up to what
an approximate neighbour search misses. Read once, when the package is loaded."""

MOST_CHUNK_ROWS, _LEAST_CHUNK_ROWS = 2**17, 2**8


def check_chunk_rows() -> int:
    """Return the most rows of a chunk that the environment asks for.

    Raises
    ------
    InputError
        It is no power of two, too small or too large.
    """
    text = os.environ.get(CHUNK_VARIABLE, str(MOST_CHUNK_ROWS))
    rows = int(text) if text.isdecimal() else 0
    if not _LEAST_CHUNK_ROWS <= rows <= MOST_CHUNK_ROWS or rows & (rows - 1):
        raise InputError(
            f"{CHUNK_VARIABLE} = {text!r}: give a power of two from {_LEAST_CHUNK_ROWS} to "
            f"{MOST_CHUNK_ROWS}, or leave the variable out."
        )
    return rows


try:
    CHUNK_ROWS = check_chunk_rows()
except InputError:
    # Raised where keys are made: an import that fails has no place to say why.
    CHUNK_ROWS = MOST_CHUNK_ROWS
"""Most rows of a chunk of an array. What is worked on in larger or smaller pieces than a chunk is
measured in it, so that one variable moves all of them."""

ROW_TILE = min(4096, CHUNK_ROWS)
"""Samples that every dense kernel takes at a time.

Blocks are multiples of it, so that a sample meets the same BLAS call with the same shape whatever
the block size: that is what makes results independent of the memory limit to the last bit."""


def parse_bytes(text: str) -> int:
    """Return a size such as ``"2GiB"``, ``"500 MB"`` or ``"4g"`` as a number of bytes.

    Examples
    --------
    >>> parse_bytes("2GiB"), parse_bytes("1.5 kB")
    (2147483648, 1500)
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    unit = match.group(2).lower() if match else "?"
    scale = _UNITS.get(unit) or _BINARY_UNITS.get(unit)
    if match is None or scale is None:
        raise ValueError('expected a size with its unit, such as "4GiB" or "500MB"')
    return int(float(match.group(1)) * scale)


def format_bytes(count: float) -> str:
    """Return a number of bytes for people, in binary units.

    Examples
    --------
    >>> format_bytes(2**31), format_bytes(1536)
    ('2.0 GiB', '1.5 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_excess(count: float, limit: float) -> tuple[str, str]:
    """Return a number of bytes and the limit that it exceeds, so that people see that it does.

    Examples
    --------
    >>> format_excess(3 * 2**30, 2**31)
    ('3.0 GiB', '2.0 GiB')
    >>> format_excess(2**31 + 1, 2**31)
    ('2049 MiB', '2048 MiB')
    """
    texts = format_bytes(count), format_bytes(limit)
    if texts[0] != texts[1]:
        return texts
    return f"{math.ceil(count / 2**20)} MiB", f"{math.floor(limit / 2**20)} MiB"


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process: what it holds that no file backs.

    Memory-mapped files are left out: the system takes their pages back when it needs them.
    """
    with open("/proc/self/statm", "rb") as stream:
        _, resident, shared = stream.read().split()[:3]
    return (int(resident) - int(shared)) * _PAGE


@dataclass
class Peak:
    """Largest anonymous memory seen while a `watch` is open, in bytes."""

    bytes: int = 0


class _Sampler:
    """One thread per process that samples anonymous memory while a `watch` is open."""

    def __init__(self, interval: float = 0.01) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._peaks: list[Peak] = []
        self._thread: threading.Thread | None = None

    def add(self, peak: Peak) -> None:
        with self._lock:
            self._peaks.append(peak)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._sample, daemon=True, name="memory-peak"
                )
                self._thread.start()
        self._record()

    def remove(self, peak: Peak) -> None:
        self._record()
        with self._lock:
            # By identity: two watches may hold equal peaks.
            self._peaks = [other for other in self._peaks if other is not peak]

    def _record(self) -> None:
        now = anonymous_bytes()
        with self._lock:
            for peak in self._peaks:
                peak.bytes = max(peak.bytes, now)

    def _sample(self) -> None:
        while True:
            with self._lock:
                if not self._peaks:
                    self._thread = None
                    return
            self._record()
            time.sleep(self._interval)


_sampler = _Sampler()


@contextmanager
def watch() -> Iterator[Peak]:
    """Measure the peak of anonymous memory of this process while the context is open."""
    peak = Peak()
    _sampler.add(peak)
    try:
        yield peak
    finally:
        _sampler.remove(peak)


def release() -> None:
    """Give freed memory back to the system: between stages, so that peaks do not add up."""
    gc.collect()
    trim()


def trim() -> None:
    """Give back what is freed in between what is in use: heaps are cut at their ends alone."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:  # glibc only
        malloc_trim(0)


def heap_bytes(limit: int, tasks: int) -> int:
    """Return the bytes of freed memory that the heap of each thread may keep.

    Parameters
    ----------
    limit
        ``limits.memory`` in bytes.
    tasks
        Number of tasks that a process runs at a time.

    Examples
    --------
    >>> heap_bytes(2**31, 2) // 2**20, heap_bytes(2**29, 2) // 2**20
    (16, 4)
    """
    return int(min(_MOST_HEAP, max(_LEAST_HEAP, limit * _HEAPS_SHARE / tasks)))


def bound_heaps(limit: int, tasks: int) -> None:
    """Bound the freed memory that glibc keeps in this process, in as many heaps as tasks run at a time.

    Without bounds, glibc keeps up to 64 MiB at the end of the heap of every thread, for good, and `trim`
    reaches the end of the first heap alone: 190 MiB beside what the stages hold, on 640,976 samples. With
    a low bound, arrays get new pages from the system again and again. Measured there with two threads:
    2.7 million page faults, 20 s of system time and a peak of 469 MiB with 4 MiB in any number of heaps;
    1.2 million, 15 s and 507 MiB with 16 MiB in two heaps.

    Parameters
    ----------
    limit, tasks
        See `heap_bytes`. There are at least two heaps; larger arrays are mappings of their own.
    """
    kept = heap_bytes(limit, tasks)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # glibc only
        mallopt(_ARENA_MAX, max(2, tasks))
        mallopt(_MMAP_THRESHOLD, kept)
        mallopt(_TRIM_THRESHOLD, kept)


class _Frozen:
    """Objects that the garbage collector skips while a context needs it."""

    def __init__(self) -> None:
        self._lock, self._wanted, self._before = threading.Lock(), 0, False

    def add(self) -> None:
        with self._lock:
            if not self._wanted:
                # What somebody froze before stays frozen. Asked once: the count is slow when there is much.
                self._before = gc.get_freeze_count() > 0
            self._wanted += 1
        gc.collect()
        gc.freeze()

    def remove(self) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted and not self._before:
                gc.unfreeze()


_frozen = _Frozen()


@contextmanager
def collected_quickly() -> Iterator[None]:
    """Leave what is in memory now, libraries above all, out of `release`, which each stage calls."""
    _frozen.add()
    try:
        yield
    finally:
        _frozen.remove()


def rows_within(budget: int, bytes_per_row: float, *, most: int = 2**20) -> int:
    """Return how many samples a block may hold: a multiple of `ROW_TILE`, at least one tile.

    Parameters
    ----------
    budget
        Bytes that one block may take.
    bytes_per_row
        Bytes that one sample takes in the block, temporaries included.
    most
        Upper limit: past a few megabytes a larger block is not faster.
    """
    rows = int(min(budget / max(bytes_per_row, 1.0), most))
    return max(ROW_TILE, rows // ROW_TILE * ROW_TILE)
