"""Training and test sets: splits of the labelled pixels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.scenes.types import Grid

BLOCKS_ACROSS = 12
"""Squares along the longer side of the scene in a blocked split."""

MOST_DRAWS = 100_000
"""Number of uniform draws after which the search for one with every class is abandoned."""

_DRAWS = 1000


@dataclass(frozen=True)
class Strata:
    """Labelled pixels by class, sorted once for all draws.

    Attributes
    ----------
    labelled
        Number of labelled pixels.
    members
        Places of the pixels of each class among them, ascending; the classes in ascending order.
    """

    labelled: int
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, classes: NDArray[np.intp]) -> "Strata":
        """Sort pixels by class, given as an array of int of shape (labelled,).

        Examples
        --------
        >>> [members.tolist() for members in Strata.of(np.array([7, 2, 7])).members]
        [[1], [0, 2]]
        """
        order = np.argsort(classes, kind="stable")
        _, first = np.unique(classes[order], return_index=True)
        return cls(len(classes), tuple(np.split(order, first[1:])) if len(first) else ())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of pixels of each class."""
        return np.array([len(members) for members in self.members], np.int64)

    def draw(self, sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw a number of pixels of each class; return a mask of shape (labelled,)."""
        train = np.zeros(self.labelled, np.bool_)
        for members, size in zip(self.members, sizes, strict=True):
            train[rng.choice(members, size, replace=False)] = True
        return train


@dataclass(frozen=True)
class Squares:
    """Squares of the scene that hold labelled pixels, found once for all draws.

    Attributes
    ----------
    square : array of int, shape (labelled,)
        Square of each labelled pixel, 0 ... S-1.
    sizes : array of int, shape (S,)
        Labelled pixels in each square.
    of_class
        Squares that hold pixels of each class, ascending; the classes in ascending order.
    """

    square: NDArray[np.intp]
    sizes: NDArray[np.intp]
    of_class: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(
        cls, strata: Strata, row: NDArray[np.int64], column: NDArray[np.int64], side: int
    ) -> "Squares":
        """Find the squares of labelled pixels.

        Parameters
        ----------
        strata
            The pixels by class.
        row, column : array of int, shape (labelled,)
            Their positions.
        side
            Pixels along a square.
        """
        names, square = np.unique(_squares(row, column, side), return_inverse=True)
        held = tuple(np.unique(square[members]) for members in strata.members)
        return cls(square, np.bincount(square, minlength=len(names)), held)


def random_split(strata: Strata, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a share of every class, pixel by pixel.

    Parameters
    ----------
    strata
        The labelled pixels by class.
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
    sizes = [min(max(1, round(share * size)), max(1, size - 1)) for size in strata.sizes.tolist()]
    return strata.draw(np.array(sizes, np.int64), rng)


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
    return np.flatnonzero(random_split(Strata.of(classes), most / len(classes), rng))


def uniform_split(strata: Strata, size: int, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """Draw exactly `size` pixels uniformly from all, again and again until every class has one.

    The draw of Belkin 2003, 3.8. The sizes of the classes are drawn first, and pixels within the
    classes then, so that a draw that lacks a class costs next to nothing.

    Parameters
    ----------
    strata
        The labelled pixels by class.
    size
        Pixels to draw, fewer than there are.
    rng
        Source of the draw.

    Returns
    -------
    array of bool, shape (labelled,), or None
        True for training. None where `MOST_DRAWS` draws all lacked a class.
    """
    for _ in range(MOST_DRAWS // _DRAWS):
        drawn = rng.multivariate_hypergeometric(strata.sizes, size, _DRAWS, method="marginals")
        complete = np.flatnonzero((drawn > 0).all(axis=1))
        if len(complete):
            return strata.draw(drawn[complete[0]], rng)
    return None


def balanced_split(strata: Strata, each: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw the same number of pixels of every class.

    Parameters
    ----------
    strata
        The labelled pixels by class.
    each
        At most the size of the smallest class.
    rng
        Source of the draw.

    Returns
    -------
    array of bool, shape (labelled,)
        True for training.
    """
    return strata.draw(np.full(len(strata.members), each), rng)


def blocked_split(squares: Squares, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw squares of the scene until they hold a share of the labelled pixels.

    Neighbouring pixels are alike, so a random split tests on near copies of what it learned from;
    whole squares keep training and test pixels apart. Each class gets a square that holds it; a
    class whose pixels all lie in squares that were drawn is not tested in that trial.

    Parameters
    ----------
    squares
        Squares of the scene that hold labelled pixels.
    share, rng
        See `random_split`.
    """
    order = rng.permutation(len(squares.sizes))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    chosen = np.zeros(len(order), np.bool_)
    for candidates in squares.of_class:
        # Its first square in the drawn order: as random as the order is.
        chosen[candidates[rank[candidates].argmin()]] = True
    wanted = share * len(squares.square)
    held = int(squares.sizes[chosen].sum())
    for number in order:
        if held >= wanted:
            break
        if not chosen[number]:
            chosen[number] = True
            held += int(squares.sizes[number])
    return chosen[squares.square]


def side_of(grid: Grid) -> int:
    """Return the pixels along a square of a scene."""
    return max(1, -(-max(grid.height, grid.width) // BLOCKS_ACROSS))


def square_of(row: NDArray[np.int64], column: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """Return the square of a scene, as a number, in which each pixel lies."""
    return _squares(row, column, side_of(grid))


def _squares(row: NDArray[np.int64], column: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    return (row // side) * (int(column.max(initial=0)) // side + 1) + column // side
