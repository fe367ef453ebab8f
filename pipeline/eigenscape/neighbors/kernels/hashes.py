"""Hashes of rows, by which identical samples are found."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.base.vectors import Vectors, as_parts


def hash_rows(vectors: Vectors) -> NDArray[np.uint64]:
    """Return a hash of each row that depends on its values alone.

    Parameters
    ----------
    vectors : array or csr_array, shape (rows, columns)
    """
    out = np.empty(vectors.shape[0], np.uint64)
    if isinstance(vectors, np.ndarray):
        _hash_dense(np.ascontiguousarray(vectors).view(np.uint32), out)
    else:
        data, columns, starts = as_parts(vectors)
        _hash_sparse(np.ascontiguousarray(data).view(np.uint32), columns, starts, out)
    return out


@njit(cache=True, nogil=True)
def _stir(bits, column):  # type: ignore[no-untyped-def]
    """Return 64 random bits for a value in a column, none for a zero.

    A row's hash is their sum: nothing waits for the column before, and where zeros stand, or
    whether they are stored, does not count.
    """
    if (bits & np.uint32(0x7FFFFFFF)) == 0:  # 0 and -0
        return np.uint64(0)
    z = np.uint64(bits) + np.uint64(column) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _hash_dense(bits, out):  # type: ignore[no-untyped-def]
    for row in range(bits.shape[0]):
        total = np.uint64(0)
        for c in range(bits.shape[1]):
            total += _stir(bits[row, c], c + 1)
        out[row] = total


@njit(cache=True, nogil=True)
def _hash_sparse(bits, columns, starts, out):  # type: ignore[no-untyped-def]
    for row in range(out.shape[0]):
        total = np.uint64(0)
        for entry in range(starts[row], starts[row + 1]):
            total += _stir(bits[entry], columns[entry] + 1)
        out[row] = total
