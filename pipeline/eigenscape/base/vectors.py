"""Rows of a table in memory, dense or sparse: joined, scaled to length 1, handed to compiled loops."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

Dense: TypeAlias = NDArray[np.float32]


Vectors: TypeAlias = Dense | csr_array
"""Some rows in memory, shape (rows, columns), float32."""


Parts: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]
"""Data, column numbers and row starts of compressed sparse rows: what compiled loops take."""


def unit_vectors(vectors: Vectors, origin: NDArray[np.float64] | None = None) -> Vectors:
    """Scale vectors to length 1 and add the column of `Rows.unit`.

    Parameters
    ----------
    vectors : array or csr_array, shape (rows, columns)
    origin : array, shape (columns,), optional
        Added to dense vectors first.

    Returns
    -------
    array or csr_array, shape (rows, columns + 1)
    """
    rows, columns = vectors.shape
    if isinstance(vectors, np.ndarray):
        whole: NDArray[Any] = vectors if origin is None else vectors + origin
        # By the largest entry first: squares of very small or large values leave float32.
        largest = np.abs(whole).max(axis=1, initial=0)
        zero = largest == 0
        unit = np.zeros((rows, columns + 1), np.float32)
        np.divide(
            whole,
            largest[:, None],
            out=unit[:, :columns],
            where=~zero[:, None],
            casting="same_kind",
        )
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(zero, 1, length)[:, None]
        unit[zero, columns] = 1
        return unit
    owner = np.repeat(np.arange(rows), np.diff(vectors.indptr))
    length = np.sqrt(np.bincount(owner, vectors.data.astype(np.float64) ** 2, rows))
    zero = length == 0
    data = (vectors.data / np.where(zero, 1, length)[owner]).astype(np.float32)
    # Not by adding tables, which would drop entries that came out as 0: rows keep their length.
    at = vectors.indptr[1:][zero]
    starts = vectors.indptr + np.concatenate([[0], np.cumsum(zero)])
    parts = (np.insert(data, at, 1), np.insert(vectors.indices, at, columns), starts)
    return csr_array(parts, shape=(rows, columns + 1))


def join(pieces: list[Vectors]) -> Vectors:
    """Stack pieces of one table on top of each other."""
    if len(pieces) == 1:
        return pieces[0]
    alike: list[Any] = pieces  # all dense or all sparse, which a type cannot say
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(alike)
    return csr_array(vstack(alike, format="csr"))


def as_parts(vectors: Vectors) -> Dense | Parts:
    """Return vectors as compiled loops take them: an array, or the parts of sparse rows."""
    if isinstance(vectors, np.ndarray):
        return vectors
    return (
        vectors.data,
        vectors.indices.astype(np.int32, copy=False),
        vectors.indptr.astype(np.int64, copy=False),
    )
