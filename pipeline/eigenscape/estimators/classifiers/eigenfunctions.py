"""Least squares on eigenfunctions as a scikit-learn classifier."""

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import dask.array
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenscape.base.blocks import blocks
from eigenscape.context import Context
from eigenscape.errors import EstimatorError
from eigenscape.estimators.base import Features, Metric, Neighbors
from eigenscape.estimators.classifiers.labels import (
    PartialClassifierMixin,
    encode_labels,
    take_class,
)
from eigenscape.estimators.classifiers.shares import Prior, all_train, nearest_fitted
from eigenscape.estimators.fitting import Fitting, parameter_names
from eigenscape.estimators.precomputed import Affinity
from eigenscape.estimators.samples import Samples, stored_blocks
from eigenscape.estimators.spectral import SpectralEstimator, extend_block
from eigenscape.job.jobfile import Job
from eigenscape.job.options import Laplacian, Weights
from eigenscape.labels.priors import prior_factors, training_shares, weigh_scores
from eigenscape.learn.classify.kernels import eigenfunctions
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities
from eigenscape.learn.method import Classifier
from eigenscape.learn.propagate.identical import find_identical
from eigenscape.spectrum.extension import LEAST_SHARE, count_extended
from eigenscape.store.rows import Rows
from eigenscape.store.run import Run

_MOST_COMPONENTS = 55
_TILE_BYTES = 2**24


class EigenfunctionClassifier(PartialClassifierMixin, SpectralEstimator):
    """Least squares on the lowest eigenvectors, one class against all (Belkin 2003, 3.5).

    Samples without a label, marked by -1, None or NaN in `y`, shape the eigenvectors. Of more than
    ``n_neighbors // 4`` identical samples all have the same label, by all of theirs.

    Parameters
    ----------
    n_components
        Number of eigenvectors, not counting the constant one. With "auto", the number including the constant
        one is a fifth of the labelled samples (Belkin 2003), at least the number of classes and at most 56;
        with `gamma` it is 56, or fewer if the samples are.
        Eigenvectors with eigenvalues above 0.95, which do not extend to new samples, are dropped (except for
        the unnormalised Laplacian).
    gamma
        Weight of the roughness of the functions against the mean squared error at the labels: Tikhonov
        regularisation within the span of the eigenvectors (Belkin 2003, 3.7.1). The sum of (eigenvalue / that
        of eigenvector 30)^power times coefficient^2 is the roughness, so that 0.1 suits most graphs; 0 is
        plain least squares.
    power
        Exponent of the roughness.
    prior
        Assumed shares of the classes among all samples: "uniform", "training" (as among the labels), or a
        share for each class in the order of `classes_`. The functions are then multiplied by these shares
        over those among the labels. "none": no factors. Give it if the numbers of labels say nothing of the
        sizes of the classes.
    n_neighbors
        Number of neighbours per sample, not counting the sample itself; all other samples if there are fewer.
        If so many samples are neighbours that no eigenvector extends to new samples, the number is halved
        until one does.
    laplacian
        As in `LaplacianEigenmaps`; the default is that of a job, so that both predict the same classes.

    Attributes
    ----------
    classes_ : array, shape (c,)
        Labels of the classes.
    coef_ : array, shape (eigenvectors, c), float32
        Coefficients of each class on the eigenvectors, the constant one first.
    transduction_ : array, shape (n,)
        Label of each fitted sample.
    eigenvalues_ : array, shape (eigenvectors,)
        Ascending.
    affinity_matrix_ : csr_array, shape (n, n)
        Weights of the graph.
    n_neighbors_, run_
        As of `LaplacianEigenmaps`.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenscape import EigenfunctionClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 6 * (np.arange(200) % 2)[:, None]
    >>> y = np.full(200, -1)
    >>> y[:4] = 0, 1, 0, 1
    >>> EigenfunctionClassifier(random_state=0).fit(X, y).predict(X[4:8])
    array([0, 1, 0, 1])
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        gamma: float = 0.0,
        power: int = 2,
        prior: Prior = "none",
        n_neighbors: int = 12,
        neighbors: Neighbors = "lanczos-bisection",
        metric: Metric = "euclidean",
        features: Features = "random-projection",
        features_dimension: int = 80,
        affinity: Affinity = "nearest_neighbors",
        weights: Weights = "self-tuning",
        bandwidth: float | Literal["auto"] = "auto",
        laplacian: Laplacian = "normalized",
        tolerance: float = 1e-5,
        random_state: int | np.random.RandomState | None = None,
        memory: str = "2GiB",
        threads: int | None = None,
        directory: str | Path | None = None,
        client: Any = None,
        verbose: bool = False,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any) -> Self:
        """Compute the eigenvectors and fit the classes to them.

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
        dimension: Any = self.n_components
        if dimension == "auto":
            most = min(_MOST_COMPONENTS, X.shape[0] - 1)
            labels = int((classes >= 0).sum())
            dimension = eigenfunctions.choose_count(
                "auto", labels, len(self.classes_), most, most, smooth=self.gamma != 0
            )
        given: dict[str, Any] = {"method": "eigenfunctions", "n_components": dimension}
        with parameter_names():
            fitting = self._begin(X, **given)
            self._factors = self._find_factors(fitting.job, classes)
            while not self._find_extendable(fitting):
                shutil.rmtree(fitting.run.path)
                fewer = self.n_neighbors_ // 2
                fitting = self._begin(X, **given, n_neighbors=fewer)
        self.eigenvalues_ = fitting.run.open("spectrum/value")[...]
        self._job: Job = fitting.job
        fitting.stage("labels", partial(self._learn, classes))
        self._folder.trim()
        return self

    def _learn(self, classes: NDArray[np.intp], context: Context) -> dict[str, Any]:
        """Fit the classes, with identical samples as in `eigenscape.learn.classify.coordinates`."""
        spectrum = context.run.record("spectrum")
        assert spectrum is not None, "the eigenvectors are found"
        identical = find_identical(context)
        vectors = Rows(context.path("spectrum/vector"))
        labelled = np.flatnonzero(classes >= 0)
        alike = labelled if identical is None else identical.alike(labelled)
        nulls = spectrum.summary["null_vectors"]
        self.coef_ = self._solve(vectors, alike, classes[labelled], nulls)
        best = np.empty(len(classes), np.intp)
        for here, block in stored_blocks(context.run, "spectrum/vector"):
            best[here] = _estimates(block, self.coef_, self._factors).argmax(axis=1)
        if identical is not None:
            best = best[identical.alike(np.arange(len(best)))]
        self.transduction_ = self.classes_[best]
        return {}

    def _find_extendable(self, fitting: Fitting) -> bool:
        """Compute the eigenvectors, and again without those that do not extend.

        Return False where none does, and there are fewer neighbours to take.
        """
        nulls = self._find_modes(fitting)
        values = fitting.run.open("spectrum/value")[...]
        few = count_extended(values, fitting.job.graph.laplacian) - nulls
        # An estimator of a given graph takes no new samples.
        if few == fitting.job.spectrum.dimension or self.affinity != "nearest_neighbors":
            return True
        if few >= 1:
            self._noticed(fitting.fewer_modes(few))
        elif self.n_neighbors_ == 1:
            raise EstimatorError(
                f"X: no eigenvector of the graph of {fitting.X.shape[0]} samples but the constant one "
                f"extends to new samples (eigenvalue up to {1 - LEAST_SHARE}). Give more samples."
            )
        return few >= 1

    def _find_factors(self, job: Job, classes: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Return what the function of each class is multiplied by, None without a prior."""
        method = job.learn
        assert isinstance(method, Classifier), "it learns from labels"
        method.check_classes(self.classes_.tolist())
        if method.wanted_prior == "none":
            return None
        labelled = all_train(classes, len(self.classes_))
        return prior_factors(method.wanted_prior, labelled, 0, training_shares(labelled, 0))

    def _solve(
        self, vectors: Rows, samples: NDArray[np.int64], classes: NDArray[np.intp], nulls: int
    ) -> NDArray[np.float32]:
        """Return the coefficients by the classes of some samples, in any order and also several times."""
        modes, count = vectors.shape[1], len(self.classes_)
        G, B = np.zeros((modes, modes)), np.zeros((modes, count))
        order = np.argsort(samples, kind="stable")
        for start, stop in blocks(len(order), max(1, _TILE_BYTES // (8 * modes))):
            own = order[start:stop]
            coordinates = vectors.take(samples[own])
            assert isinstance(coordinates, np.ndarray), "eigenvectors are dense"
            sums = eigenfunctions.normal_equations(coordinates, classes[own], count)
            G, B = G + sums[0], B + sums[1]
        G[np.diag_indices(modes)] += eigenfunctions.roughness(
            G, self.eigenvalues_, nulls, self.gamma, self.power
        )
        return eigenfunctions.solve(G, B)

    def decision_function(self, X: Any) -> Any:
        """Return the fitted function of each class, near 1 in it and -1 elsewhere.

        With a prior, the functions are those times the factors of the classes, as shares of their sum.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)

        Returns
        -------
        array or dask array, shape (m, c), float32
            Of two classes the values of the second, shape (m,).
        """
        functions = 2 * self._estimates(X) - 1
        return functions[:, -1] if len(self.classes_) <= 2 else functions

    def predict(self, X: Any) -> Any:
        """Return the label of the largest function at each sample, shape (m,).

        New samples get coordinates by the Nystrom extension, `eigenscape.extend`.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)
        """
        return take_class(self._estimates(X), self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class, shape (m, c), float32, in the order of the functions.

        A function is a least-squares estimate of the probability of its class; what is below 0 or above 1
        is brought between (`eigenscape.learn.decide.kernels.decisions`). Shares are not calibrated.

        Parameters
        ----------
        X : array-like, sparse array or dask array, shape (m, d)
        """
        estimates = self._estimates(X)
        if isinstance(estimates, dask.array.Array):
            return estimates.map_blocks(_shares, dtype=np.float32)
        return _shares(estimates)

    def _estimates(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self._check(X)
        if isinstance(X, dask.array.Array):
            further = self._job, self.coef_, self._factors
            return self._map_new(X, _block_estimates, len(self.classes_), *further)
        memory = self._work_bytes()
        return _block_estimates(X, self.run_, memory, self._job, self.coef_, self._factors)


def _shares(estimates: NDArray[np.float32]) -> NDArray[np.float32]:
    return probabilities(estimates, Calibration.none(estimates.shape[1]))


def _estimates(
    coordinates: NDArray[np.float32],
    weights: NDArray[np.float32],
    factors: NDArray[np.float64] | None,
) -> NDArray[np.float32]:
    found = eigenfunctions.estimates(coordinates, weights)
    return found if factors is None else weigh_scores(found, factors)


def _block_estimates(
    X: Samples,
    run: "os.PathLike[str]",
    memory: int,
    job: Job,
    weights: NDArray[np.float32],
    factors: NDArray[np.float64] | None,
) -> NDArray[np.float32]:
    coordinates = extend_block(X, run, memory, 0)
    # Where the extension would divide by next to nothing, the nearest fitted sample stands in.
    lost = np.flatnonzero(np.isnan(coordinates).any(axis=1))
    if len(lost):
        vectors = Rows(str(Run(Path(run), create=False).array_path("spectrum/vector")))
        for start, stop, voters in nearest_fitted(Path(run), job, X[lost], memory):
            nearest, place = np.unique(voters[:, 0], return_inverse=True)
            coordinates[lost[start:stop]] = np.asarray(vectors.take(nearest))[place]
    return _estimates(coordinates, weights, factors)
