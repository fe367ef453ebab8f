"""Covariance of the noise of a scene: of what neighbouring pixels differ by."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block
from eigenscape.context import Context
from eigenscape.errors import SceneError
from eigenscape.features.kernels import difference_scatter
from eigenscape.features.pieces import MOMENT_ROWS, partial_blocks
from eigenscape.scenes.types import Grid
from eigenscape.store.arrays import open_array
from eigenscape.store.rows import Rows


def noise_covariance(context: Context, source: Rows) -> NDArray[np.float64]:
    """Return the covariance of the noise: half that of what neighbouring pixels differ by.

    Raises
    ------
    SceneError
        The samples are no pixels of a scene, or none has a neighbour to the left or above.
    """
    ingest = context.run.record("ingest")
    assert ingest is not None, "features follow ingest"
    pixels, grid = context.path("samples/pixel"), Grid.from_json(ingest.summary["grid"])
    rows, bands = source.shape
    parts = []
    if not grid.is_table:
        work = partial(_block_noise, source, pixels, grid.width)
        ranges = partial_blocks(rows, bands)
        parts = context.map("noise", work, ranges, label="noise covariances", keep=False)
    count = sum(part[0] for part in parts)
    if count == 0:
        raise SceneError(
            'features.method = "mnf" measures noise by what neighbouring pixels differ by, and none '
            f'of the {rows} samples has a neighbour. Set features.method to "pca" or "none".'
        )
    scatter = np.zeros((bands, bands))
    for part in parts:
        scatter += part[1]
    scatter /= 2 * count
    return scatter


def _block_noise(
    source: Rows, pixels: str, width: int, block: Block
) -> tuple[int, NDArray[np.float64]]:
    """Return the number of neighbours to the left of a block's pixels and above, and their scatter."""
    count, scatter = 0, np.zeros((source.shape[1],) * 2)
    for start in range(*block, MOMENT_ROWS):
        stop = min(start + MOMENT_ROWS, block[1])
        # The pixel above lies at most a row of samples before.
        first = max(0, start - width)
        pixel = np.asarray(open_array(pixels)[first:stop])
        one, two = adjacent_pairs(pixel, start - first, width)
        samples = source.read(first, stop)
        assert isinstance(samples, np.ndarray), "pixels are dense"
        count += len(one)
        scatter += difference_scatter(samples, one, two)
    return count, scatter


def adjacent_pairs(
    pixels: NDArray[np.int64], first: int, width: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs of samples one of which lies to the left of the other one, or above.

    Parameters
    ----------
    pixels : array of int, shape (samples,)
        Flat pixel of each, ascending.
    first
        The first sample whose neighbours are wanted; those before are there to be found.
    width
        Columns of the scene.
    """
    own = np.arange(first, len(pixels))
    ones, twos = [], []
    for step in (1, width):
        before = np.searchsorted(pixels, pixels[own] - step)
        there = pixels[before] == pixels[own] - step
        if step == 1:
            there &= pixels[own] % width > 0
        ones.append(own[there])
        twos.append(before[there])
    return np.concatenate(ones), np.concatenate(twos)
