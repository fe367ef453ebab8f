"""The nearest label along the graph as a scikit-learn classifier."""

from pathlib import Path
from typing import Any

import numpy as np

from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.spreading import SpreadingClassifier
from eigenscape.estimators.precomputed import Affinity


class GeodesicClassifier(SpreadingClassifier):
    """The label that is nearest along the graph of nearest neighbours (Belkin 2003, 3.3 and 3.8).

    Samples without a label are marked by -1, None or NaN in `y`.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    label_distributions_ : array or dask array, shape (n, c), float32
        Shares of the classes of each fitted sample, a dask array if one was given: by the lengths of the
        paths to the nearest label of each class. They are not calibrated.
    transduction_ : array, shape (n,)
        Label of each fitted sample: that of the largest share.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    Samples that no path joins to a label get that of the nearest in feature space. More than
    ``n_neighbors // 4`` identical samples have the label that most of them have. A new sample takes the
    mean share of the three nearest fitted ones (Belkin 2003, 3.8.4), one that was fitted its own, or that of
    the first of identical ones.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import GeodesicClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.full(200, -1)
    >>> y[:2] = 0, 1
    >>> GeodesicClassifier(random_state=0).fit(X, y).predict(X[4:8])
    array([0, 1, 0, 1])
    """

    affinity: Affinity = "nearest_neighbors"

    def __init__(
        self,
        *,
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
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
        return "geodesic-nn"
