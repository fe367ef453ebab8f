"""What the columns of a group know: values of few rows, other rows for every column."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.gather import WIDTH

F8 = NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """What every column knows.

    Attributes
    ----------
    rows : array of int, shape (l,)
        Rows that at least one column knows, each once, ascending.
    values : array, shape (l, WIDTH), float64
        Targets; NaN where a column does not know the row. A column of NaN stays 0 throughout.

    Raises
    ------
    ValueError
        The shapes do not fit, or the rows are not ascending.
    """

    rows: NDArray[np.int64]
    values: F8

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
        """Which rows each column knows, shape (l, WIDTH)."""
        return ~np.isnan(self.values)

    def centred(self, weights: F8) -> tuple[F8, F8]:
        """Return what a multiple of some weights cannot explain of the values, and that multiple.

        Parameters
        ----------
        weights : array, shape (l,)
            Ones, for the mean of what each column knows.

        Returns
        -------
        rest : array, shape (l, WIDTH)
            0 where a row is not known.
        share : array, shape (WIDTH,)
        """
        column = weights[:, None] * self.known
        products = (column * np.where(self.known, self.values, 0)).sum(axis=0)
        share = np.divide(
            products, (column**2).sum(axis=0), out=np.zeros(WIDTH), where=products != 0
        )
        return np.where(self.known, self.values - column * share, 0.0), share
