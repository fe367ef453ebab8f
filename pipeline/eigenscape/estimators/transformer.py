"""Nearest neighbours of samples as a sparse matrix of distances: a scikit-learn transformer."""

from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eigenscape.base.blocks import blocks
from eigenscape.base.memory import ROW_TILE, rows_within
from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, NeighborEstimator, Neighbors
from eigenscape.estimators.fitting import Fitting, parameter_names
from eigenscape.estimators.samples import Samples, read_rows, stored_blocks
from eigenscape.neighbors.search.duplicates import include_copies
from eigenscape.spectrum.trained import Trained

Lists: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]
"""Distances and numbers of the neighbours, shape (m, k) each, as scikit-learn returns them."""

_MODES = ("distance", "connectivity")
_METRICS = ("euclidean", "cosine", "angle")
_ENTRY_BYTES = 64


class NeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeighborEstimator):  # type: ignore[misc]
    """Sparse graph of nearest neighbours, out of core, in place of scikit-learn's `KNeighborsTransformer`.

    It can replace that transformer in pipelines, in ``scanpy.pp.neighbors(transformer=...)``, and
    before estimators that take a precomputed graph (spectral clustering, t-SNE). HDBSCAN takes symmetric
    graphs, ``graph.maximum(graph.T)``, and UMAP the lists, ``precomputed_knn``.

    Parameters
    ----------
    mode
        "distance": distances to `n_neighbors` others, and 0 to the sample itself, stored as the first
        entry of its row; "connectivity": 1 for the sample itself and `n_neighbors` - 1 others.
    metric
        "euclidean"; "cosine", which is 1 less the cosine of the angle; or "angle" in radians.
    features
        "none": distances of the samples as they are. "random-projection" or "pca": of `features_dimension`
        features, for samples that have more.

    Attributes
    ----------
    recall_ : float or None
        Share of the true neighbours that the fit found, measured on samples drawn at random.
    recall_interval_ : tuple of float or None
        Its 95 % confidence interval; None if the samples measured have the same recall and others are left.
    n_samples_fit_
        Number of samples that were fitted: columns of the graph.
    n_neighbors_
        Number of neighbours per sample, not counting the sample itself; smaller than `n_neighbors` if there
        are too few samples.
    run_
        The run directory.

    Notes
    -----
    `fit_transform` searches approximately, in blocks, with a recall that it measures; ``neighbors="exact"``
    compares all samples. `transform` compares each new sample with all fitted ones: its time is
    proportional to the product of both numbers.

    The graph is in memory: 12 bytes for each entry up to 2^31 entries. The samples may be a dask
    array, an `xarray.DataArray` with chunks, a zarr array, a data set of an HDF5 file, or an AnnData object,
    also one that is backed by a file.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.manifold import Isomap
    >>> from sklearn.pipeline import make_pipeline
    >>> from eigenscape import NeighborsTransformer
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> graph = NeighborsTransformer(n_neighbors=10, random_state=0).fit_transform(X)
    >>> graph.shape, graph.nnz
    ((200, 200), 2200)
    >>> isomap = Isomap(n_neighbors=9, metric="precomputed")
    >>> make_pipeline(NeighborsTransformer(n_neighbors=10), isomap).fit_transform(X).shape
    (200, 2)
    """

    def __init__(
        self,
        *,
        mode: Literal["distance", "connectivity"] = "distance",
        n_neighbors: int = 5,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Literal["euclidean", "cosine", "angle"] = "euclidean",
        features: Features = "none",
        features_dimension: int = 80,
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Search the neighbours of the samples.

        Parameters
        ----------
        X : array-like, sparse, dask, zarr or HDF5 array, shape (n, d), or AnnData
        y
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Samples or parameters cannot work: `eigenscape.errors.EstimatorError`, or
            scikit-learn's own.
        """
        X = self._check(X, reset=True)
        self._check_names()
        with parameter_names():
            fitting = self._searched(X)
            summary = fitting.through("neighbors")
        self._copies = summary["copies"]
        self.n_samples_fit_ = self._n_features_out = X.shape[0]
        self.recall_ = summary.get("recall")
        low, high = summary.get("recall_low"), summary.get("recall_high")
        self.recall_interval_ = None if low is None else (low, high)
        self._folder.trim()
        return self

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Search the neighbours of the samples and return the graph.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        csr_matrix, shape (n, n), float64
            Each sample itself first in its row, then its neighbours, nearest first.
        """
        self.fit(X, y)
        distance, index = self._fitted_lists(itself=True)
        return self._graph(distance, index)

    def transform(self, X: Any) -> csr_matrix:
        """Return the graph from samples, new or fitted, to the fitted ones.

        Parameters
        ----------
        X : array-like, sparse, dask, zarr or HDF5 array, shape (m, d), or AnnData

        Returns
        -------
        csr_matrix, shape (m, n), float64
            Nearest first within a row.
        """
        check_is_fitted(self)
        return self._graph(*self._nearest(self._check(X), self.n_neighbors_ + 1))

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Lists | NDArray[np.int64]:
        """Return the neighbours of samples among the fitted ones, as scikit-learn's `NearestNeighbors`.

        Parameters
        ----------
        X
            Samples; None for the fitted ones, each of which is then left out of its own neighbours.
        n_neighbors
            How many; as many as were fitted by default, and at most as many without `X`.
        return_distance
            Whether distances are wanted too.

        Returns
        -------
        distance : array, shape (m, n_neighbors)
            Only if they are wanted.
        index : array, shape (m, n_neighbors)

        Raises
        ------
        ValueError
            There are not as many neighbours.
        """
        check_is_fitted(self)
        count = self.n_neighbors_ if n_neighbors is None else n_neighbors
        most = self.n_neighbors_ if X is None else self.n_samples_fit_
        if not isinstance(count, int | np.integer) or not 1 <= count <= most:
            raise EstimatorError(f"n_neighbors = {count!r}: give a whole number from 1 to {most}.")
        if X is None:
            distance, index = self._fitted_lists(itself=False)
            distance, index = distance[:, :count], index[:, :count]
        else:
            distance, index = self._nearest(self._check(X), int(count))
        return (distance, index) if return_distance else index

    def _check_names(self) -> None:
        for name, value, names in (("mode", self.mode, _MODES), ("metric", self.metric, _METRICS)):
            if value not in names:
                raise EstimatorError(
                    f"{name} = {value!r}: give {', '.join(map(repr, names[:-1]))} or {names[-1]!r}."
                )

    def _searched(self, X: Samples) -> Fitting:
        # Cosine and angle have the same neighbours in the same order.
        return self._begin(X, metric="euclidean" if self.metric == "euclidean" else "angle")

    def _distances(self, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return distances by the metric from what the run holds: angles, for a cosine."""
        if self.metric != "cosine":
            return lengths
        # 1 - cos(a) = 2 sin(a / 2)^2 keeps the digits that the cosine of a small angle would lose.
        return np.asarray(2 * np.sin(lengths / 2) ** 2, np.float32)

    def _fitted_lists(self, *, itself: bool) -> Lists:
        """Return the lists of the fitted samples, with or without each sample as the first of its own."""
        trained = Trained.open(self.run_, finished="neighbors")
        first = int(itself)
        shape = (self.n_samples_fit_, self.n_neighbors_ + first)
        kind = np.int32 if self.n_samples_fit_ < 2**31 else np.int64
        distance, index = np.zeros(shape, np.float32), np.empty(shape, kind)
        for rows, block in stored_blocks(trained.run, "neighbors/distance"):
            distance[rows, first:] = self._distances(block)
        for rows, numbers in stored_blocks(trained.run, "neighbors/index"):
            index[rows, first:] = numbers
        if self._copies:
            include_copies(index[:, first:], distance[:, first:], *trained.copies)
        if itself:
            index[:, 0] = np.arange(len(index))
        return distance, index

    def _nearest(self, X: Samples, count: int) -> Lists:
        """Compare samples with all fitted ones, in blocks of rows."""
        trained = Trained.open(self.run_, finished="neighbors")
        shape = (X.shape[0], min(count, self.n_samples_fit_))
        distance, index = np.empty(shape, np.float32), np.empty(shape, np.int64)
        row_bytes = 16 * X.shape[1] + _ENTRY_BYTES * count
        step = min(8 * ROW_TILE, rows_within(self._work_bytes() // 2, row_bytes))
        with parameter_names():
            for start, stop in blocks(X.shape[0], step):
                features = trained.project(read_rows(X, start, stop, trained.origin))
                index[start:stop], lengths = trained.nearest(features, shape[1])
                distance[start:stop] = self._distances(lengths)
        return distance, index

    def _graph(self, distance: NDArray[np.float32], index: NDArray[np.int64]) -> csr_matrix:
        """Return lists, each of which begins with the sample itself if it was fitted, as a matrix."""
        if self.mode == "connectivity":
            index = np.ascontiguousarray(index[:, : max(1, index.shape[1] - 1)])
            distance = np.ones(index.shape, np.float32)
        rows, count = index.shape
        starts = np.arange(rows + 1, dtype=np.int64) * count
        # In double precision: SciPy's casts of a matrix would lose the order within rows.
        entries = distance.ravel().astype(np.float64), index.ravel(), starts
        return csr_matrix(entries, shape=(rows, self.n_samples_fit_))
