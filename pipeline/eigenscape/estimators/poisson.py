"""Poisson learning as a scikit-learn classifier."""

import os
import warnings
from pathlib import Path
from typing import Any, Literal, Self, get_args

import dask.array
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, GraphEstimator, Metric, Neighbors, Weights
from eigenscape.estimators.fitting import parameter_names
from eigenscape.estimators.folders import read_lazily
from eigenscape.estimators.labels import PartialClassifierMixin, encode_labels, take_class
from eigenscape.estimators.potentials import new_shares, spread_labels
from eigenscape.estimators.samples import Samples, stored_blocks
from eigenscape.job.jobfile import Job
from eigenscape.job.options import LearnOptions
from eigenscape.learn.method import Classifier
from eigenscape.learn.propagate.fields import TOLERANCE

Method = Literal["poisson", "poisson-mbo"]


class PoissonClassifier(PartialClassifierMixin, GraphEstimator):
    """Poisson learning: labels spread over the graph, for very few of them (Calder and others 2020).

    Samples without a label are marked by -1, None or NaN in `y`.

    Parameters
    ----------
    method
        "poisson", or "poisson-mbo": classes with short borders, whose sizes are the shares of the
        labels; of up to 32 classes.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    label_distributions_ : array or dask array, shape (n, c), float32
        Shares of the classes of each fitted sample, a dask array if one was given: of the potentials
        in units of twice their usual lead at labelled samples, in their order
        (`eigenscape.learn.kernels.decisions`). They are not calibrated.
    transduction_ : array, shape (n,)
        Label of each fitted sample: that of the largest potential, and of the largest share.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    Potentials are of the fitted samples alone. A new sample takes the mean share of the three nearest
    (Belkin 2003, 3.8.4, labels a test set by three neighbours), one that was fitted its own.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.full(200, -1)
    >>> y[:2] = 0, 1
    >>> PoissonClassifier(random_state=0).fit(X, y).predict(X[4:8])
    array([0, 1, 0, 1])
    """

    def __init__(
        self,
        method: Method = "poisson",
        *,
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
        weights: Weights = "self-tuning",
        bandwidth: float | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors, neighbors=neighbors, metric=metric, features=features,
            features_dimension=features_dimension, weights=weights, bandwidth=bandwidth,
            random_state=random_state, memory=memory, threads=threads, directory=directory,
        )  # fmt: skip
        self.method = method

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels over the graph.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (n, d)
        y : array-like, shape (n,)
            Labels: numbers or texts; -1, None, NaN or a missing value of pandas for none.

        Raises
        ------
        ValueError
            Samples, labels or parameters cannot work.
        """
        X = self._check(X, reset=True)
        self.classes_, classes = encode_labels(y, X.shape[0], least=2)
        count = len(self.classes_)
        if self.method not in get_args(Method):
            names = " or ".join(map(repr, get_args(Method)))
            raise EstimatorError(f"method = {self.method!r}: give {names}.")
        with parameter_names():
            method = LearnOptions.registry.find(self.method).model_validate({})
            assert isinstance(method, Classifier), "both learn from labels"
            method.check_classes([*range(count)])
            fitting = self._begin(X)
            fitting.through("graph")
            spread = fitting.stage("labels", lambda context: spread_labels(context, classes, count))
        if spread["residual"] > TOLERANCE:
            warnings.warn(
                f"residuals of the potentials are up to {spread['residual']:.1e} of what they were: "
                "the graph almost falls apart. Give a larger n_neighbors.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._job = fitting.job
        best = np.empty(X.shape[0], np.intp)
        for here, block in stored_blocks(fitting.run, "labels/share"):
            best[here] = block.argmax(axis=1)
        self.transduction_ = self.classes_[best]
        path = fitting.run.array_path("labels/share")
        lazy = isinstance(X, dask.array.Array)
        self.label_distributions_ = (
            read_lazily(self._folder, path) if lazy else fitting.run.open("labels/share")[...]
        )
        self._folder.trim()
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class, shape (m, c), float32: see `label_distributions_`.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)
        """
        check_is_fitted(self)
        X = self._check(X)
        if isinstance(X, dask.array.Array):
            return self._map_new(X, _block_shares, len(self.classes_), self._job)
        return _block_shares(X, self.run_, self._work_bytes(), self._job)

    def predict(self, X: Any) -> Any:
        """Return the label with the largest share of each sample, shape (m,).

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)
        """
        return take_class(self.predict_proba(X), self.classes_)


def _block_shares(
    X: Samples, run: "os.PathLike[str]", memory: int, job: Job
) -> NDArray[np.float32]:
    with parameter_names():
        return new_shares(Path(run), job, X, memory)
