"""Costs of a partition into any number of clusters: cut, volume and Ncut of each, and in all."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from eigenscape.spectrum.kernels.operator import RowBlock

F8 = NDArray[np.float64]


@dataclass(frozen=True)
class ClusterCuts:
    """The price of a partition.

    Attributes
    ----------
    cut : array, shape (clusters,)
        Weight of the edges between each cluster and the others.
    volume : array, shape (clusters,)
        Sum of the degrees in each.
    """

    cut: F8
    volume: F8

    @property
    def ncut(self) -> F8:
        """Share of the volume of each cluster that is cut; in all, the Ncut of the partition."""
        return _ratio(self.cut, self.volume)

    @property
    def conductance(self) -> F8:
        """The Cheeger ratio of each: cut / the smaller of its volume and that of the others."""
        return _ratio(self.cut, np.minimum(self.volume, self.volume.sum() - self.volume))


def block_cuts(
    block: RowBlock, clusters: NDArray[np.integer], count: int
) -> tuple[ClusterCuts, NDArray[np.float32]]:
    """Return cuts and volumes of the edges of some rows, and how surely each row is where it is.

    Parameters
    ----------
    block
        Rows of W; cuts and volumes of blocks add up.
    clusters : array of int, shape (n,)
        Cluster of every row of the graph, 0 ... count-1.
    count
        Number of clusters.

    Returns
    -------
    cuts
        Cut and volume of each cluster.
    lead : array, shape (rows of the block,)
        1 - the weight to the cluster that a row is most joined to beside its own / the weight to its
        own; 0 where another has more, 1 for rows without edges.
    """
    cut, volume = np.zeros(count), np.zeros(count)
    lead = np.ones(len(block.indptr) - 1, np.float32)
    _add_cuts(
        block.first, block.indptr, block.indices, block.data, clusters, cut, volume, lead
    )  # fmt: skip
    return ClusterCuts(cut, volume), lead


def ncut_bound(values: F8, clusters: int) -> float:
    """Return a lower bound of the normalised cut of any partition: the sum of as many eigenvalues.

    Parameters
    ----------
    values : array, shape (modes,)
        Lowest eigenvalues of the normalised Laplacian, ascending, the null ones included.
    clusters
        Number of clusters, at most as many as there are values.

    Notes
    -----
    The vectors D^1/2 1_C / vol(C)^1/2 of the clusters are orthonormal and their Rayleigh quotients
    are cut(C) / vol(C), so that the sum is at least the trace minimum (Ky Fan).
    """
    return float(np.sum(values[:clusters]))


def _ratio(cut: F8, volume: F8) -> F8:
    return np.divide(cut, volume, out=np.zeros_like(cut), where=(cut > 0) & (volume > 0))


@njit(cache=True, nogil=True)
def _add_cuts(first, indptr, indices, weights, clusters, cut, volume, lead):  # type: ignore[no-untyped-def]
    """Add the cut and the volume of every row to those of its cluster; fill in the leads."""
    toward = np.zeros(cut.shape[0])
    for row in range(indptr.shape[0] - 1):
        own = clusters[first + row]
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            toward[clusters[indices[entry]]] += weights[entry]
            total += weights[entry]
        best = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            other = clusters[indices[entry]]
            if other != own:
                best = max(best, toward[other])
        inside = toward[own]
        if best > 0:
            lead[row] = max(0.0, 1 - best / inside) if inside > 0 else 0.0
        volume[own] += total
        cut[own] += total - inside
        for entry in range(indptr[row], indptr[row + 1]):
            toward[clusters[indices[entry]]] = 0.0
        toward[own] = 0.0
