"""Strips of rows of any height to blocks of one height."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def cut_blocks(
    rows: Iterable[tuple[int, NDArray[Any]]],
    shape: tuple[int, int, int],
    kind: np.dtype[Any],
    step: int,
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut strips of any height into blocks of `step` rows (the last may be lower).

    Parameters
    ----------
    rows
        Pairs of the first row and an array of shape (rows, width) or (count, rows, width).
    shape
        (count, height, width) of the whole.
    kind
        Type of the blocks; the strips must be convertible within its kind.
    step
        Rows of a block.

    Yields
    ------
    start : int
        First row of the block.
    block : array, shape (count, step, width)
        A view of one buffer: it changes when the next block is asked for.

    Raises
    ------
    ValueError
        The strips have gaps, another size or another kind than the whole.
    """
    count, height, width = shape
    done, filled = 0, 0  # Rows handed on, and rows waiting in the buffer.
    buffer = np.empty((count, min(step, height), width), kind)
    for first, strip in rows:
        strip = _as_bands(first, strip, (count, done + filled, height, width), kind)
        taken = 0
        while taken < strip.shape[1]:
            more = min(buffer.shape[1] - filled, strip.shape[1] - taken)
            buffer[:, filled : filled + more] = strip[:, taken : taken + more]
            filled, taken = filled + more, taken + more
            if filled == buffer.shape[1] or done + filled == height:
                yield done, buffer[:, :filled]
                done, filled = done + filled, 0
    if done < height:
        raise ValueError(f"the strips end at row {done + filled} of {height}")


def _as_bands(
    first: int, strip: NDArray[Any], expected: tuple[int, int, int, int], kind: np.dtype[Any]
) -> NDArray[Any]:
    count, row, height, width = expected
    bands = strip[np.newaxis] if strip.ndim == 2 else strip
    if bands.ndim != 3 or bands.shape[0] != count or bands.shape[2] != width:
        raise ValueError(f"a strip of shape {strip.shape} for {count} bands of width {width}")
    if first != row:
        raise ValueError(f"a strip starts at row {first} where row {row} is next")
    if first + bands.shape[1] > height:
        raise ValueError(f"a strip ends at row {first + bands.shape[1]} of {height}")
    if not np.can_cast(bands.dtype, kind, "same_kind"):
        raise ValueError(f"a strip of {bands.dtype} for a file of {kind}")
    return bands
