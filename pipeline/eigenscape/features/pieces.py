"""How the features stage cuts samples into what is summed, and what is read, at a time."""

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import ROW_TILE

MOMENT_ROWS = 16 * ROW_TILE
"""Samples per partial sum, at least. Fixed, so that the sums add up in the same order under any limit."""

_PARTIAL_BYTES = 2**27
"""Of the partial sums of matrices of all tasks together."""

_PIECE_BYTES = 2**24
"""Of the samples that a task reads at a time."""


def partial_blocks(rows: int, bands: int, *, whole: bool = True) -> list[Block]:
    """Return the samples of each partial sum: so few sums that all of them can be held.

    Parameters
    ----------
    rows, bands
        Of the table.
    whole
        Whether a sum is a matrix (band, band), or a number for each band.
    """
    most = max(1, _PARTIAL_BYTES // (8 * bands * (bands if whole else 1)))
    least = -(-rows // MOMENT_ROWS)
    return blocks(rows, MOMENT_ROWS * -(-least // most))


def piece_rows(bands: int) -> int:
    """Return the number of samples that a task reads at a time, in whole tiles."""
    return ROW_TILE * max(1, _PIECE_BYTES // (4 * bands * ROW_TILE))
