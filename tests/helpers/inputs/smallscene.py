"""A scene of 30 x 40 pixels, or of any other small size, that most tests start from."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Small:
    """A small scene: rows x columns x bands, and the class of every pixel (0 = none)."""

    cube: np.ndarray
    labels: np.ndarray
    hole: np.ndarray
    """Where the scene has no data."""


def make_small(
    height: int = 30,
    width: int = 40,
    bands: int = 20,
    classes: int = 4,
    *,
    seed: int = 0,
    hole: bool = True,
    labelled: float = 0.5,
) -> Small:
    """Make a scene of coherent classes; the upper left corner has no data, half has no label."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:height, :width]
    wave = 2 * np.sin(column / 7) + row / height * classes
    truth = np.clip(wave.astype(int), 0, classes - 1) + 1
    # Positive and integer-valued, so that every stored type can hold them.
    spectra = rng.uniform(1000, 5000, (classes, bands))
    cube = np.round(spectra[truth - 1] + rng.normal(0, 60, (height, width, bands)))
    missing = (row + column < height // 4) & hole
    labels = np.where(rng.random(truth.shape) < labelled, truth, 0)
    labels[missing] = 0
    return Small(cube.astype(np.float32), labels.astype(np.uint8), missing)
