"""Compiled products of a Laplacian with a group of columns, and aggregation of its graph."""

import numpy as np
from numba import njit

from eigenscape.spectrum.kernels.gather import (
    WIDTH,
    add_rows,
    load_halves,
    step_halves,
    store_halves,
)


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
    sums = np.empty(WIDTH, X.dtype)
    last = len(indices) - 1
    for row in range(len(indptr) - 1):
        here = first + row
        add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        own = a * diagonal[here] + b
        for column in range(WIDTH):
            Z[here, column] = own * X[here, column] - c * Z[here, column] - a * sums[column]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def filter_halves(indptr, indices, data, diagonal, first, shift, D, Z, R, a, b):  # type: ignore[no-untyped-def]
    """Z <- a ((diagonal - shift - data) D + R) - b Z for the rows of one block, in half precision.

    Parameters
    ----------
    indptr, indices, data, diagonal, first
        See `filter_step`.
    shift : float
    D, Z, R : array of uint16, shape (n, WIDTH)
        See `eigenscape.spectrum.kernels.gather.step_halves`.
    a, b : array of float32, shape (WIDTH,)
        One number for every column.
    """
    last = len(indices) - 1
    for row in range(len(indptr) - 1):
        here = first + row
        own = np.float32(diagonal[here] - shift)
        step_halves(indices, data, indptr[row], indptr[row + 1], last, here, own, D, Z, R, a, b)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def halve_residuals(indptr, indices, data, diagonal, first, X, values, scale, R):  # type: ignore[no-untyped-def]
    """R <- scale (A - values) X for the rows of one block, in half precision (`step_halves`).

    See `filter_step` for the matrix; values and scale have shape (WIDTH,).
    """
    sums = np.empty(WIDTH, X.dtype)
    scaled = np.empty(WIDTH, np.float32)
    last = len(indices) - 1
    for row in range(len(indptr) - 1):
        here = first + row
        add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        for column in range(WIDTH):
            own = (np.float64(diagonal[here]) - values[column]) * X[here, column]
            scaled[column] = scale[column] * (own - sums[column])
        store_halves(scaled, R, here)


@njit(cache=True, nogil=True)
def add_halves(X, D, scale, Y):  # type: ignore[no-untyped-def]
    """Y <- X + scale D, where D holds half precision (`step_halves`) and scale has shape (WIDTH,)."""
    row = np.empty(WIDTH, np.float32)
    for here in range(len(X)):
        load_halves(D, here, row)
        for column in range(WIDTH):
            Y[here, column] = X[here, column] + scale[column] * row[column]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def balance_rows(indptr, indices, data, diagonal, first, rows, shift, X):  # type: ignore[no-untyped-def]
    """Set rows of X so that (A - shift) X is 0 there, given the others, one after the other.

    Parameters
    ----------
    indptr, indices, data, diagonal, first
        A block of A, see `filter_step`.
    rows : array of int, shape (m,)
        Rows of this block, numbered in the whole.
    shift : array, shape (WIDTH,)
        Below the diagonal of those rows.
    X : array, shape (n, WIDTH)
    """
    sums = np.empty(WIDTH, X.dtype)
    last = len(indices) - 1
    for here in rows:
        row = here - first
        add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        for column in range(WIDTH):
            X[here, column] = sums[column] / (diagonal[here] - shift[column])


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def rest_of_rows(indptr, indices, data, diagonal, first, rows, places, shift, X, rest):  # type: ignore[no-untyped-def]
    """Set rest[places] to some rows of (A - shift) X; see `balance_rows` for the parameters."""
    sums = np.empty(WIDTH, X.dtype)
    last = len(indices) - 1
    for number in range(len(rows)):
        here, place = rows[number], places[number]
        row = here - first
        add_rows(indices, data, indptr[row], indptr[row + 1], last, X, sums)
        for column in range(WIDTH):
            own = (diagonal[here] - shift[column]) * X[here, column]
            rest[place, column] = own - sums[column]


@njit(cache=True, nogil=True)
def add_ties(member, starts, pull, X, Z, factor):  # type: ignore[no-untyped-def]
    """Z <- Z + factor V X in place, in double; see `eigenscape.spectrum.kernels.ties`."""
    mean = np.empty(X.shape[1])
    for cluster in range(len(starts) - 1):
        begin, end = starts[cluster], starts[cluster + 1]
        mean[:] = 0
        for place in range(begin, end):
            for column in range(X.shape[1]):
                mean[column] += pull[place] * X[member[place], column]
        mean /= end - begin
        for place in range(begin, end):
            row = member[place]
            for column in range(X.shape[1]):
                apart = pull[place] * X[row, column] - mean[column]
                Z[row, column] += factor * pull[place] * apart


@njit(cache=True, nogil=True)
def tie_rows(member, starts, pull, level, rest, X):  # type: ignore[no-untyped-def]
    """X <- level / pull + y on every cluster, where V y = - rest as far as V can, in place.

    Parameters
    ----------
    member, starts, pull
        See `eigenscape.spectrum.kernels.ties.Ties`.
    level : array, shape (clusters, WIDTH)
    rest : array, shape (members, WIDTH)
        Overwritten by y.
    X : array, shape (n, WIDTH)
    """
    share = np.empty(WIDTH)
    for cluster in range(len(starts) - 1):
        begin, end = starts[cluster], starts[cluster + 1]
        length = 0.0
        for place in range(begin, end):
            length += 1 / pull[place] ** 2
        # The range of V is orthogonal to its null vector 1 / u; there V^-1 is u^-2 ...
        for turn in range(2):
            share[:] = 0
            for place in range(begin, end):
                for column in range(WIDTH):
                    share[column] += rest[place, column] / pull[place]
            share /= length
            for place in range(begin, end):
                for column in range(WIDTH):
                    rest[place, column] -= share[column] / pull[place]
                    if turn == 0:
                        rest[place, column] /= -(pull[place] ** 2)
        # ... up to a null vector, which the second turn takes out.
        for place in range(begin, end):
            for column in range(WIDTH):
                X[member[place], column] = (
                    level[cluster, column] / pull[place] + rest[place, column]
                )


@njit(cache=True, nogil=True)
def level_of(member, starts, pull, X, level):  # type: ignore[no-untyped-def]
    """Set level so that level / pull is the part of X along the null vector of every cluster."""
    for cluster in range(len(starts) - 1):
        length = 0.0
        level[cluster] = 0
        for place in range(starts[cluster], starts[cluster + 1]):
            length += 1 / pull[place] ** 2
            for column in range(WIDTH):
                level[cluster, column] += X[member[place], column] / pull[place]
        level[cluster] /= length


@njit(cache=True, nogil=True)
def multiply(indptr, indices, data, diagonal, first, x, image):  # type: ignore[no-untyped-def]
    """Image <- diagonal x - data x for one vector in double; see `filter_step`."""
    for row in range(len(indptr) - 1):
        here = first + row
        total = diagonal[here] * x[here]
        for entry in range(indptr[row], indptr[row + 1]):
            total -= data[entry] * x[indices[entry]]
        image[here] = total


@njit(cache=True, nogil=True)
def sum_null(null, place, X, sums):  # type: ignore[no-untyped-def]
    """Add null X of every row of a tile to the sums of its place, in double.

    Parameters
    ----------
    null : array, shape (rows,)
    place : array of int, shape (rows,)
        Row of the sums.
    X : array, shape (rows, WIDTH)
    sums : array of float64, shape (places, WIDTH)
    """
    for row in range(len(X)):
        for column in range(WIDTH):
            sums[place[row], column] += null[row] * X[row, column]


@njit(cache=True, nogil=True)
def subtract_null(null, component, shares, X):  # type: ignore[no-untyped-def]
    """X <- X - null shares of the component, row by row, in place; shares has shape (components, WIDTH)."""
    for row in range(len(X)):
        for column in range(WIDTH):
            X[row, column] -= null[row] * shares[component[row], column]


@njit(cache=True, nogil=True)
def residual_squares(X, image, values):  # type: ignore[no-untyped-def]
    """Return |image - values X|^2 of every column, summed in double."""
    squares = np.zeros(WIDTH)
    for row in range(len(X)):
        for column in range(WIDTH):
            difference = np.float64(image[row, column]) - values[column] * X[row, column]
            squares[column] += difference * difference
    return squares


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
    first : int
        Row of the matrix with which the block begins.
    indptr, indices, data : array, shapes (rows + 1,), (entries,), (entries,)
        The block in CSR format, with columns of the whole matrix.
    label : array of int, shape (n,)
        Aggregate of each row, -1 while free.
    count : int
        Aggregates so far.
    stage : int
        0, 1 or 2.

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
