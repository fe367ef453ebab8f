"""Rows of a table that were drawn at random."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Subset:
    """Which rows of a table are drawn; small, and the same wherever it is unpickled.

    Attributes
    ----------
    total, count
        Rows of the table, and how many of them.
    seed
        Of the draw.
    """

    total: int
    count: int
    seed: int

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of the rows drawn, ascending."""
        return _draw(self.total, self.count, self.seed)


@lru_cache(maxsize=4)
def _draw(total: int, count: int, seed: int) -> NDArray[np.int64]:
    rows = np.random.default_rng([seed]).choice(total, count, replace=False, shuffle=False)
    return np.sort(rows)
