"""A classifier that spreads labels over the graph: what all of them do alike."""

import os
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import dask.array
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from eigenscape.estimators.base import GraphEstimator
from eigenscape.estimators.classifiers.labels import (
    PartialClassifierMixin,
    encode_labels,
    take_class,
)
from eigenscape.estimators.classifiers.shares import new_shares, spread_labels
from eigenscape.estimators.fitting import parameter_names
from eigenscape.estimators.folders import read_lazily
from eigenscape.estimators.samples import Samples, stored_blocks
from eigenscape.job.jobfile import Job
from eigenscape.learn.method import Classifier
from eigenscape.learn.propagate.fields import TOLERANCE


class SpreadingClassifier(PartialClassifierMixin, GraphEstimator):
    """Labels of some samples, spread over the graph of all of them.

    A class that derives from it names its method of a job.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    label_distributions_ : array or dask array, shape (n, c), float32
        Shares of the classes of each fitted sample, a dask array if one was given. They are not
        calibrated.
    transduction_ : array, shape (n,)
        Label of each fitted sample: that of the largest share.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    Only fitted samples have shares of their own. A new sample takes the mean shares of the three nearest
    fitted samples (Belkin 2003, 3.8.4, labels a test set by three neighbours).
    """

    @property
    @abstractmethod
    def _job_method(self) -> str:
        """Name of the method in a job."""

    def fit(self, X: Any, y: Any) -> Self:
        """Spread the labels over the graph.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (n, d)
        y : array-like, shape (n,)
            Labels: numbers or texts; -1, "", None, NaN or a missing value of pandas for none.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Samples, labels or parameters cannot work.
        """
        X = self._check(X, reset=True)
        self.classes_, classes = encode_labels(y, X.shape[0], least=2)
        count = len(self.classes_)
        with parameter_names():
            fitting = self._begin(X, method=self._job_method)
            method = fitting.job.learn
            assert isinstance(method, Classifier), "all of them learn from labels"
            method.check_classes(self.classes_.tolist())
            fitting.through("graph")
            spread = fitting.stage("labels", lambda context: spread_labels(context, classes, count))
        if spread["residual"] > TOLERANCE:
            warnings.warn(
                f"not converged: the relative residual is {spread['residual']:.1e}, because the graph is "
                "nearly disconnected. Give a larger n_neighbors.",
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
