"""Eigenvectors as clusterings read them, and what they leave for each block of rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.files.mapped import attach_memmap


@dataclass(frozen=True)
class Coordinates:
    """Eigenvectors in the order of the graph's rows, mapped from scratch.

    Attributes
    ----------
    folder
        Where everything of this stage lies.
    shape
        Rows and columns.
    """

    folder: Path
    shape: tuple[int, int]

    def open(self, mode: str = "r") -> NDArray[np.float32]:
        """Map them."""
        return attach_memmap(self.folder / "coordinates", self.shape, np.float32, mode)


def join_blocks(folder: Path, name: str, numbers: list[int]) -> NDArray[Any]:
    """Return what lies in the files ``NAME-NUMBER.npy`` of a folder, one after the other."""
    return np.concatenate([np.load(folder / f"{name}-{number}.npy") for number in numbers])
