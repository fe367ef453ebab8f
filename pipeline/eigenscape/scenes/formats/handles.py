"""Files that stay open while several parts of them are read, so that what is decoded once is used again.

A file in blocks is decoded block by block, however little of one is wanted. Strips that are lower than a
block share blocks: read with the file open, and a cache that holds a row of blocks, each block is decoded
once, and not once for each strip.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from rasterio._env import get_gdal_config, set_gdal_config

CACHE_BYTES = 2**26
"""Of GDAL's cache at least; its own default is 5 % of the machine's memory, whatever the limit of a job."""

Make = Callable[[], AbstractContextManager[Any]]


class _Kept(threading.local):
    """Files that this thread keeps open; None outside of `kept_open`."""

    files: dict[Any, Any] | None = None
    stack: ExitStack
    cache_bytes: int = 0


_KEPT = _Kept()
_LOCK, _USERS = threading.Lock(), [0, 0]
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
    with _bounded_gdal(max(CACHE_BYTES, shared)), ExitStack() as stack:
        _KEPT.files, _KEPT.stack, _KEPT.cache_bytes = {}, stack, shared
        try:
            yield
        finally:
            _KEPT.files = None


def opened(key: Any, make: Make) -> AbstractContextManager[Any]:
    """Return what a context yields: one that is left at once, or within `kept_open` in the end."""
    if _KEPT.files is None:
        return make()
    if key not in _KEPT.files:
        _KEPT.files[key] = _KEPT.stack.enter_context(make())
    return nullcontext(_KEPT.files[key])


def chunk_cache_bytes() -> int:
    """Return what a file that is opened now should keep of its decoded chunks."""
    return _KEPT.cache_bytes if _KEPT.files is not None else 0


@contextmanager
def _bounded_gdal(cache_bytes: int) -> Iterator[None]:
    with _LOCK:
        if not _USERS[0]:
            _USERS[1] = get_gdal_config("GDAL_CACHEMAX")
            set_gdal_config("GDAL_CACHEMAX", cache_bytes)
        _USERS[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _USERS[0] -= 1
            if not _USERS[0]:
                set_gdal_config("GDAL_CACHEMAX", _USERS[1])
