"""The guided filter: each feature as a linear function of the leading ones, near by."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def guided(window, valid, radius, guides, epsilon, filtered):  # type: ignore[no-untyped-def]
    """Filter the inner pixels of a window (He, Sun, Tang 2013, with a guide of several channels).

    In the square around every valid pixel a feature is fitted by the guide, with a penalty epsilon on
    the squared slopes; a pixel takes the mean of the fits of all squares that hold it. Means are those
    of valid pixels. Sums are direct and run in one order, whatever the window is a part of.

    Parameters
    ----------
    window : array, shape (features, rows + 4 radius, columns + 4 radius), float32
        The first `guides` features are the guide.
    valid : array of bool, shape (rows + 4 radius, columns + 4 radius)
    radius : int
        Of the squares, in pixels.
    guides : int
        Channels of the guide.
    epsilon : float
        In squared units of the features.
    filtered : array, shape (features, rows, columns), float32
        Written; what is not valid is meaningless.
    """
    features, rows, columns = filtered.shape
    height, width = rows + 2 * radius, columns + 2 * radius
    plane = np.empty(valid.shape)
    lines, inner_lines = np.empty((height, valid.shape[1])), np.empty((rows, width))
    count = np.empty((height, width))
    _copy(valid, plane)
    _box_sums(plane, radius, lines, count)
    # Squares about pixels that are not valid count for nothing.
    centred = np.empty((height, width))
    _copy(plane[radius : radius + height, radius : radius + width], centred)
    squares = np.empty((rows, columns))
    _box_sums(centred, radius, inner_lines, squares)

    mean = np.empty((guides, height, width))
    for one in range(guides):
        _copy(window[one], plane)
        _box_sums(plane, radius, lines, mean[one])
        _divide(mean[one], count)
    factor = np.empty((guides, guides, height, width))
    for one in range(guides):
        for two in range(one + 1):
            _multiply(window[one], window[two], plane)
            _box_sums(plane, radius, lines, factor[one, two])
            _subtract_means(factor[one, two], count, mean[one], mean[two])
    _factorise(factor, epsilon)

    slope = np.empty((guides, height, width))
    offset = np.empty((height, width))
    smooth, total = np.empty((rows, columns)), np.empty((rows, columns))
    for feature in range(features):
        _copy(window[feature], plane)
        _box_sums(plane, radius, lines, offset)
        _divide(offset, count)
        for one in range(guides):
            _multiply(window[one], window[feature], plane)
            _box_sums(plane, radius, lines, slope[one])
            _subtract_means(slope[one], count, mean[one], offset)
        _solve(factor, slope)
        for one in range(guides):
            for row in range(height):
                for column in range(width):
                    offset[row, column] -= slope[one, row, column] * mean[one, row, column]
                    slope[one, row, column] *= centred[row, column]
        _multiply(offset, centred, offset)
        _box_sums(offset, radius, inner_lines, total)
        _divide(total, squares)
        for one in range(guides):
            _box_sums(slope[one], radius, inner_lines, smooth)
            _divide(smooth, squares)
            for row in range(rows):
                for column in range(columns):
                    value = window[one, row + 2 * radius, column + 2 * radius]
                    total[row, column] += smooth[row, column] * value
        _copy(total, filtered[feature])


@njit(cache=True, nogil=True)
def _box_sums(plane, radius, lines, sums):  # type: ignore[no-untyped-def]
    """Sum over the squares of a plane: along columns into `lines`, then along rows."""
    lines[:] = 0
    for row in range(lines.shape[0]):
        for down in range(2 * radius + 1):
            for column in range(lines.shape[1]):
                lines[row, column] += plane[row + down, column]
    sums[:] = 0
    for row in range(sums.shape[0]):
        for right in range(2 * radius + 1):
            for column in range(sums.shape[1]):
                sums[row, column] += lines[row, column + right]


# Loops, here and below: assignments of slices and operations on whole arrays take seconds to compile.
@njit(cache=True, nogil=True)
def _copy(values, target):  # type: ignore[no-untyped-def]
    for row in range(target.shape[0]):
        for column in range(target.shape[1]):
            target[row, column] = values[row, column]


@njit(cache=True, nogil=True)
def _divide(sums, count):  # type: ignore[no-untyped-def]
    """Turn sums into means, in place; those of nothing stay 0."""
    for row in range(sums.shape[0]):
        for column in range(sums.shape[1]):
            sums[row, column] /= max(count[row, column], 1.0)


@njit(cache=True, nogil=True)
def _multiply(one, two, product):  # type: ignore[no-untyped-def]
    for row in range(product.shape[0]):
        for column in range(product.shape[1]):
            product[row, column] = np.float64(one[row, column]) * two[row, column]


@njit(cache=True, nogil=True)
def _subtract_means(sums, count, one, two):  # type: ignore[no-untyped-def]
    """Turn sums of products into covariances."""
    for row in range(sums.shape[0]):
        for column in range(sums.shape[1]):
            product = one[row, column] * two[row, column]
            sums[row, column] = sums[row, column] / max(count[row, column], 1.0) - product


@njit(cache=True, nogil=True)
def _factorise(matrix, epsilon):  # type: ignore[no-untyped-def]
    """Replace matrices (size, size, rows, columns), lower triangles, by Cholesky factors of M + epsilon."""
    for one in range(matrix.shape[0]):
        for two in range(one + 1):
            for row in range(matrix.shape[2]):
                for column in range(matrix.shape[3]):
                    value = matrix[one, two, row, column] + (epsilon if one == two else 0.0)
                    for before in range(two):
                        value -= matrix[one, before, row, column] * matrix[two, before, row, column]
                    if one == two:
                        # Less than epsilon is rounding: far from 0 it may leave less than nothing.
                        matrix[one, one, row, column] = np.sqrt(max(value, epsilon))
                    else:
                        matrix[one, two, row, column] = value / matrix[two, two, row, column]


@njit(cache=True, nogil=True)
def _solve(factor, right):  # type: ignore[no-untyped-def]
    """Solve with the Cholesky factors of `_factorise` in place; right sides (size, rows, columns)."""
    size = factor.shape[0]
    for row in range(right.shape[1]):
        for column in range(right.shape[2]):
            for one in range(size):
                value = right[one, row, column]
                for two in range(one):
                    value -= factor[one, two, row, column] * right[two, row, column]
                right[one, row, column] = value / factor[one, one, row, column]
            for one in range(size - 1, -1, -1):
                value = right[one, row, column]
                for two in range(one + 1, size):
                    value -= factor[two, one, row, column] * right[two, row, column]
                right[one, row, column] = value / factor[one, one, row, column]
