"""Compiled products of a Laplacian with a group of columns, and aggregation of its graph."""

from numba import njit

WIDTH = 16
"""Columns of a group: in single precision a row of a group is one cache line, so that a random
access to it costs one. Fixed, so that every column meets the same arithmetic everywhere."""


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def filter_step(indptr, indices, data, diagonal, first, X, Z, a, b, c):  # type: ignore[no-untyped-def]
    """Z <- a (diagonal X - data X) + b X - c Z for the rows of one CSR block, in place.

    One step of the Chebyshev recurrence with no temporaries (Zhou, Saad, Tiago, Chelikowsky 2006).

    Parameters
    ----------
    indptr, indices, data
        Off-diagonal entries of the block, their sign turned.
    diagonal : array, shape (n,)
    first : int
        First row of the block.
    X, Z : array, shape (n, WIDTH)
    a, b, c : float
        Of the type of X.
    """
    for row in range(indptr.shape[0] - 1):
        here = first + row
        own = a * diagonal[here] + b
        for column in range(WIDTH):
            Z[here, column] = own * X[here, column] - c * Z[here, column]
        entry, end = indptr[row], indptr[row + 1]
        # Four entries at a time: a row of Z is loaded and stored a quarter as often (1.2 x).
        while entry + 4 <= end:
            w0, w1 = a * data[entry], a * data[entry + 1]
            w2, w3 = a * data[entry + 2], a * data[entry + 3]
            o0, o1 = indices[entry], indices[entry + 1]
            o2, o3 = indices[entry + 2], indices[entry + 3]
            for column in range(WIDTH):
                Z[here, column] -= (
                    w0 * X[o0, column]
                    + w1 * X[o1, column]
                    + w2 * X[o2, column]
                    + w3 * X[o3, column]
                )
            entry += 4
        while entry < end:
            weight, other = a * data[entry], indices[entry]
            for column in range(WIDTH):
                Z[here, column] -= weight * X[other, column]
            entry += 1


@njit(cache=True, nogil=True)
def scale_entries(first, indptr, indices, data, scale, scaled):  # type: ignore[no-untyped-def]
    """scaled_ij <- scale_i data_ij scale_j, computed in double, in place."""
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            scaled[entry] = scale[first + row] * data[entry] * scale[indices[entry]]


@njit(cache=True, nogil=True)
def aggregate(first, indptr, indices, data, label, count, stage):  # type: ignore[no-untyped-def]
    """Group the rows of one block into aggregates around roots, in place.

    Standard aggregation (Vanek, Mandel, Brezina 1996), block after block:

    stage 0: a row none of whose neighbours is taken becomes a root and takes all of them;
    stage 1: a row that is left joins the aggregate of its strongest neighbour;
    stage 2: what is still left becomes an aggregate of its own.

    Parameters
    ----------
    label : array of int, shape (n,)
        Aggregate of each row, -1 while free.
    count : int
        Aggregates so far.

    Returns
    -------
    int
        Aggregates after this call.
    """
    for row in range(indptr.shape[0] - 1):
        here = first + row
        if label[here] >= 0:
            continue
        begin, end = indptr[row], indptr[row + 1]
        if stage == 0:
            free = True
            for entry in range(begin, end):
                if label[indices[entry]] >= 0:
                    free = False
                    break
            if free:
                label[here] = count
                for entry in range(begin, end):
                    label[indices[entry]] = count
                count += 1
        elif stage == 1:
            strongest, best = -1, 0.0
            for entry in range(begin, end):
                # Only aggregates of stage 0, marked by labels below their count: no chains.
                if label[indices[entry]] >= 0 and data[entry] > best:
                    best, strongest = data[entry], label[indices[entry]]
            if strongest >= 0:
                label[here] = -2 - strongest
        else:
            label[here] = count
            count += 1
    return count
