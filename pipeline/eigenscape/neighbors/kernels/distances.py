"""Distances and projections of single rows, for compiled loops, on dense and on sparse rows.

Rows are an array of shape (rows, d), or the data, column numbers and row starts of compressed
sparse rows (`eigenscape.base.vectors.Parts`). Which loop is compiled follows from the type of the argument.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

# The sum of a row may be reordered, or it could not be vectorised: four to five times as fast.
_SUMS = {"fastmath": {"reassoc", "contract", "nsz"}}


def squared(x: Any, i: Any, y: Any, j: Any) -> Any:
    """Squared distance of row i of x and row j of y, by differences.

    Exactly 0 for equal rows, and no cancellation for near ones. Compiled loops only.
    """
    raise NotImplementedError("squared() exists in compiled code only")


def projected(x: Any, i: Any, direction: Any) -> Any:
    """Inner product of row i of x with a dense direction. Compiled loops only."""
    raise NotImplementedError("projected() exists in compiled code only")


@overload(squared, jit_options=_SUMS)
def _squared(x, i, y, j):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array):

        def dense(x, i, y, j):  # type: ignore[no-untyped-def]
            total = np.float32(0)
            for c in range(x.shape[1]):
                difference = x[i, c] - y[j, c]
                total += difference * difference
            return total

        return dense

    def sparse(x, i, y, j):  # type: ignore[no-untyped-def]
        data_x, columns_x, starts_x = x
        data_y, columns_y, starts_y = y
        a, end_a = starts_x[i], starts_x[i + 1]
        b, end_b = starts_y[j], starts_y[j + 1]
        total = np.float32(0)
        while a < end_a and b < end_b:
            if columns_x[a] == columns_y[b]:
                difference = data_x[a] - data_y[b]
                a += 1
                b += 1
            elif columns_x[a] < columns_y[b]:
                difference = data_x[a]
                a += 1
            else:
                difference = data_y[b]
                b += 1
            total += difference * difference
        while a < end_a:
            total += data_x[a] * data_x[a]
            a += 1
        while b < end_b:
            total += data_y[b] * data_y[b]
            b += 1
        return total

    return sparse


@overload(projected, jit_options=_SUMS)
def _projected(x, i, direction):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array):

        def dense(x, i, direction):  # type: ignore[no-untyped-def]
            total = np.float32(0)
            for c in range(x.shape[1]):
                total += x[i, c] * direction[c]
            return total

        return dense

    def sparse(x, i, direction):  # type: ignore[no-untyped-def]
        data, columns, starts = x
        total = np.float32(0)
        for entry in range(starts[i], starts[i + 1]):
            total += data[entry] * direction[columns[entry]]
        return total

    return sparse
