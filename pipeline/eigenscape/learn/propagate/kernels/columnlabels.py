"""The labels of a group of columns: values of few rows, other rows for every column."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Array

F8 = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnLabels:
    """The labelled rows of every column.

    Attributes
    ----------
    rows : array of int, shape (l,)
        Rows that are labelled in at least one column, each once, ascending.
    values : array, shape (l, WIDTH)
        Targets, of any floating type; NaN where a row has no label in a column. A column of NaN
        stays 0 throughout.
    number : array, shape (l, WIDTH), optional
        How many labels each value is the mean of; one by default.

    Raises
    ------
    ValueError
        The shapes do not fit, or the rows are not ascending.
    """

    rows: NDArray[np.int64]
    values: Array
    number: Array | None = None

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), WIDTH):
            raise ValueError(
                f"{len(self.rows)} rows need values of shape ({len(self.rows)}, {WIDTH}), "
                f"not {self.values.shape}: pad a group with columns of NaN"
            )
        if (np.diff(self.rows) <= 0).any():
            raise ValueError("labelled rows have to ascend, each once: sort them and their values")

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each row is labelled in each column, shape (l, WIDTH)."""
        return ~np.isnan(self.values)

    def pieces(self) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield ranges of the labelled rows, and whether these are labelled in each column.

        Every row can be a labelled one: what is worked out of all of them at once takes as much memory
        as the columns themselves, several times.
        """
        for first in range(0, len(self.rows), ROW_TILE):
            piece = slice(first, min(first + ROW_TILE, len(self.rows)))
            yield piece, ~np.isnan(self.values[piece])

    def numbers(self, piece: slice, known: NDArray[np.bool_]) -> NDArray[Any]:
        """Return how many labels each value of a piece is the mean of, 0 where there is none."""
        return known if self.number is None else np.where(known, self.number[piece], 0)

    def counts(self) -> F8:
        """Return the number of labels of each column, shape (WIDTH,)."""
        counts = np.zeros(WIDTH)
        for piece, known in self.pieces():
            counts += self.numbers(piece, known).sum(axis=0, dtype=np.float64)
        return counts

    def share(self, weights: F8) -> F8:
        """Return which multiple of some weights is closest to the values, shape (WIDTH,).

        Parameters
        ----------
        weights : array, shape (l,)
            Ones, for the mean of the labels of each column.
        """
        products, squares = np.zeros(WIDTH), np.zeros(WIDTH)
        for piece, known in self.pieces():
            column = weights[piece, None] * self.numbers(piece, known)
            products += (column * np.where(known, self.values[piece], 0)).sum(axis=0)
            squares += (column * weights[piece, None]).sum(axis=0)
        return np.divide(products, squares, out=np.zeros(WIDTH), where=products != 0)

    def take_off(self, weights: F8, share: F8, rest: Array) -> None:
        """Set `rest`, shape (l, WIDTH), to the labels less a multiple of the weights; 0 without a label."""
        for piece, known in self.pieces():
            left = self.values[piece] - weights[piece, None] * share
            rest[piece] = np.where(known, left, 0)
