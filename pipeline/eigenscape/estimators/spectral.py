"""Estimators that take the lowest eigenvectors of the graph, and extend them to new samples."""

import os
import warnings
from pathlib import Path
from typing import Any, Literal

import dask.array
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, GraphEstimator, Metric, Neighbors
from eigenscape.estimators.fitting import Fitting, parameter_names
from eigenscape.estimators.folders import read_lazily
from eigenscape.estimators.precomputed import Affinity
from eigenscape.estimators.samples import Samples, check_finite, refuse_masked
from eigenscape.job.options import Laplacian, Weights
from eigenscape.spectrum.extension import extend
from eigenscape.store.arrays import open_array


class Spectral(GraphEstimator):
    """A `GraphEstimator` with methods that compute and read eigenvectors, for transformers and clusterers."""

    def _find_modes(self, fitting: Fitting) -> int:
        """Compute the eigenvectors; return the number of constant ones, which come first."""
        asked, samples = fitting.job.spectrum.dimension, fitting.X.shape[0]
        if asked >= samples:
            raise EstimatorError(
                f"n_components = {asked}: {samples} samples have at most {samples - 1} eigenvectors "
                f"beside the constant one. Give at least {asked + 1} samples or a smaller number."
            )
        return self._noticed(fitting.through("spectrum"))

    def _noticed(self, summary: dict[str, Any]) -> int:
        """Warn of eigenpairs above the tolerance; return the number of constant vectors."""
        if not summary["converged"]:
            warnings.warn(
                f"residuals of the eigenvectors are up to {summary['max_residual']:.1e}. Give a "
                "larger tolerance or a smaller n_components.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return int(summary["null_vectors"])

    def _read_modes(self, fitting: Fitting) -> tuple[NDArray[np.float64], Any]:
        """Return eigenvalues and eigenvectors; the latter lazily if the samples are a dask array."""
        path = fitting.run.array_path("spectrum/vector")
        lazy = isinstance(fitting.X, dask.array.Array)
        vectors = read_lazily(self._folder, path) if lazy else open_array(path)[...]
        return fitting.run.open("spectrum/value")[...], vectors


class SpectralEstimator(Spectral):
    """A `Spectral` estimator with parameters for the number of eigenvectors, the Laplacian and the tolerance.

    Parameters
    ----------
    n_components
        Number of eigenvectors, not counting the constant one.
    laplacian
        "random-walk": L f = lambda D f, the coordinates of Belkin and Niyogi 2003; "normalized":
        D^-1/2 (D - W) D^-1/2, whose coordinates are sqrt(d) times those; "unnormalized": D - W.
    tolerance
        Largest residual norm of an eigenpair.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
        affinity: Affinity = "nearest_neighbors",
        weights: Weights = "self-tuning",
        bandwidth: float | Literal["auto"] = "auto",
        laplacian: Laplacian = "random-walk",
        tolerance: float = 1e-5,
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self._store(locals())


def extend_block(
    X: Samples, run: "os.PathLike[str]", memory: int, first: int
) -> NDArray[np.float32]:
    """Return coordinates of new samples in the modes of a run from `first` on.

    Raises
    ------
    EstimatorError
        A sample is not finite, or has masked values.
    """
    refuse_masked(X)
    check_finite(X.data if issparse(X) else X, 0, X.shape[0])
    with parameter_names():
        return extend(Path(run), X, memory=f"{memory}B")[:, first:]
