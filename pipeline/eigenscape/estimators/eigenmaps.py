"""Laplacian eigenmaps as a scikit-learn transformer."""

from typing import Any, Self

import dask.array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eigenscape.estimators.fitting import Fitting, parameter_names
from eigenscape.estimators.samples import Samples
from eigenscape.estimators.spectral import SpectralEstimator, extend_block


class Eigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralEstimator):  # type: ignore[misc]
    """Eigenvectors of the graph of nearest neighbours as coordinates."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the eigenvectors.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (n, d)
        y
            Not used by Laplacian eigenmaps; see `SchroedingerEigenmaps`.

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
        with parameter_names():
            fitting = self._steered(X, y)
            nulls = self._find_modes(fitting)
        values, vectors = self._read_modes(fitting)
        self._first = nulls
        self.eigenvalues_, self.embedding_ = values[nulls:], vectors[:, nulls:]
        self._n_features_out = self.n_components
        self._folder.trim()
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Compute the eigenvectors and return them.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        array or dask array, shape (n, n_components), float32
            ``embedding_``.
        """
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> Any:
        """Return the coordinates of samples, new or fitted, by the Nystrom extension.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)

        Returns
        -------
        array or dask array, shape (m, n_components), float32
            See `eigenscape.extend`.

        Raises
        ------
        ValueError
            An eigenvalue is above 0.95, and a sample was not fitted.
        """
        check_is_fitted(self)
        X = self._check(X)
        if isinstance(X, dask.array.Array):
            return self._map_new(X, extend_block, self.n_components, self._first)
        return extend_block(X, self.run_, self._work_bytes(), self._first)

    def _steered(self, X: Samples, y: Any) -> Fitting:
        """Begin a fit with what the labels add to its job."""
        raise NotImplementedError


class LaplacianEigenmaps(Eigenmaps):
    """Lowest eigenvectors of the graph of nearest neighbours, as coordinates (Belkin, Niyogi 2003).

    Out of core: samples, neighbour lists, graph and eigenvectors lie in a run directory, and a dask
    array is computed a few chunks at a time. The constant eigenvector is left out.

    Attributes
    ----------
    embedding_ : array or dask array, shape (n, n_components), float32
        Coordinates of the samples; a dask array, read from the run directory, if one was given.
    eigenvalues_ : array, shape (n_components,)
        Ascending.
    n_neighbors_
        Neighbours that were taken: fewer than wanted of few samples.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    run_
        The run directory.

    Notes
    -----
    `transform` is the Nystrom extension, `eigenscape.extend`. A fitted sample keeps its coordinates;
    identical ones, whose places in the graph differ, all get those of the first. A new sample gets the
    weighted mean of its neighbours' coordinates, divided by 1 - eigenvalue, for eigenvalues up to 0.95. A
    dask array is transformed lazily; temporary files of the estimator are kept as long as such an array
    exists.

    Features are held in single precision. Connected components of the graph are joined by bridges.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import LaplacianEigenmaps
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> LaplacianEigenmaps(n_components=3, random_state=0).fit_transform(X).shape
    (200, 3)
    """

    def _steered(self, X: Samples, y: Any) -> Fitting:
        return self._begin(X)
