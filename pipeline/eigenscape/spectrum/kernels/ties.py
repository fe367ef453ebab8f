"""Clusters of samples that are drawn to their mean: the identification potential of an operator.

Of a cluster c of m samples it measures how far a vector scatters there::

    f^T V f  =  2 sum_c sum_(i in c) (f_i - mean_c)^2  =  (2 / m) sum_(pairs i < j in c) (f_i - f_j)^2

so V is positive semi-definite, and what is constant on every cluster is its null space. For two
samples it is [[1, -1], [-1, 1]] (Czaja, Ehler 2013; Halevy 2011, figure 3.3). Larger clusters need
no order of their members, as a chain of pairs does, and no hub, as a star does; the trace,
2 (m - 1), is that of the chain. A product takes a few operations for each member.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from eigenscape.base.files.mapped import save_array
from eigenscape.spectrum.kernels import products as kernels

_PARTS = ("member", "starts", "pull")


@dataclass(frozen=True)
class Ties:
    """The matrix ``diag(u^2) - u u^T / m`` on every cluster, 0 elsewhere.

    Attributes
    ----------
    member : array of int, shape (members,)
        Rows of the clusters, one cluster after the other; no row twice.
    starts : array of int, shape (clusters + 1,)
        Where each cluster begins in `member`.
    pull : array, shape (members,)
        u > 0, the square root of the strength: 1 / u is the null vector.
    """

    member: NDArray[np.int64]
    starts: NDArray[np.int64]
    pull: NDArray[np.float64]

    @property
    def least(self) -> float:
        """Lower bound of the eigenvalues that are not 0."""
        return float(self.pull.min()) ** 2

    @property
    def most(self) -> float:
        """Upper bound of the eigenvalues."""
        return float(self.pull.max()) ** 2

    @property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each member."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def add(self, X: NDArray[Any], Z: NDArray[Any], factor: float) -> None:
        """Z <- Z + factor V X in place, X and Z of shape (n, columns)."""
        kernels.add_ties(self.member, self.starts, self.pull, X, Z, factor)

    def matrix(self, rows: int) -> scipy.sparse.csr_array:
        """Return V as a SciPy matrix of order `rows`: m^2 entries for each cluster."""
        columns = self.cluster
        lengths = np.diff(self.starts)[columns]
        shape = (rows, len(self.starts) - 1)
        U = scipy.sparse.csr_array((self.pull / np.sqrt(lengths), (self.member, columns)), shape)
        diagonal = np.zeros(rows)
        diagonal[self.member] = self.pull**2
        return scipy.sparse.csr_array(scipy.sparse.diags_array(diagonal) - U @ U.T)

    def save(self, stem: str) -> None:
        """Write them, for `load`."""
        for name in _PARTS:
            save_array(f"{stem}-{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, stem: str) -> "Ties":
        """Map the arrays that `save` wrote."""
        return cls(*(np.load(Path(f"{stem}-{name}.npy"), mmap_mode="r") for name in _PARTS))


def join_components(component: NDArray[np.int32], ties: Ties) -> NDArray[np.int32]:
    """Return the component of each row where clusters join what the graph does not.

    Parameters
    ----------
    component : array of int, shape (n,)
        By the graph alone.
    ties
        The clusters.
    """
    count, clusters = int(component.max()) + 1, len(ties.starts) - 1
    ends = (component[ties.member], count + ties.cluster)
    shape = (count + clusters, count + clusters)
    joins = scipy.sparse.coo_array((np.ones(len(ties.member)), ends), shape)
    _, label = connected_components(joins, directed=False)
    # Clusters are vertices of that graph too, but never alone: the components keep all its labels.
    joined: NDArray[np.int32] = label[:count].astype(np.int32)[component]
    return joined
