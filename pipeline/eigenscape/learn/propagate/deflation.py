"""Stored eigenpairs as a start for systems with the Laplacian: the slow part is solved already."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eigenscape.base.blocks import Block, blocks
from eigenscape.context import Context
from eigenscape.learn.propagate.kernels.conjugate import F8
from eigenscape.spectrum.kernels.forms import FORMS
from eigenscape.spectrum.kernels.operator import Array
from eigenscape.store.arrays import open_array, open_memmap

_LEAST = 1e-12
"""Eigenvalue, of at most a few, below which a pair is left out: it may be stored as 0."""


@dataclass(frozen=True)
class LowestPairs:
    """The lowest eigenpairs of a run's Laplacian.

    Conjugate gradients need the more products the smaller the smallest eigenvalue is whose vector
    the error still contains. On a scene of 640,976 pixels a start without the 55 lowest ones took
    56 products where a start from 0 took 356.

    Attributes
    ----------
    path
        Of ``spectrum/vector``.
    first
        Column of the first vector that is no null vector.
    values : array, shape (modes,)
        Its eigenvalue and all larger ones.
    rows
        Path of the row of each sample, -1 for none.
    degree
        Path of the row sums; None where the vectors are those of the pencil L v = lambda D v, or of L.
    """

    path: str
    first: int
    values: F8
    rows: str
    degree: str | None

    def solve(self, rows: NDArray[np.int64], source: Array, X: Array) -> None:
        """X <- V diag(1 / values) V^T B: the part of L^+ B that the pairs span.

        Of the normalised Laplacian it is D^-1/2 V ... V^T D^-1/2 B: with the diagonal of L as a
        preconditioner that leaves conjugate gradients an error without these vectors.

        Parameters
        ----------
        rows : array of int, shape (l,)
            Ascending: where B is not 0.
        source : array, shape (l, width)
            B there.
        X : array, shape (n, width)
            Rows as in the graph.
        """
        products = np.zeros((len(self.values), source.shape[1]))
        for block in self._blocks():
            at = self._rows(block)
            known = np.flatnonzero(np.isin(at, rows))
            if len(known):
                own = source[np.searchsorted(rows, at[known])].astype(np.float64)
                products += self._vectors(block, at)[known].T @ own
        # A value that is lost in rounding, of a graph that all but falls apart, says nothing here.
        told = self.values > _LEAST
        products = np.divide(
            products, self.values[:, None], out=np.zeros_like(products), where=told[:, None]
        )
        for block in self._blocks():
            at = self._rows(block)
            inside = at >= 0
            X[at[inside]] = self._vectors(block, at)[inside] @ products

    def _blocks(self) -> list[Block]:
        stored = open_array(self.path)
        return blocks(stored.shape[0], stored.chunks[0])

    def _rows(self, block: Block) -> NDArray[np.int64]:
        return np.asarray(np.load(self.rows, mmap_mode="r")[slice(*block)])

    def _vectors(self, block: Block, at: NDArray[np.int64]) -> Array:
        vectors = np.asarray(open_array(self.path)[slice(*block), self.first :])
        if self.degree is not None:
            # Samples without a row have no entries either.
            vectors = vectors / np.sqrt(open_memmap(self.degree)[at])[:, None].astype(np.float32)
        return vectors


def lowest_pairs(context: Context, rows: Path) -> LowestPairs | None:
    """Return the pairs of a run, None where there are none of this graph's own Laplacian.

    Parameters
    ----------
    context
        Of a stage after the spectrum.
    rows
        Path of the row of each sample.
    """
    spectrum = context.run.record("spectrum")
    # Estimators that need no eigenvectors compute none.
    if spectrum is None or "potential" in spectrum.summary:
        return None
    nulls = spectrum.summary["null_vectors"]
    constant = FORMS[context.job.graph.laplacian].constant
    return LowestPairs(
        context.path("spectrum/vector"), nulls, context.memmap("spectrum/value")[nulls:],
        str(rows), None if constant else context.path("graph/degree"),
    )  # fmt: skip
