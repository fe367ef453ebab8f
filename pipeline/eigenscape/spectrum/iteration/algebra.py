"""Dense algebra over vectors on disk, by row ranges and tiles: Gram matrices, projections, rotations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.base.memory import ROW_TILE
from eigenscape.spectrum.iteration.kernels.columns import PANEL_BYTES, gram_block, gram_rows
from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels.gather import WIDTH

GramItem = tuple[int, int, int, int]
"""First and last row, column block of X and of Y."""

_SUM_ROWS = ROW_TILE


@dataclass(frozen=True)
class Gram:
    """X^T Y over some rows, for a pair of column blocks and every Y: Gram matrices or overlaps.

    Attributes
    ----------
    left, rights
        X, and every Y.
    dtype
        In which the rows of a slice are multiplied; their sums are added in double.
    """

    left: Vectors
    rights: tuple[Vectors, ...]
    dtype: str = "float64"

    def __call__(self, item: GramItem) -> list[NDArray[np.float64]]:
        """Return the sums of one task: one matrix for every Y."""
        first, last, i, j = item
        left, rights = self._block(self.left, i), [self._block(right, j) for right in self.rights]
        sums = [np.zeros((left.columns, right.columns)) for right in rights]
        for begin, end in blocks(last - first, _SUM_ROWS):
            rows = slice(first + begin, first + end)
            own = left.read(rows, self.dtype)
            for total, right in zip(sums, rights, strict=True):
                total += own.T @ (own if right == left else right.read(rows, self.dtype))
        return sums

    @property
    def symmetric(self) -> bool:
        """Whether all matrices are: X^T X and X^T A X."""
        return self.left == self.rights[0]

    @property
    def block(self) -> int:
        """Number of columns of a block."""
        most = max(self.left.columns, self.rights[0].columns)
        return gram_block(most, np.dtype(self.dtype))

    @property
    def ranges(self) -> list[Block]:
        """The row ranges of the tasks."""
        least = min(self.left.columns, self.rights[0].columns)
        return gram_rows(self.left.rows, least, self.block)

    def items(self, ranges: list[Block]) -> list[GramItem]:
        """Return all tasks; of symmetric matrices the upper half."""
        along, across = (-(-each.columns // self.block) for each in (self.left, self.rights[0]))
        pairs = [(i, j) for j in range(across) for i in range(j + 1 if self.symmetric else along)]
        return [(*block, i, j) for block in ranges for i, j in pairs]

    def assemble(
        self, items: list[GramItem], parts: list[list[NDArray[np.float64]]]
    ) -> list[NDArray[np.float64]]:
        """Return X^T Y for every Y from the results of the tasks, in their order."""
        block = self.block
        whole = [np.zeros((self.left.columns, right.columns)) for right in self.rights]
        for (_, _, i, j), part in zip(items, parts, strict=True):
            for matrix, values in zip(whole, part, strict=True):
                matrix[i * block : (i + 1) * block, j * block : (j + 1) * block] += values
        for matrix in whole if self.symmetric else []:
            for j in range(0, len(matrix), block):
                matrix[j + block :, j : j + block] = matrix[j : j + block, j + block :].T
        return whole

    def _block(self, vectors: Vectors, number: int) -> Vectors:
        width = self.block // WIDTH
        return vectors[number * width : (number + 1) * width]


@dataclass(frozen=True)
class Project:
    """Y - V (V^T Y) for a range of rows, tile by tile, in the type of the vectors.

    Attributes
    ----------
    locked, vectors, following
        V, Y and where the result goes.
    overlap
        Path of V^T Y.
    """

    locked: Vectors
    vectors: Vectors
    following: Vectors
    overlap: str

    def __call__(self, block: Block) -> None:
        """Project the rows of one task."""
        dtype = self.vectors.dtype
        overlap = np.load(self.overlap, mmap_mode="r")
        for begin, end in blocks(block[1] - block[0], _SUM_ROWS):
            rows = slice(block[0] + begin, block[0] + end)
            Y = self.vectors.read(rows, dtype)
            product = np.empty_like(Y)
            # A narrower panel would read and write the product more often.
            panel = PANEL_BYTES // Y.itemsize // WIDTH
            for first in range(0, self.locked.groups, panel):
                V = self.locked[first : first + panel].read(rows, dtype)
                np.matmul(V, overlap[first * WIDTH :][: V.shape[1]], out=product)
                Y -= product
            self.following.write(rows, Y)


@dataclass(frozen=True)
class Rotate:
    """X <- Y C for a range of rows, tile by tile."""

    vectors: Vectors
    following: Vectors
    rotation: str
    rank: int
    number: int
    tile: int

    def __call__(self, block: Block) -> None:
        """Rotate the rows of one task."""
        C = np.load(self.rotation, mmap_mode="r")
        for begin, end in blocks(block[1] - block[0], self.tile):
            rows = slice(block[0] + begin, block[0] + end)
            X = self.vectors.read(rows) @ C
            if self.rank < X.shape[1]:
                # Lost directions are replaced by random ones, drawn by tile.
                rng = np.random.default_rng([6, self.number, rows.start])
                X[:, self.rank :] = rng.standard_normal((len(X), X.shape[1] - self.rank))
            self.following.write(rows, X)
