"""Poisson learning as a scikit-learn classifier."""

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.shares import Prior
from eigenscape.estimators.classifiers.spreading import SpreadingClassifier
from eigenscape.estimators.precomputed import Affinity
from eigenscape.job.options import Weights

Method = Literal["poisson", "poisson-mbo"]


class PoissonClassifier(SpreadingClassifier):
    """Poisson learning: labels spread over the graph, for very few of them (Calder and others 2020).

    Samples without a label are marked by -1, None or NaN in `y`.

    Parameters
    ----------
    method
        "poisson", or "poisson-mbo": classes with short borders and of given sizes, see `prior`; of up to
        32 classes.
    prior
        Assumed shares of the classes among all samples: "uniform", "training" (as among the labels), or a
        share for each class in the order of `classes_`. "none": "poisson" scales no class up or down,
        "poisson-mbo" takes the shares of the labels. Give it if the numbers of labels say nothing of the
        sizes of the classes.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    label_distributions_ : array or dask array, shape (n, c), float32
        Shares of the classes of each fitted sample, a dask array if one was given: of the potentials
        in units of twice their usual lead at labelled samples, in their order
        (`eigenscape.learn.decide.kernels.decisions`). They are not calibrated.
    transduction_ : array, shape (n,)
        Label of each fitted sample: that of the largest potential, and of the largest share.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    Labels are sources of the potentials, not values that the potentials must take: a labelled sample can
    get another class than its label. With "poisson" more than ``n_neighbors // 4`` identical samples have the
    same shares, by all of their labels.

    Potentials are of the fitted samples alone. A new sample takes the mean share of the three nearest
    (Belkin 2003, 3.8.4, labels a test set by three neighbours), one that was fitted its own, or that of
    the first of identical ones.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import PoissonClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.full(200, -1)
    >>> y[:2] = 0, 1
    >>> PoissonClassifier(random_state=0).fit(X, y).predict(X[4:8])
    array([0, 1, 0, 1])
    """

    method: Method

    def __init__(
        self,
        method: Method = "poisson",
        *,
        prior: Prior = "none",
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
        affinity: Affinity = "nearest_neighbors",
        weights: Weights = "self-tuning",
        bandwidth: float | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    @property
    def _job_method(self) -> str:
        if self.method not in get_args(Method):
            names = " or ".join(map(repr, get_args(Method)))
            raise EstimatorError(f"method = {self.method!r}: give {names}.")
        return self.method
