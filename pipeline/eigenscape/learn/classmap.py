"""The arrays ``labels/*`` of a run: class, confidence and entropy of every sample, written here alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, sample_blocks
from eigenscape.store.arrays import chunk_rows, write_rows
from eigenscape.store.workspace import Workspace

DTYPES = {"class": "uint16", "confidence": "float32", "entropy": "float32"}
"""Type of each array, in the order in which they are written."""


@dataclass(frozen=True)
class ClassMap:
    """The arrays of a map, by their paths: small, so that every task can carry it.

    Attributes
    ----------
    samples
        Number of samples.
    paths
        Of the arrays; clusters have no entropy.
    """

    samples: int
    paths: tuple[str, ...]

    @classmethod
    def create(cls, workspace: Workspace, samples: int, *, entropy: bool = True) -> "ClassMap":
        """Create the arrays, unless an earlier attempt did.

        Parameters
        ----------
        workspace
            Of the stage that writes them.
        samples
            Number of samples.
        entropy
            Whether there are class probabilities, and so an entropy.
        """
        paths = [
            workspace.create_array(f"labels/{name}", (samples,), dtype, dims=("sample",))
            for name, dtype in DTYPES.items()
            if entropy or name != "entropy"
        ]
        return cls(samples, tuple(paths))

    @property
    def classes(self) -> str:
        """Path of ``labels/class``."""
        return self.paths[list(DTYPES).index("class")]

    def blocks(self, budget: int, bytes_per_sample: float) -> list[Block]:
        """Return blocks of whole chunks, each within a budget of bytes."""
        return sample_blocks(self.samples, chunk_rows(self.samples, 4), budget, bytes_per_sample)

    def write(self, first: int, *values: NDArray[Any]) -> None:
        """Write the class numbers, confidences and, with entropy, entropies of a block.

        Parameters
        ----------
        first
            Its first sample.
        values : arrays, shape (block,)
            In the order of `DTYPES`.
        """
        for path, value in zip(self.paths, values, strict=True):
            write_rows(path, first, value)


def class_numbers(places: NDArray[np.integer], numbers: Sequence[int]) -> NDArray[np.uint16]:
    """Return the numbers of classes that are given by their places, 0 for a place below 0.

    Examples
    --------
    >>> class_numbers(np.array([1, -1, 0]), [3, 7])
    array([7, 0, 3], dtype=uint16)
    """
    # A place of -1 is that of the last.
    table: NDArray[np.uint16] = np.array([*numbers, 0], np.uint16)
    return np.asarray(table[np.maximum(places, -1)])
