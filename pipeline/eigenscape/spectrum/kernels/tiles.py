"""Sums over all rows, by tiles that are the same however the rows are cut among tasks.

Every tile is summed row by row, and the tiles one after the other: so the bits of a sum depend neither on
the layout of a filter nor on the number of threads or workers.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array, read_only

MOST_TILES = 1024
"""Tiles of all rows, so that their sums are small however many rows there are."""

NullSum = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Of a tile: its components, ascending, and X^T null of each, shape (components, WIDTH)."""


def tile_rows(rows: int) -> int:
    """Return the rows of a tile: whole tiles of the dense kernels, fixed by the number of all rows."""
    return ROW_TILE * max(1, -(-rows // (MOST_TILES * ROW_TILE)))


def tiles(rows: int, first: int = 0, last: int | None = None) -> list[Block]:
    """Return the tiles of rows first ... last-1 of all; `first` is where a tile begins."""
    step, end = tile_rows(rows), rows if last is None else last
    return [(start, min(start + step, end)) for start in range(first, end, step)]


def null_sums(
    null: NDArray[np.float64], component: NDArray[np.int32] | None, X: Array, step: int
) -> list[NullSum]:
    """Return the sums of some rows, tile by tile.

    Parameters
    ----------
    null : array, shape (m,)
        On every component its null vector.
    component : array of int, shape (m,)
        Component of each row; None where there is one.
    X : array, shape (m, WIDTH)
    step
        Rows of a tile.
    """
    found, null, X = [], read_only(null), read_only(X)
    only, same = np.zeros(1, np.int64), np.zeros(min(step, len(X)), np.int64)
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        which, place = only, same
        if component is not None:
            which, place = np.unique(component[rows], return_inverse=True)
            place = place.astype(np.int64, copy=False)
        sums = np.zeros((len(which), WIDTH))
        kernels.sum_null(null[rows], place, X[rows], sums)
        found.append((which, sums))
    return found


def null_shares(sums: Iterable[NullSum], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what X has of the null vector of every component, shape (components, WIDTH).

    Parameters
    ----------
    sums
        Of all tiles, in their order.
    squares : array, shape (components,)
        Squared lengths of the null vectors.
    """
    shares = np.zeros((len(squares), WIDTH))
    for which, values in sums:
        shares[which] += values
    shares /= squares[:, None]
    return shares


def residual_tiles(X: Array, image: Array, values: NDArray[np.float64], step: int) -> Array:
    """Return |image - values X|^2 of every column of some rows, for each tile: shape (tiles, WIDTH)."""
    X = read_only(X)
    return np.array([
        kernels.residual_squares(X[start : start + step], image[start : start + step], values)
        for start in range(0, len(X), step)
    ])  # fmt: skip


def add_tiles(sums: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sum of what tiles have come to, one after the other."""
    total = np.zeros(WIDTH)
    for values in sums:
        total += values
    return total
