"""Openings and closings by reconstruction of a whole image, which may be mapped from a file.

Missing pixels are NaN: they are no part of any mean or extreme, and nothing is reconstructed through them.
A closing is the opening of the image with its sign turned.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def erode(image, sign, radius, eroded):  # type: ignore[no-untyped-def]
    """Write the least value in the disk around each pixel, of valid pixels; -inf where there is none.

    Parameters
    ----------
    image : array, shape (rows, columns), float32
        NaN where a pixel is missing.
    sign : float32
        What the image is multiplied by: 1 or -1.
    radius : int
        Of the disk: all pixels whose centres are no further away.
    eroded : array, shape (rows, columns), float32
        Written.
    """
    rows, columns = image.shape
    least = np.empty(columns, np.float32)
    for row in range(rows):
        least[:] = np.inf
        for down in range(max(-radius, -row), min(radius + 1, rows - row)):
            reach = int(math.sqrt(radius * radius - down * down))
            line = image[row + down]
            for right in range(-reach, reach + 1):
                for column in range(max(0, -right), min(columns, columns - right)):
                    value = sign * line[column + right]
                    least[column] = value if value < least[column] else least[column]
        for column in range(columns):
            missing = math.isnan(image[row, column])
            eroded[row, column] = -np.inf if missing else least[column]


@njit(cache=True, nogil=True)
def reconstruct(image, sign, marker):  # type: ignore[no-untyped-def]
    """Reconstruct an image by dilation from a marker below it, in place (Vincent 1993).

    The marker spreads over the eight neighbours of a pixel as far as the image lets it. Sweeps go down
    and up the rows, each of them in both directions, and pass over rows beside which nothing has
    changed. The fixed point is unique: no rounding, and no order of work that could show in it.

    Parameters
    ----------
    image, sign
        As in `erode`.
    marker : array, shape (rows, columns), float32
        At most the image; -inf where that is missing.

    Returns
    -------
    int
        Number of rows that were worked on.
    """
    rows = image.shape[0]
    # Whether a row has changed since the one below, or above, has seen it.
    below, above = np.ones(rows, np.bool_), np.ones(rows, np.bool_)
    _spread(image[0], sign, marker[0], marker[0])
    worked = 1
    while below[: rows - 1].any() or above[1:].any():
        for row in range(1, rows):
            if below[row - 1]:
                below[row - 1] = False
                worked += 1
                if _spread(image[row], sign, marker[row - 1], marker[row]):
                    below[row] = above[row] = True
        for row in range(rows - 2, -1, -1):
            if above[row + 1]:
                above[row + 1] = False
                worked += 1
                if _spread(image[row], sign, marker[row + 1], marker[row]):
                    below[row] = above[row] = True
    return worked


@njit(cache=True, nogil=True)
def _spread(line, sign, beside, marker):  # type: ignore[no-untyped-def]
    """Spread a row from the one beside it, and along itself; return whether it has changed."""
    columns, changed = len(line), False
    last = np.float32(-np.inf)
    for column in range(columns):
        value = max(last, marker[column], beside[column])
        if column > 0:
            value = max(value, beside[column - 1])
        if column + 1 < columns:
            value = max(value, beside[column + 1])
        limit = sign * line[column]
        # Not of a missing pixel, whose limit is NaN.
        if limit > marker[column]:
            value = min(value, limit)
            if value > marker[column]:
                marker[column] = value
                changed = True
        last = marker[column]
    last = np.float32(-np.inf)
    for column in range(columns - 1, -1, -1):
        limit = sign * line[column]
        if limit > marker[column]:
            value = min(last, limit)
            if value > marker[column]:
                marker[column] = value
                changed = True
        last = marker[column]
    return changed
