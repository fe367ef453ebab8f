"""Projections and moments of one block."""

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from eigenscape.base.memory import ROW_TILE
from eigenscape.errors import SceneError

_LEAST_NOISE = 1e-6
"""Variance of the noise along a direction, of the largest one: less is taken for rounding."""


def orthoprojector(bands: int, dimension: int, seed: int) -> NDArray[np.float64]:
    """Return a random orthoprojector, scaled so that it keeps squared distances on average.

    The rows of a Gaussian (dimension x bands) matrix, orthonormalised, times sqrt(bands / dimension)
    (Halevy 2011, chapter 4).

    Parameters
    ----------
    bands, dimension
        Length of a sample and of its projection; ``dimension <= bands``.
    seed
        Seed of the Gaussian matrix.

    Returns
    -------
    array, shape (bands, dimension)
        Multiply samples with it from the right.
    """
    if not 1 <= dimension <= bands:
        raise ValueError(f"dimension = {dimension}: must lie in 1 ... {bands}")
    gaussian = np.random.default_rng(seed).standard_normal((bands, dimension))
    basis, triangle = np.linalg.qr(gaussian)
    # The sign of QR is LAPACK's choice; with a positive diagonal the basis is Haar distributed.
    basis *= np.sign(np.diag(triangle))
    return np.asarray(basis * np.sqrt(bands / dimension))


def add_moments(
    samples: NDArray[np.float32],
    shift: NDArray[np.float64],
    total: NDArray[np.float64],
    scatter: NDArray[np.float64],
) -> None:
    """Add the sum and the scatter of samples about `shift`, tile by tile of `ROW_TILE` samples.

    Parameters
    ----------
    samples : array, shape (samples, bands)
    shift : array, shape (bands,)
        A point near the mean: subtracting it first keeps the scatter from cancelling.
    total : array, shape (bands,)
        Sum of ``samples - shift``.
    scatter : array, shape (bands, bands) or (bands,)
        ``(samples - shift).T @ (samples - shift)``, in double, or its diagonal.
    """
    for start in range(0, len(samples), ROW_TILE):
        centred = samples[start : start + ROW_TILE] - shift
        total += centred.sum(axis=0)
        if scatter.ndim == 2:
            scatter += centred.T @ centred
        else:
            scatter += np.einsum("ij,ij->j", centred, centred)


def unit_scale(variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factor that gives each band variance 1, of a constant band 0."""
    # A constant band tells samples apart by nothing: it is left at 0 instead of 0 / 0.
    return np.divide(1, np.sqrt(variance), out=np.zeros(len(variance)), where=variance > 0)


def principal_components(
    covariance: NDArray[np.float64], dimension: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the leading eigenvectors of a covariance matrix and the variance along each.

    The sign is such that the largest entry of each vector is positive.

    Returns
    -------
    basis : array, shape (bands, dimension)
    variance : array, shape (dimension,), descending
    """
    bands = len(covariance)
    # Only the leading ones: in half the time and a quarter of the memory of all of them.
    variance, basis = eigh(covariance, subset_by_index=(bands - dimension, bands - 1))
    variance, basis = variance[::-1], basis[:, ::-1]
    largest = np.abs(basis).argmax(axis=0)
    return basis * np.sign(basis[largest, np.arange(basis.shape[1])]), variance


def difference_scatter(
    samples: NDArray[np.float32], one: NDArray[np.intp], two: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the sum of the outer products of differences between samples.

    Parameters
    ----------
    samples : array, shape (samples, bands)
    one, two : array of int, shape (pairs,)
        Which samples are subtracted from each other.

    Returns
    -------
    array, shape (bands, bands)
        In double.
    """
    bands = samples.shape[1]
    scatter = np.zeros((bands, bands))
    for start in range(0, len(one), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        difference = samples[one[here]].astype(np.float64) - samples[two[here]]
        scatter += difference.T @ difference
    return scatter


def difference_power(
    samples: NDArray[np.float32], one: NDArray[np.intp], two: NDArray[np.intp]
) -> float:
    """Return the sum of squared differences between samples: the trace of `difference_scatter`."""
    power = 0.0
    for start in range(0, len(one), ROW_TILE):
        here = slice(start, start + ROW_TILE)
        difference = samples[one[here]].astype(np.float64) - samples[two[here]]
        power += float(np.einsum("ij,ij->", difference, difference))
    return power


def noise_fractions(
    covariance: NDArray[np.float64], noise: NDArray[np.float64], dimension: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the directions of least noise in proportion to their variance (Green and others 1988).

    The leading solutions of C v = lambda N v, with v^T N v = 1: along each the noise has variance
    1 and the samples lambda, and no two share noise. Bands are brought to variance 1 before, so
    that what counts as no noise at all depends on no unit. The sign is that of `principal_components`.

    Parameters
    ----------
    covariance, noise : array, shape (bands, bands)
        C and N, covariance of the samples and of their noise.
    dimension
        How many, at most the number of bands.

    Returns
    -------
    basis : array, shape (bands, dimension)
        Multiply samples with it from the right.
    ratio : array, shape (dimension,), descending
        lambda, the ratio of signal with noise to noise.

    Raises
    ------
    SceneError
        There is no noise, but variance.
    """
    scale = unit_scale(np.diag(covariance))
    power, axes = eigh(noise * scale * scale[:, None])
    if scale.any() and not power[-1] > 0:
        raise SceneError(
            'features.method = "mnf" measures noise by what neighbouring pixels differ by, and all of them '
            'are equal to their neighbours. Set features.method to "pca" or "none".'
        )
    # A direction without noise would outweigh all others; of a constant scene nothing is left.
    least = max(_LEAST_NOISE * power[-1], np.finfo(np.float64).tiny)
    whitening = scale[:, None] * axes / np.sqrt(np.maximum(power, least))
    basis, ratio = principal_components(whitening.T @ covariance @ whitening, dimension)
    return whitening @ basis, ratio


def project(
    samples: NDArray[np.float32],
    shift: NDArray[np.float32] | None,
    basis: NDArray[np.float32] | None,
) -> NDArray[np.float32]:
    """Return ``(samples - shift) @ basis``, computed by tiles of `ROW_TILE` samples.

    Parameters
    ----------
    samples : array, shape (samples, bands)
    shift : array, shape (bands,), optional
    basis : array, shape (bands, features) or (bands,), optional
        One factor per band stands for a diagonal matrix, None for the identity.

    Returns
    -------
    array, shape (samples, features)
    """
    width = samples.shape[1] if basis is None else basis.shape[-1]
    features = np.empty((len(samples), width), np.float32)
    for start in range(0, len(samples), ROW_TILE):
        tile = samples[start : start + ROW_TILE]
        if shift is not None:
            tile = tile - shift
        if basis is not None:
            tile = tile * basis if basis.ndim == 1 else tile @ basis
        features[start : start + ROW_TILE] = tile
    return features


def project_sparse(
    samples: csr_array, shift: NDArray[np.float32] | None, basis: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return ``(samples - shift) @ basis`` as `project` does; samples become dense only if they must.

    Parameters
    ----------
    samples : csr_array, shape (samples, bands)
    shift : array, shape (bands,), optional
    basis : array, shape (bands, features) or (bands,)

    Returns
    -------
    array, shape (samples, features)
    """
    if basis.ndim == 1:
        whole: NDArray[np.float32] = samples.toarray()
        if shift is not None:
            whole -= shift
        whole *= basis
        return whole
    features: NDArray[np.float32] = samples @ basis
    if shift is not None:
        features -= (shift.astype(np.float64) @ basis).astype(np.float32)
    return features


def sparse_sums(samples: csr_array) -> NDArray[np.float64]:
    """Return the sum of each column of sparse samples, in double, shape (bands,)."""
    return np.asarray(np.bincount(samples.indices, samples.data, samples.shape[1]), np.float64)


def sparse_scatter(samples: csr_array, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of squared distances to the mean of each column, in double, shape (bands,).

    From differences and not from squares, so that it is 0 for a column of one value.
    """
    rows, bands = samples.shape
    squares = np.bincount(samples.indices, (samples.data - mean[samples.indices]) ** 2, bands)
    zeros = rows - np.bincount(samples.indices, minlength=bands)
    return np.asarray(squares + zeros * mean**2)


@njit(cache=True, nogil=True)
def add_products(data, indices, starts, products):  # type: ignore[no-untyped-def]
    """Add ``samples.T @ samples`` to `products`, in place; only on and below its diagonal.

    Parameters
    ----------
    data, indices, starts
        Parts of sparse rows, column numbers ascending within each.
    products : array, shape (bands, bands), float64
    """
    for row in range(len(starts) - 1):
        for one in range(starts[row], starts[row + 1]):
            value = np.float64(data[one])
            target = products[indices[one]]
            for two in range(starts[row], one + 1):
                target[indices[two]] += value * data[two]


@njit(cache=True, nogil=True)
def centre_products(products, mean, rows):  # type: ignore[no-untyped-def]
    """Turn what `add_products` summed over `rows` samples into their covariance, in place."""
    for one in range(len(mean)):
        for two in range(one + 1):
            covariance = products[one, two] / rows - mean[one] * mean[two]
            products[one, two] = covariance
            products[two, one] = covariance
