"""Checksums of what lies on disk: CRC-32C, which processors compute at some gigabytes a second.

A sum is text: ``"<size>:<crc>"`` of a whole file, ``"<start>-<stop>:<crc>"`` of a range of its bytes.
"""

import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

_PIECE = 2**17
_THREADS = 4


def crc_of(data: Any, before: int = 0) -> int:
    """Return the CRC-32C of some bytes, or that of others followed by them.

    Parameters
    ----------
    data
        Bytes, or a contiguous array.
    before
        CRC of what precedes them.
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return int(google_crc32c.extend(before, data)) if len(data) else before


def json_sum(value: Any) -> str:
    """Return the checksum of a JSON value, however it is laid out."""
    # Keys that are numbers become texts, which sort in another order than they do.
    value = json.loads(json.dumps(value))
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"{crc_of(text.encode()):08x}"


def whole_sum(size: int, crc: int) -> str:
    """Return the sum of a whole file."""
    return f"{size}:{crc:08x}"


def range_sum(start: int, stop: int, crc: int) -> str:
    """Return the sum of bytes start ... stop-1 of a file."""
    return f"{start}-{stop}:{crc:08x}"


def file_sum(path: str | Path) -> str:
    """Return the sum of a whole file."""
    size, crc = 0, 0
    for piece in _pieces(path, 0, None):
        size, crc = size + len(piece), crc_of(piece, crc)
    return whole_sum(size, crc)


def size_in(total: str) -> int:
    """Return the size that the sum of a whole file says."""
    return int(total.partition(":")[0])


def is_range(total: str) -> bool:
    """Whether a sum is of a range of bytes."""
    return "-" in total


def holds(path: str | Path, totals: Iterable[str]) -> bool:
    """Whether a file is there with what sums say.

    Parameters
    ----------
    path
        The file.
    totals
        Of ranges, which must all be right; or of the whole file, one of which must be.
    """
    totals = list(totals)
    try:
        if not is_range(totals[0]):
            right_size = os.stat(path).st_size in map(size_in, totals)
            return right_size and file_sum(path) in totals
        return all(_range_holds(path, total) for total in totals)
    except OSError:
        return False


def damaged(root: Path, sums: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the files below a directory that do not hold what their sums say, in their order.

    Parameters
    ----------
    root
        The directory.
    sums
        Sums of each file, by its path below `root`: see `holds`.
    """
    if not sums:
        return []
    with ThreadPoolExecutor(_THREADS) as pool:
        whole = pool.map(lambda item: holds(root / item[0], item[1]), sums.items())
        return [name for name, right in zip(sums, whole, strict=True) if not right]


def _range_holds(path: str | Path, total: str) -> bool:
    start, stop = map(int, total.partition(":")[0].split("-"))
    crc, size = 0, 0
    for piece in _pieces(path, start, stop):
        size, crc = size + len(piece), crc_of(piece, crc)
    return range_sum(start, start + size, crc) == total


def _pieces(path: str | Path, start: int, stop: int | None) -> Iterable[NDArray[np.uint8]]:
    """Yield the bytes of a range piece by piece, each in the same buffer.

    Read, not mapped: what a disk refuses to give is an error then, not the end of the process.
    """
    buffer = np.empty(_PIECE, np.uint8)
    with open(path, "rb", buffering=0) as stream:
        stream.seek(start)
        left = stop - start if stop is not None else None
        while left is None or left > 0:
            wanted = buffer if left is None else buffer[: min(left, _PIECE)]
            count = stream.readinto(wanted)  # type: ignore[arg-type]
            if not count:
                return
            left = None if left is None else left - count
            yield buffer[:count]
