"""Spectra prepared in one pass over a block: continuum, length, slope."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


def slope_weights(wavelength: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the band before, the band itself and the band after in the slope at each band.

    Second-order differences of unevenly spaced bands, of first order at both ends: those of `numpy.gradient`.

    Parameters
    ----------
    wavelength : array, shape (bands,)
        Rising from band to band, two or more of them.

    Returns
    -------
    array, shape (bands, 3)
    """
    weights = np.zeros((len(wavelength), 3))
    step = np.diff(wavelength)
    before, after = step[:-1], step[1:]
    weights[1:-1, 0] = -after / (before * (before + after))
    weights[1:-1, 1] = (after - before) / (before * after)
    weights[1:-1, 2] = before / (after * (before + after))
    weights[0, 1:] = -1 / step[0], 1 / step[0]
    weights[-1, :2] = -1 / step[-1], 1 / step[-1]
    return weights


@njit(cache=True, nogil=True)
def prepare(samples, origin, order, wavelength, weights, continuum, unit, slope):  # type: ignore[no-untyped-def]
    """Return prepared spectra, in double from the first step to the last.

    Parameters
    ----------
    samples : array, shape (samples, bands), float32
        Less `origin`, which is added first.
    origin : array, shape (bands,)
    order : array of int, shape (bands,)
        The bands by wavelength.
    wavelength : array, shape (bands,)
        Of the bands in that order.
    weights : array, shape (bands, 3)
        See `slope_weights`.
    continuum, unit, slope
        Whether to divide by the upper convex hull, to scale to length 1, to differentiate.

    Returns
    -------
    array, shape (samples, bands), float32
        In the order of `samples`. Where the hull of a spectrum is not positive the ratio is 1; one of zeros
        keeps its length.
    """
    count, bands = samples.shape
    found = np.empty((count, bands), np.float32)
    line, hull = np.empty(bands), np.empty(bands, np.int64)
    for sample in range(count):
        for place in range(bands):
            band = order[place]
            line[place] = samples[sample, band] + origin[band]
        if continuum:
            _divide_by_hull(line, wavelength, hull)
        if unit:
            length = 0.0
            for place in range(bands):
                length += line[place] * line[place]
            if length > 0:
                length = np.sqrt(length)
                for place in range(bands):
                    line[place] /= length
        for place in range(bands):
            value = line[place]
            if slope:
                value *= weights[place, 1]
                if place > 0:
                    value += weights[place, 0] * line[place - 1]
                if place < bands - 1:
                    value += weights[place, 2] * line[place + 1]
            found[sample, order[place]] = value
    return found


@njit(cache=True, nogil=True)
def _divide_by_hull(line, wavelength, hull):  # type: ignore[no-untyped-def]
    """Divide a spectrum by its upper convex hull, in place (the scan of Andrew 1979)."""
    bands, top = len(line), 0
    for place in range(bands):
        while top > 1:
            one, two = hull[top - 2], hull[top - 1]
            rise = (line[two] - line[one]) * (wavelength[place] - wavelength[one])
            if rise > (line[place] - line[one]) * (wavelength[two] - wavelength[one]):
                break
            top -= 1
        hull[top] = place
        top += 1
    for edge in range(top - 1):
        one, two = hull[edge], hull[edge + 1]
        low, high = line[one], line[two]
        for place in range(one, two):
            share = (wavelength[place] - wavelength[one]) / (wavelength[two] - wavelength[one])
            at = low + (high - low) * share
            line[place] = line[place] / at if at > 0 else 1.0
    last = bands - 1
    line[last] = 1.0
