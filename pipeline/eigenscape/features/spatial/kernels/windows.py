"""Samples of a scene to windows of its grid, and back.

A window holds one plane for each feature, so that loops run along rows of pixels. Where the scene has no
sample, beyond its border too, it holds 0 and is not valid.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_window(values, pixels, width, top, left, window, valid):  # type: ignore[no-untyped-def]
    """Copy samples to their places in a window.

    Parameters
    ----------
    values : array, shape (samples, features)
        Those of the window's rows, at least.
    pixels : array of int, shape (samples,)
        Flat pixel of each, ascending.
    width : int
        Columns of the scene.
    top, left : int
        Pixel in the corner of the window; it may lie outside of the scene.
    window : array, shape (features, rows, columns)
        Written.
    valid : array of bool, shape (rows, columns)
        Written.
    """
    window[:] = 0
    valid[:] = False
    for row in range(window.shape[1]):
        start = (top + row) * width
        last = start + min(left + window.shape[2], width)
        sample = np.searchsorted(pixels, start + max(left, 0))
        while sample < len(pixels) and pixels[sample] < last:
            column = pixels[sample] - start - left
            valid[row, column] = True
            for feature in range(window.shape[0]):
                window[feature, row, column] = values[sample, feature]
            sample += 1


@njit(cache=True, nogil=True)
def take_samples(window, pixels, width, top, left, values):  # type: ignore[no-untyped-def]
    """Copy pixels of a window to the samples that lie there; the reverse of `fill_window`.

    Parameters
    ----------
    window : array, shape (features, rows, columns)
    pixels, width, top, left
        As in `fill_window`.
    values : array, shape (samples, features)
        Written, where the window has the sample.
    """
    for row in range(window.shape[1]):
        start = (top + row) * width
        last = start + min(left + window.shape[2], width)
        sample = np.searchsorted(pixels, start + max(left, 0))
        while sample < len(pixels) and pixels[sample] < last:
            column = pixels[sample] - start - left
            for feature in range(window.shape[0]):
                values[sample, feature] = window[feature, row, column]
            sample += 1
