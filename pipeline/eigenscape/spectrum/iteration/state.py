"""The progress of a solve, and its result."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.iteration.vectors import Vectors


@dataclass(frozen=True)
class Pass:
    """A pass whose filter is done, so that the vectors before it are deleted.

    Attributes
    ----------
    measured
        Whether residuals are taken at its end.
    balanced, halves
        Whether its filter set stiff rows by the others, and whether it worked in half precision.
    rotation
        Path of the rotation to Ritz vectors, once it is known; the Ritz values of the state are its own
        then, the residuals still those of the pass before.
    """

    measured: bool
    balanced: bool
    halves: bool
    rotation: str | None = None


@dataclass(frozen=True)
class State:
    """Where the iteration stands, as it is noted after every pass and within it.

    Attributes
    ----------
    files
        Path of each group of vectors: Ritz vectors, or filtered ones of a pass that was begun.
    values, residuals
        Ritz values, ascending, and residual norms of all columns; null vectors are not among them.
    goal
        Pairs that these columns aim at: all that are wanted, or as many as a block can find.
    locked
        Groups that are final.
    balanced
        Whether stiff rows still follow the others: until that converges no more.
    halves
        Whether filters still work in half precision: until that converges no more.
    gained
        Whether the last pass brought the residual down to a third at least.
    overflowed
        Whether a filter has overflowed, so that the spectrum ends beyond its estimate.
    settled
        Whether all that is aimed at had reached the tolerance before the last pass: what residuals
        are left is what the locked vectors lack, and falls no more.
    passes, products
        Filter passes, and products with a group of columns.
    most_cut
        Where a filter's damping may begin at most: known from the density of states where the
        Ritz values of vectors that began at random would say too much.
    begun
        The pass that was begun and is to be completed, None between passes.
    """

    files: tuple[str, ...]
    values: tuple[float, ...]
    residuals: tuple[float, ...]
    most_cut: float
    goal: int
    locked: int = 0
    balanced: bool = True
    halves: bool = True
    gained: bool = True
    overflowed: bool = False
    settled: bool = False
    passes: int = 0
    products: int = 0
    begun: Pass | None = None

    @classmethod
    def read(cls, file: Path) -> "State":
        """Return the state that was noted in a file."""
        noted: dict[str, Any] = json.loads(file.read_text())
        for name in ("files", "values", "residuals"):
            noted[name] = tuple(noted[name])
        if noted["begun"] is not None:
            noted["begun"] = Pass(**noted["begun"])
        return cls(**noted)


@dataclass(frozen=True)
class Solution:
    """Where a solve ended.

    Attributes
    ----------
    vectors
        On disk, one column after the other; the null vectors are not among them.
    values, residuals : array, shape (columns,)
        Ritz values, ascending, and residual norms.
    converged
        Whether the wanted pairs reached the tolerance.
    passes, products
        Filter passes, and products with a group of columns.
    """

    vectors: Vectors
    values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    converged: bool
    passes: int
    products: int
