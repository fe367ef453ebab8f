"""k-way spectral clustering as a scikit-learn clusterer."""

import os
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import dask.array
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.shares import nearest_fitted
from eigenscape.estimators.fitting import parameter_names
from eigenscape.estimators.precomputed import Affinity
from eigenscape.estimators.samples import Samples
from eigenscape.estimators.spectral import Spectral
from eigenscape.job.jobfile import Job
from eigenscape.job.options import Weights
from eigenscape.learn.clustering.embedding import cluster_qr, k_means, row_normalized


class SpectralClusterer(ClusterMixin, Spectral):  # type: ignore[misc]
    """Clusters in the lowest eigenvectors of the normalised Laplacian.

    Parameters
    ----------
    n_clusters
        Number of clusters, which is also the number of eigenvectors, including the constant one.
    assign_labels
        "cluster_qr": column-pivoted QR (Damle, Minden, Ying 2019), without start or iteration;
        "kmeans": k-means of rows of length 1 (Ng, Jordan, Weiss 2001), by dask-ml (the extra
        ``clusters``).
    tolerance
        Largest residual norm of an eigenpair.

    Attributes
    ----------
    labels_ : array of int, shape (n,)
        Cluster of each sample.
    eigenvalues_ : array
        Ascending, that of the constant eigenvector first; n_clusters of them, at least two.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import SpectralClusterer
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 9 * (np.arange(200) % 2)[:, None]
    >>> labels = SpectralClusterer(2, random_state=0).fit_predict(X)
    >>> labels[0] != labels[1], (labels[::2] == labels[0]).all()
    (np.True_, np.True_)
    """

    n_clusters: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        assign_labels: Literal["cluster_qr", "kmeans"] = "cluster_qr",
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
        affinity: Affinity = "nearest_neighbors",
        weights: Weights = "self-tuning",
        bandwidth: float | Literal["auto"] = "auto",
        tolerance: float = 1e-5,
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the eigenvectors and the clusters.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (n, d)
        y
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Samples or parameters cannot work.
        MissingExtraError
            "kmeans" is asked for and dask-ml is not installed.
        """
        X = self._check(X, reset=True)
        if not isinstance(self.n_clusters, Integral) or not 1 <= self.n_clusters <= X.shape[0]:
            raise EstimatorError(
                f"n_clusters = {self.n_clusters!r}: give a whole number from 1 to that of the samples, "
                f"{X.shape[0]}."
            )
        if self.assign_labels not in ("cluster_qr", "kmeans"):
            raise EstimatorError(
                f"assign_labels = {self.assign_labels!r}: give 'cluster_qr' or 'kmeans'."
            )
        with parameter_names():
            fitting = self._begin(X, n_components=max(1, self.n_clusters - 1))
            if self.affinity != "nearest_neighbors":
                # Each component has a constant eigenvector.
                constant = fitting.through("graph")["components"]
                fitting.take_modes(max(1, self.n_clusters - constant))
            self._find_modes(fitting)
            values, vectors = self._read_modes(fitting)
            count = max(2, self.n_clusters)
            self.eigenvalues_ = values[:count]
            vectors, seed = vectors[:, : self.n_clusters], fitting.job.learn.seed
            if self.assign_labels == "cluster_qr":
                self.labels_: NDArray[np.int32] = cluster_qr(vectors, seed=seed)
            else:
                self.labels_ = k_means(_normalized(vectors), self.n_clusters, seed=seed).clusters
        self._job: Job = fitting.job
        self._folder.trim()
        return self

    def predict(self, X: Any) -> Any:
        """Return the cluster of samples, new or fitted, shape (m,).

        A new sample takes the cluster of most of the three nearest fitted samples; in a tie, that of the
        nearest. A fitted sample keeps its own cluster; identical ones get that of the first.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)

        Returns
        -------
        array or dask array of int, shape (m,)

        Raises
        ------
        ValueError
            Samples cannot work, or the estimator was fitted to a graph.
        """
        check_is_fitted(self)
        X = self._check(X)
        if isinstance(X, dask.array.Array):
            found = self._map_new(X, _block_columns, 1, self._job, self.labels_)
            return found[:, 0].astype(self.labels_.dtype)
        return _block_clusters(X, self.run_, self._work_bytes(), self._job, self.labels_)


def _block_clusters(
    X: Samples, run: "os.PathLike[str]", memory: int, job: Job, labels: NDArray[np.int32]
) -> NDArray[np.int32]:
    found = np.empty(X.shape[0], labels.dtype)
    with parameter_names():
        for start, stop, voters in nearest_fitted(Path(run), job, X, memory):
            first, second, third = labels[voters].T
            found[start:stop] = np.where(second == third, second, first)
    return found


def _block_columns(X: Samples, *given: Any) -> NDArray[np.float32]:
    return _block_clusters(X, *given)[:, None].astype(np.float32)


def _normalized(vectors: Any) -> Any:
    if isinstance(vectors, dask.array.Array):
        return vectors.map_blocks(row_normalized, dtype=vectors.dtype)
    return row_normalized(vectors)
