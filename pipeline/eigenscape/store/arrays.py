"""Arrays on disk: zarr arrays in chunks of samples, and raw files that are mapped."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files import ledger
from eigenscape.base.files.mapped import attach_memmap, create_memmap
from eigenscape.base.memory import CHUNK_ROWS, ROW_TILE
from eigenscape.base.process.namedpoints import reached

_CHUNK_BYTES = 64 * CHUNK_ROWS
_CHUNK_ROWS = CHUNK_ROWS
_MOST_CHUNKS = 512
_MOST_OPEN = 256


def chunk_rows(rows: int, row_bytes: float) -> int:
    """Return the number of rows in a chunk of a (sample, ...) array.

    A chunk has 8 MiB or 2**17 rows, or more if the array would have more than 512 chunks. The number is a
    multiple of `ROW_TILE` and does not depend on the memory limit, so that a run can be resumed under another
    limit.

    Parameters
    ----------
    rows
        Number of rows of the array.
    row_bytes
        Bytes of a row.
    """
    wanted = max(min(_CHUNK_BYTES / max(row_bytes, 1.0), _CHUNK_ROWS), rows / _MOST_CHUNKS)
    return max(1, round(wanted / ROW_TILE)) * ROW_TILE


def stored_bytes(rows: int, row_bytes: float) -> int:
    """Return the bytes that an array takes in a store: whole chunks, also where the last one is not full.

    Parameters
    ----------
    rows
        Number of rows of the array.
    row_bytes
        Bytes of a row.

    Examples
    --------
    >>> stored_bytes(131_072, 12), stored_bytes(131_073, 12)
    (1572864, 3145728)
    """
    chunk = max(1, min(chunk_rows(rows, row_bytes), rows))
    return int(-(-rows // chunk) * chunk * row_bytes)


def open_array(path: str | Path) -> Any:
    """Open a zarr array of a run or workspace for reading and for writing whole chunks."""
    # Typed as Any: zarr's own type says that any slice of an array may be a str or a scalar.
    # Read, not looked at: on a network file system only who opens a file sees what others wrote.
    return _opened(str(path), Path(path, "zarr.json").read_bytes())


@lru_cache(maxsize=_MOST_OPEN)
def _opened(path: str, metadata: bytes) -> Any:
    """Open an array with this metadata, five times as fast as `zarr.open_array`; small runs open hundreds."""
    import zarr  # A fifth of a second, which those who only look at a run need not wait.
    from zarr.storage import LocalStore, StorePath

    known = json.loads(metadata)
    if known.get("zarr_format") != 3:
        # As we write them: arrays of version 2 may have a codec that unpickles.
        raise ValueError(f"{path}: zarr format {known.get('zarr_format')}; arrays of a run have 3")
    return zarr.Array(zarr.AsyncArray.from_dict(StorePath(LocalStore(path)), known))


def write_rows(path: str | Path, start: int, values: Any) -> None:
    """Write rows of a zarr array: whole chunks of it, in one task.

    Parameters
    ----------
    path
        Path of the array.
    start
        First row.
    values : array-like, shape (rows, ...)
        The rows: whole chunks, or all rows up to the last one.
    """
    array = open_array(path)
    stop = start + len(values)
    array[start:stop] = values
    reached("data written", path)
    if not ledger.is_recording():
        return
    rows = array.chunks[0]
    for number in range(start // rows, -(-stop // rows)):
        # Chunks along the first axis alone. One that holds nothing but zeros has no file.
        chunk = Path(path, "c", str(number), *["0"] * (array.ndim - 1))
        if chunk.exists():
            ledger.complete(chunk)


def open_memmap(path: str | Path) -> NDArray[Any]:
    """Map an array that was created with ``whole=True``: shared by threads, workers and runs."""
    array = open_array(path)
    assert array.chunks == tuple(max(1, size) for size in array.shape), "only whole arrays map"
    chunk = _chunk(path, array)
    if not chunk.is_file():
        return np.zeros(array.shape, array.dtype)  # all fill value: zarr stores no chunk for it
    return attach_memmap(chunk, array.shape, array.dtype)


def whole_file(path: str | Path) -> Path:
    """Return the one file of an array that was created with ``whole=True``; it is there afterwards."""
    return _whole_file(path, open_array(path))


def _chunk(path: str | Path, array: Any) -> Path:
    """Return the path of the one chunk of an array; NFS may put other files beside it."""
    return Path(path) / "c" / Path(*["0"] * array.ndim)


def _whole_file(path: str | Path, array: Any) -> Path:
    chunk = _chunk(path, array)
    chunk.parent.mkdir(parents=True, exist_ok=True)
    create_memmap(chunk, array.shape, array.dtype)
    return chunk


def attach_whole(path: str | Path) -> NDArray[Any]:
    """Map an array that was created with ``whole=True`` for writing: tasks fill ranges of it."""
    array = open_array(path)
    return attach_memmap(_whole_file(path, array), array.shape, array.dtype, "r+")
