"""Made pictures: bars in a small image, and a look-alike of the HYDICE Urban scene."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.datasets.made.landcover import smooth_noise
from eigenscape.datasets.made.manifolds import generator
from eigenscape.errors import InputError

SIDE = 40
"""Rows and columns of an image of a bar."""
BAR = (12, 3)
"""Length and width of a bar, in pixels: the graph of 14 neighbours has one component."""

URBAN_SCALE = 1000
"""Stored units of the Urban look-alike per unit of reflectance."""
PURE = 0.8
"""Share of a pixel from which one material is its class."""

_LIGHT, _SLOPE = 0.15, 0.05
"""Largest relative change of brightness, and of its slope along the spectrum."""
_PERIODS = (90.0, 14.0)  # Pixels.
_NOISE = 0.004
"""Standard deviation of the sensor's noise, in reflectance."""


def bars(samples: int = 1000, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw binary images of one bar each, at a random place: half vertical, half horizontal.

    Each kind is a surface of two dimensions, since a bar has two coordinates, and the two come
    close where bars overlap (Belkin 2003, 2.6.2). No image comes twice.

    Parameters
    ----------
    samples
        Number of images, an even one.
    seed
        The same seed gives the same images.

    Returns
    -------
    images : array of uint8, shape (samples, SIDE * SIDE)
        1 on the bar, rows of pixels one after the other.
    classes : array of uint8, shape (samples,)
        1 for vertical bars, which come first, 2 for horizontal ones.
    """
    rng = generator(samples, seed)
    length, width = BAR
    places = (SIDE - length + 1) * (SIDE - width + 1)
    half = samples // 2
    if samples % 2 or half > places:
        raise InputError(
            f"samples = {samples}: give an even number up to {2 * places}, half of it for each kind."
        )
    images = np.zeros((samples, SIDE, SIDE), np.uint8)
    for kind in range(2):
        drawn = rng.choice(places, half, replace=False)
        for image, place in zip(images[kind * half :], drawn, strict=False):
            down, right = divmod(int(place), SIDE - width + 1)
            upright = image if kind == 0 else image.T
            upright[down : down + length, right : right + width] = 1
    return images.reshape(samples, -1), np.repeat(np.array([1, 2], np.uint8), half)


def urban_like(
    abundances: NDArray[np.float64],
    spectra: NDArray[np.float64],
    shape: tuple[int, int],
    seed: int = 0,
) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Make a scene from published shares of materials and their spectra.

    Each pixel is the mixture of its materials' spectra, times a brightness and a slope along the
    spectrum that change smoothly over the scene, plus white noise.

    Parameters
    ----------
    abundances : array, shape (materials, pixels)
        Shares of the materials, pixels column by column as MATLAB counts them.
    spectra : array, shape (bands, materials)
        Reflectance.
    shape
        Rows and columns.
    seed
        Of brightness, slope and noise.

    Returns
    -------
    cube : array of uint16, shape (rows, columns, bands)
        Reflectance x `URBAN_SCALE`.
    labels : array of uint8, shape (rows, columns)
        The material from 1 that makes up `PURE` of the pixel or more; 0 where none does.
    """
    rows, columns = shape
    shares = abundances.T.reshape(columns, rows, -1).transpose(1, 0, 2).astype(np.float32)
    salt = (seed * 0x9E3779B1 + 1) % 2**63
    fields = [
        smooth_noise(0, rows, columns, period, salt + index)
        for index, period in enumerate(_PERIODS)
    ]
    light, slope = (
        1 + _LIGHT * (0.7 * fields[0] + 0.3 * fields[1]),
        _SLOPE * smooth_noise(0, rows, columns, _PERIODS[0], salt + 2),
    )
    along = np.linspace(-1, 1, len(spectra), dtype=np.float32)
    cube = shares @ spectra.T.astype(np.float32)
    cube *= light[..., np.newaxis] * (1 + slope[..., np.newaxis] * along)
    rng = np.random.default_rng([seed])
    cube += np.float32(_NOISE) * rng.standard_normal(cube.shape, np.float32)
    stored = np.rint(np.clip(cube, 0, 60) * URBAN_SCALE).astype(np.uint16)
    labels = np.where(shares.max(axis=2) >= PURE, shares.argmax(axis=2) + 1, 0)
    return stored, labels.astype(np.uint8)
