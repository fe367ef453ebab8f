"""Products of blocks of rows, dense or sparse: where the floating-point work of a search is."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.base.vectors import Vectors, as_parts
from eigenscape.errors import InputError
from eigenscape.neighbors.kernels import lists as kernels
from eigenscape.neighbors.kernels.directions import DIRECTION_ROWS

QUERY_ROWS = min(512, ROW_TILE)
TILE_ROWS = min(2048, ROW_TILE)
"""Queries and candidates of one product: 4 MB, which stay in the cache until they are looked at."""

SLACK = 1e-4
"""Relative slack of bounds on distances, far above the rounding of sums of some thousand terms."""


def centred(vectors: Vectors) -> tuple[Vectors, NDArray[np.float32]]:
    """Return rows about their mean (sparse ones as they are), and their squared norms.

    About the mean, |x|^2 - 2 x y + |y|^2 cancels least.
    """
    if isinstance(vectors, np.ndarray):
        vectors = vectors - mean_row(vectors)
    return vectors, square_norms(vectors)


def mean_row(vectors: Vectors) -> NDArray[np.float32]:
    """Return the mean of some rows, shape (columns,)."""
    if isinstance(vectors, np.ndarray):
        return np.asarray(vectors.mean(axis=0, dtype=np.float64), np.float32)
    return np.asarray(vectors.mean(axis=0), np.float32).ravel()


def square_norms(vectors: Vectors) -> NDArray[np.float32]:
    """Return the squared length of each row."""
    if isinstance(vectors, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors.power(2).sum(axis=1), np.float32).ravel()


def products(left: Vectors, right: Vectors) -> NDArray[np.float32]:
    """Return the inner products of two sets of rows, shape (left, right)."""
    if isinstance(left, np.ndarray):
        return np.asarray(left @ right.T)
    return np.asarray((left @ right.T).toarray())


def ball(vectors: Vectors) -> tuple[NDArray[np.float32], float]:
    """Return the mean of some rows and a radius about it that none of them exceeds."""
    centre = mean_row(vectors)
    if isinstance(vectors, np.ndarray):
        away = vectors - centre
        squares = np.einsum("ij,ij->i", away, away)
    else:
        # Sparse rows stay sparse: by the norms, with slack for what cancels in them.
        norms = square_norms(vectors).astype(np.float64)
        middle = float(centre.astype(np.float64) @ centre)
        squares = norms - 2 * (vectors @ centre.astype(np.float64)) + middle
        squares = np.maximum(squares, 0) + SLACK * (norms + middle)
    return centre, float(np.sqrt(squares.max())) * (1 + SLACK)


def check_range(vectors: Vectors) -> None:
    """Refuse features whose squares, summed over rows or columns, do not fit single precision.

    Raises
    ------
    InputError
        With the largest of them.
    """
    # |x - y|^2 of d columns is 4 d x^2 at most, and the norms it is computed from are twice that.
    terms = 8 * max(vectors.shape[1], DIRECTION_ROWS)
    limit = float(np.sqrt(np.finfo(np.float32).max / terms))
    values = vectors if isinstance(vectors, np.ndarray) else vectors.data
    # By both ends and not by absolute values, which would be another block in memory.
    largest = float(np.maximum(values.max(initial=0), -values.min(initial=0)))
    if not largest <= limit:  # nor is a NaN
        reached = (
            f"the features reach {largest:.3g}: single precision holds the squared distances of "
            f"{vectors.shape[1]} features up to {limit:.2g}."
        )
        raise InputError(
            f"{reached} Mark fill values by scene.nodata or scene.mask, or set a smaller scene.scale or "
            "features.standardize = true.",
            f"{reached} Leave samples with fill values out, or scale the features: "
            "sklearn.preprocessing.StandardScaler.",
        )


def compare(
    left: Vectors, right: Vectors
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return products and squared norms of two sets of rows, about the mean of the first."""
    if isinstance(left, np.ndarray):
        # Near the queries little cancels, and what is far from them is no neighbour.
        centre = mean_row(left)
        left, right = left - centre, right - centre
    return products(left, right), square_norms(left), square_norms(right)


def push_tile(
    left: Vectors,
    queries: NDArray[np.int64],
    right: Vectors,
    numbers: NDArray[np.int64],
    index: NDArray[np.signedinteger],
    distance: NDArray[np.float32],
) -> None:
    """Offer a tile of candidates to the lists of some queries.

    Parameters
    ----------
    left : array or csr_array, shape (q, d)
    queries : array, shape (q,)
        Number of each query, which it is never offered.
    right : array or csr_array, shape (candidates, d)
    numbers : array, shape (candidates,)
        Number of each candidate. Of equally near ones those of the smallest numbers are taken.
    index, distance : array, shape (q, k)
        The lists, changed in place.
    """
    kernels.push_products(
        as_parts(left), as_parts(right), *compare(left, right),
        queries, numbers, np.arange(len(queries)), index, distance,
    )  # fmt: skip


def push_tiles(
    left: Vectors,
    queries: NDArray[np.int64],
    read: Callable[[int, int], Vectors],
    block: tuple[int, int],
    index: NDArray[np.signedinteger],
    distance: NDArray[np.float32],
) -> None:
    """Offer a block of candidates to the lists of any number of queries, tile by tile.

    Parameters
    ----------
    left, queries, index, distance
        As in `push_tile`.
    read
        Returns the candidates of a range.
    block
        First candidate, and the one after the last.
    """
    for start in range(*block, TILE_ROWS):
        right = read(start, min(start + TILE_ROWS, block[1]))
        numbers = np.arange(start, start + right.shape[0])
        for first in range(0, len(queries), QUERY_ROWS):
            here = slice(first, first + QUERY_ROWS)
            push_tile(left[here], queries[here], right, numbers, index[here], distance[here])


def find_within(
    left: Vectors,
    queries: NDArray[np.int64],
    right: Vectors,
    first: int,
    radius: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Find the candidates of a tile within a radius of some queries.

    Parameters
    ----------
    left, queries, right
        As in `push_tile`.
    first
        Number of the first candidate; the others follow.
    radius
        Largest distance.

    Returns
    -------
    positions, numbers, lengths : array, shape (pairs,)
        Position of the query, number of the candidate, squared distance.
    """
    numbers = np.arange(first, first + right.shape[0])
    compared = compare(left, right)
    limit = np.float32(radius) * np.float32(radius)
    room = 2**16
    while True:
        found = (np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float32))
        pairs = kernels.within_products(
            as_parts(left), as_parts(right), *compared, queries, numbers, limit, found
        )
        if pairs <= room:
            return found[0][:pairs], found[1][:pairs], found[2][:pairs]
        room = pairs
