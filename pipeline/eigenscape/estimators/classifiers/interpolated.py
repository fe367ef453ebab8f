"""Harmonic functions on the graph as a scikit-learn classifier."""

from pathlib import Path
from typing import Any, Literal

import numpy as np

from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.shares import Prior
from eigenscape.estimators.classifiers.spreading import SpreadingClassifier
from eigenscape.estimators.precomputed import Affinity
from eigenscape.job.options import Weights


class InterpolatedClassifier(SpreadingClassifier):
    """Labels spread over the graph by interpolated regularisation: harmonic functions (Belkin 2003, 3.7.1).

    Samples without a label are marked by -1, None or NaN in `y`.

    Parameters
    ----------
    prior
        Assumed shares of the classes among all samples: "uniform", "training" (as among the labels), or a
        share for each class in the order of `classes_`. The functions are then scaled to these masses (class
        mass normalisation: Zhu, Ghahramani, Lafferty 2003). "none": no scaling. Give it for few labels,
        or if their numbers say nothing of the sizes of the classes.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    label_distributions_ : array or dask array, shape (n, c), float32
        Shares of the classes of each fitted sample, a dask array if one was given: values of the functions
        that are harmonic where no label is given and 0.99 or 0.01 where one is; with a prior, times the
        factor of each class. They are not calibrated.
    transduction_ : array, shape (n,)
        Label of each fitted sample: that of the largest share.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    Without a prior, labelled samples keep their labels; of more than ``n_neighbors // 4`` identical samples
    all have the mean of their labels. It is label propagation (Zhu, Ghahramani, Lafferty 2003) on the sparse
    graph of neighbours. A new sample takes the mean share of the three nearest fitted ones (Belkin 2003,
    3.8.4), one that was fitted its own, or that of the first of identical ones.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import InterpolatedClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.full(200, -1)
    >>> y[:2] = 0, 1
    >>> InterpolatedClassifier(random_state=0).fit(X, y).predict(X[4:8])
    array([0, 1, 0, 1])
    """

    def __init__(
        self,
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
        return "interpolated"
