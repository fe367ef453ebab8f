"""Filters of whole images, slow and obvious: loops over pixels, SciPy's dilations until nothing changes."""

import numpy as np
from scipy import ndimage

EIGHT = np.ones((3, 3), bool)


def squares(valid, radius, chosen=None):
    """Yield each valid or chosen pixel, and the valid ones of the square around as rows and columns."""
    for row, column in np.argwhere(valid if chosen is None else chosen):
        rows = slice(max(0, row - radius), row + radius + 1)
        columns = slice(max(0, column - radius), column + radius + 1)
        near = np.add(np.argwhere(valid[rows, columns]), [rows.start, columns.start])
        yield (row, column), tuple(near.T)


def bilateral_image(cube, valid, radius, space, alike, chosen=None):
    """Return the joint bilateral filter of an image (rows, columns, features), NaN where not valid.

    With chosen pixels, these alone are filtered.
    """
    cube = cube.astype(np.float64)
    filtered = np.full(cube.shape, np.nan)
    for (row, column), near in squares(valid, radius, chosen):
        away = (near[0] - row) ** 2 + (near[1] - column) ** 2
        unlike = ((cube[near] - cube[row, column]) ** 2).sum(axis=1)
        weights = np.exp(-away / (2 * space**2) - unlike / (2 * alike**2))
        filtered[row, column] = weights @ cube[near] / weights.sum()
    return filtered


def guided_image(cube, valid, radius, guides, epsilon, chosen=None):
    """Return the guided filter of an image by its first channels, NaN where not valid or chosen."""
    cube = cube.astype(np.float64)
    guide = cube[..., :guides]
    slopes = np.full((*valid.shape, guides, cube.shape[-1]), np.nan)
    offsets = np.full(cube.shape, np.nan)
    around = None
    if chosen is not None:
        around = valid & ndimage.binary_dilation(chosen, np.ones((2 * radius + 1,) * 2, bool))
    for place, near in squares(valid, radius, around):
        centred = guide[near] - guide[near].mean(axis=0)
        against = cube[near] - cube[near].mean(axis=0)
        count = len(near[0])
        slope = np.linalg.solve(
            centred.T @ centred / count + epsilon * np.eye(guides), centred.T @ against / count
        )
        slopes[place] = slope
        offsets[place] = cube[near].mean(axis=0) - guide[near].mean(axis=0) @ slope
    filtered = np.full(cube.shape, np.nan)
    for place, near in squares(valid, radius, chosen):
        filtered[place] = guide[place] @ slopes[near].mean(axis=0) + offsets[near].mean(axis=0)
    return filtered


def filter_image(options, cube, valid, unit, chosen):
    """Return a bilateral or guided filter of the chosen pixels of an image, as a job asks for it."""
    if options.method == "guided":
        guides = min(options.components, cube.shape[2])
        epsilon = options.epsilon * unit**2
        return guided_image(cube, valid, options.radii[0], guides, epsilon, chosen)
    parts = [
        bilateral_image(cube, valid, radius, near, alike * unit, chosen)
        for radius, near, alike in options.scales
    ]
    return np.concatenate(parts, axis=-1)


def disk(radius):
    """Return which pixels have their centres within a radius."""
    step = np.arange(-radius, radius + 1)
    return step**2 + step[:, None] ** 2 <= radius**2


def opened_image(image, valid, radius):
    """Return the opening by reconstruction of one feature, NaN where not valid."""
    below = np.where(valid, image, -np.inf)
    marker = ndimage.grey_erosion(
        np.where(valid, image, np.inf), footprint=disk(radius), mode="constant", cval=np.inf
    )
    marker = np.minimum(marker, below)
    while True:
        larger = ndimage.grey_dilation(marker, footprint=EIGHT, mode="constant", cval=-np.inf)
        larger = np.minimum(larger, below)
        if (larger == marker).all():
            return np.where(valid, marker, np.nan)
        marker = larger


def profile_images(cube, valid, radii, components):
    """Return openings, then closings, of the leading features, each for all radii."""
    parts = []
    for component in range(components):
        image = cube[..., component]
        parts += [opened_image(image, valid, radius) for radius in radii]
        parts += [-opened_image(-image, valid, radius) for radius in radii]
    return np.stack(parts, axis=-1)
