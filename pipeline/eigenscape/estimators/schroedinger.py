"""Schroedinger eigenmaps as a scikit-learn transformer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.labels import encode_labels
from eigenscape.estimators.eigenmaps import Eigenmaps
from eigenscape.estimators.fitting import Fitting
from eigenscape.estimators.precomputed import Affinity
from eigenscape.estimators.samples import Samples
from eigenscape.job.options import Laplacian, Weights

Potential: TypeAlias = Literal["barrier", "identification"]

_MOST_CLASSES = 65_535
"""Labels are stored as 16-bit numbers, 0 for none."""


class SchroedingerEigenmaps(Eigenmaps):
    """Lowest eigenvectors of L + alpha V: eigenmaps that use labels as a potential (Halevy 2011, chapter 3).

    By default (L + alpha V) f = lambda D f, so alpha is in units of the degree of a sample. The thesis
    adds alpha V to the normalised Laplacian: ``laplacian="normalized"``.

    Parameters
    ----------
    n_components
        Number of eigenvectors. The constant eigenvector, which exists only without a potential, is not
        counted.
    potential
        The potential V. "barrier": V is 1 for the samples with a label in `y`, which pushes their coordinates
        to 0, away from the others. "identification": the samples of each label in `y` are drawn to their
        mean. An array of n values >= 0: the values of V.
    alpha
        Factor of V; see `relative`.
    relative
        If true, the factor of V is alpha tr(L) / tr(V) (Cahill, Czaja, Messinger 2014), whose effect does not
        depend on the number of labels.

    Attributes
    ----------
    embedding_ : array or dask array, shape (n, n_components), float32
        Coordinates of the samples.
    eigenvalues_ : array, shape (n_components,)
        Ascending.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph, without the potential.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Notes
    -----
    -1, None or NaN in `y` mark samples without a label. New samples have no potential: `transform` is the
    Nystrom formula of `LaplacianEigenmaps`, with the eigenvalues of L + alpha V.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import SchroedingerEigenmaps
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = np.full(200, -1)
    >>> y[:10] = 1
    >>> SchroedingerEigenmaps(potential="identification", random_state=0).fit_transform(X, y).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        potential: Potential | Sequence[float] | NDArray[Any] = "barrier",
        alpha: float = 1.0,
        relative: bool = False,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = isinstance(self.potential, str)
        return tags

    def _steered(self, X: Samples, y: Any) -> Fitting:
        if not isinstance(self.potential, str):
            V = _check_values(self.potential, X.shape[0])
            return self._begin(X, potential="barrier", values=V)
        if self.potential not in ("barrier", "identification"):
            raise EstimatorError(
                f"potential = {self.potential!r}: give 'barrier', 'identification' or an array."
            )
        classes, codes = encode_labels(y, X.shape[0])
        if self.potential == "barrier":
            codes = np.minimum(codes, 0)
        elif len(classes) > _MOST_CLASSES:
            raise EstimatorError(
                f"y: {len(classes)} labels; at most {_MOST_CLASSES} are identified."
            )
        return self._begin(X, labels="all", given=codes + 1)


def _check_values(potential: ArrayLike, samples: int) -> NDArray[np.float64]:
    V = np.asarray(potential, np.float64)
    if V.shape != (samples,):
        raise EstimatorError(
            f"potential: its shape is {V.shape}; ({samples},), one number per sample, is needed."
        )
    if not np.isfinite(V).all() or (V < 0).any() or not V.any():
        raise EstimatorError("potential: give finite values, 0 or more, not all of them 0.")
    return V
