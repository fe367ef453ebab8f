"""Which labelled pixels a classifier learns from, and which it is tested on."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.scenes.types import Grid

BLOCKS_ACROSS = 12
"""Squares along the longer side of the scene in a blocked split."""

MOST_DRAWS = 100_000
"""Uniform draws after which it is given up that one has every class."""

_DRAWS = 1000


def random_split(
    classes: NDArray[np.intp], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw a share of every class, pixel by pixel.

    Parameters
    ----------
    classes : array of int, shape (labelled,)
    share
        Between 0 and 1. At least one pixel of a class is drawn, and at least one is left if the
        class has two.
    rng
        Source of the draw.

    Returns
    -------
    array of bool, shape (labelled,)
        True for training.
    """
    numbers, counts = np.unique(classes, return_counts=True)
    sizes = [min(max(1, round(share * size)), max(1, size - 1)) for size in counts.tolist()]
    return _draw_within(classes, numbers, np.array(sizes, np.int64), rng)


def draw_at_most(
    classes: NDArray[np.intp], most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the places of so many pixels, ascending: of each class its share, one at least.

    Parameters
    ----------
    classes : array of int, shape (labelled,)
    most
        About how many; all are returned where there are no more.
    rng
        Source of the draw.
    """
    if len(classes) <= most:
        return np.arange(len(classes))
    return np.flatnonzero(random_split(classes, most / len(classes), rng))


def uniform_split(
    classes: NDArray[np.intp], size: int, rng: np.random.Generator
) -> NDArray[np.bool_] | None:
    """Draw exactly `size` pixels uniformly from all, again and again until every class has one.

    The draw of Belkin 2003, 3.8. The sizes of the classes are drawn first, and pixels within the
    classes then, so that a draw that lacks a class costs next to nothing.

    Parameters
    ----------
    classes : array of int, shape (labelled,)
    size
        Pixels to draw, fewer than there are.
    rng
        Source of the draw.

    Returns
    -------
    array of bool, shape (labelled,), or None
        True for training. None where `MOST_DRAWS` draws all lacked a class.
    """
    numbers, counts = np.unique(classes, return_counts=True)
    for _ in range(MOST_DRAWS // _DRAWS):
        drawn = rng.multivariate_hypergeometric(counts, size, _DRAWS, method="marginals")
        complete = np.flatnonzero((drawn > 0).all(axis=1))
        if len(complete):
            return _draw_within(classes, numbers, drawn[complete[0]], rng)
    return None


def balanced_split(
    classes: NDArray[np.intp], each: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw the same number of pixels of every class.

    Parameters
    ----------
    classes : array of int, shape (labelled,)
    each
        At most the size of the smallest class.
    rng
        Source of the draw.

    Returns
    -------
    array of bool, shape (labelled,)
        True for training.
    """
    numbers = np.unique(classes)
    return _draw_within(classes, numbers, np.full(len(numbers), each), rng)


def _draw_within(
    classes: NDArray[np.intp],
    numbers: NDArray[np.intp],
    sizes: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    train = np.zeros(len(classes), np.bool_)
    for number, size in zip(numbers, sizes, strict=True):
        members = np.flatnonzero(classes == number)
        train[rng.choice(members, size, replace=False)] = True
    return train


def blocked_split(
    classes: NDArray[np.intp],
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    side: int,
    share: float,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw squares of the scene until they hold a share of the labelled pixels.

    Neighbouring pixels are alike, so a random split tests on near copies of what it learned from;
    whole squares keep training and test pixels apart. Each class gets a square that holds it; a
    class whose pixels all lie in squares that were drawn is not tested in that trial.

    Parameters
    ----------
    classes, row, column : array of int, shape (labelled,)
        Class and position of the labelled pixels.
    side
        Pixels along a square.
    share, rng
        See `random_split`.
    """
    names, block = np.unique(_squares(row, column, side), return_inverse=True)
    sizes = np.bincount(block, minlength=len(names))
    order = rng.permutation(len(names))
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    chosen = np.zeros(len(names), np.bool_)
    for number in np.unique(classes):
        # Its first square in the drawn order: as random as the order is.
        candidates = np.unique(block[classes == number])
        chosen[candidates[rank[candidates].argmin()]] = True
    wanted = share * len(classes)
    held = int(sizes[chosen].sum())
    for number in order:
        if held >= wanted:
            break
        if not chosen[number]:
            chosen[number] = True
            held += int(sizes[number])
    return chosen[block]


def side_of(grid: Grid) -> int:
    """Return the pixels along a square of a scene."""
    return max(1, -(-max(grid.height, grid.width) // BLOCKS_ACROSS))


def square_of(row: NDArray[np.int64], column: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """Return the square of a scene, as a number, in which each pixel lies."""
    return _squares(row, column, side_of(grid))


def _squares(row: NDArray[np.int64], column: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    return (row // side) * (int(column.max(initial=0)) // side + 1) + column // side
