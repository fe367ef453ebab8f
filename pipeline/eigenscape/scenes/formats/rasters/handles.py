"""Files that stay open while several parts of them are read, so that what is decoded once is used again.

A file in blocks is decoded block by block, however little of one is wanted. Strips that are lower than a
block share blocks: read with the file open, and a cache that holds a row of blocks, each block is decoded
once, and not once for each strip.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rasterio._env import get_gdal_config, set_gdal_config

CACHE_BYTES = 2**26
"""Of GDAL's cache at least; its own default is 5 % of the machine's memory, whatever the limit of a job."""

Make = Callable[[], AbstractContextManager[Any]]


@dataclass
class _Files:
    """What a thread keeps open."""

    cache_bytes: int
    stack: ExitStack
    opened: dict[Any, Any] = field(default_factory=dict)


class _Thread(threading.local):
    """Files of this thread; None outside of `kept_open`."""

    files: _Files | None = None


_THREAD = _Thread()
_LOCK = threading.Lock()
_BOUNDED = {"users": 0, "before": 0}
"""Of GDAL's cache, which all threads share: how many want it bounded, and what it was before."""


@contextmanager
def kept_open(cache_bytes: int, tasks: int) -> Iterator[None]:
    """Keep the files that this thread opens open until the end, and bound what they hold decoded.

    Parameters
    ----------
    cache_bytes
        Of decoded blocks that this thread needs at a time.
    tasks
        Threads of this process that do the same meanwhile.
    """
    # Threads share GDAL's cache, and HDF5's of a file that several of them have open.
    shared = cache_bytes * tasks
    before = _THREAD.files
    with bounded_gdal(max(CACHE_BYTES, shared)), ExitStack() as stack:
        _THREAD.files = _Files(shared, stack)
        try:
            yield
        finally:
            _THREAD.files = before


def opened(key: Any, make: Make) -> AbstractContextManager[Any]:
    """Return what a context yields: one that is left at once, or within `kept_open` in the end."""
    files = _THREAD.files
    if files is None:
        return make()
    if key not in files.opened:
        files.opened[key] = files.stack.enter_context(make())
    return nullcontext(files.opened[key])


def chunk_cache_bytes() -> int:
    """Return what a file that is opened now should keep of its decoded chunks."""
    return 0 if _THREAD.files is None else _THREAD.files.cache_bytes


@contextmanager
def bounded_gdal(cache_bytes: int = CACHE_BYTES) -> Iterator[None]:
    """Bound GDAL's cache, by what the first of several threads says.

    rasterio's own Env gives back what it found at the end of each thread's block, while others still read.
    """
    with _LOCK:
        if not _BOUNDED["users"]:
            _BOUNDED["before"] = get_gdal_config("GDAL_CACHEMAX")
            set_gdal_config("GDAL_CACHEMAX", cache_bytes)
        _BOUNDED["users"] += 1
    try:
        yield
    finally:
        with _LOCK:
            _BOUNDED["users"] -= 1
            if not _BOUNDED["users"]:
                set_gdal_config("GDAL_CACHEMAX", _BOUNDED["before"])
