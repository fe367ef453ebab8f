"""Projections and moments of one block, in plain NumPy."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.memory import ROW_TILE


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


def moments(
    samples: NDArray[np.float32], shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum and the scatter of samples about `shift`.

    Parameters
    ----------
    samples : array, shape (samples, bands)
    shift : array, shape (bands,)
        A point near the mean: subtracting it first keeps the scatter from cancelling.

    Returns
    -------
    total : array, shape (bands,)
        Sum of ``samples - shift``.
    scatter : array, shape (bands, bands)
        ``(samples - shift).T @ (samples - shift)``, in double.
    """
    bands = samples.shape[1]
    total, scatter = np.zeros(bands), np.zeros((bands, bands))
    for start in range(0, len(samples), ROW_TILE):
        centred = samples[start : start + ROW_TILE].astype(np.float64) - shift
        total += centred.sum(axis=0)
        scatter += centred.T @ centred
    return total, scatter


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
    variance, basis = np.linalg.eigh(covariance)
    variance, basis = variance[::-1][:dimension], basis[:, ::-1][:, :dimension]
    largest = np.abs(basis).argmax(axis=0)
    return basis * np.sign(basis[largest, np.arange(basis.shape[1])]), variance


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
    basis : array, shape (bands, features), optional
        The identity where it is None.

    Returns
    -------
    array, shape (samples, features)
    """
    width = samples.shape[1] if basis is None else basis.shape[1]
    features = np.empty((len(samples), width), np.float32)
    for start in range(0, len(samples), ROW_TILE):
        tile = samples[start : start + ROW_TILE]
        if shift is not None:
            tile = tile - shift
        features[start : start + ROW_TILE] = tile if basis is None else tile @ basis
    return features
