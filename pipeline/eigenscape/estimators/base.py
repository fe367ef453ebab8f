"""Bases of all estimators: neighbours and graph of their samples, as parameters and as a run."""

import copy
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

import dask.system
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from eigenscape.base.blocks import BASE_BYTES
from eigenscape.base.files.mapped import save_array
from eigenscape.base.memory import ROW_TILE, parse_bytes
from eigenscape.base.process.progress import Silent, shown_reporter
from eigenscape.clusters.workers.client import place_of
from eigenscape.errors import EstimatorError
from eigenscape.estimators.documents import explain_parameters
from eigenscape.estimators.fitting import Fitting, make_job, parameter_names
from eigenscape.estimators.folders import SMALL_BYTES, RunFolder
from eigenscape.estimators.precomputed import AFFINITIES, Affinity, check_graph, longest_list
from eigenscape.estimators.samples import Samples, check_samples
from eigenscape.job.options import Weights
from eigenscape.spectrum.weights import check_weights

Neighbors = Literal["lanczos-bisection", "pynndescent", "exact"]
Metric = Literal["euclidean", "angle"]
Features = Literal["random-projection", "pca", "none"]
Fitted = TypeVar("Fitted")


def _unchanged_by_failure(fit: Callable[..., Fitted]) -> Callable[..., Fitted]:
    """Return a ``fit`` that leaves the attributes of an earlier fit as they were if it fails."""

    @functools.wraps(fit)
    def fit_or_restore(self: Any, *given: Any, **named: Any) -> Fitted:
        before = dict(vars(self))
        try:
            return fit(self, *given, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit_or_restore


class NeighborEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that searches the nearest neighbours of its samples, in a run directory.

    The parameters are keys of a job (``jobs/README.md``), with scikit-learn's names where they exist.

    Parameters
    ----------
    n_neighbors
        Number of neighbours per sample, not counting the sample itself; all other samples if there are fewer.
    neighbors
        Neighbour search: recursive Lanczos bisection, NN-descent in memory, or brute force.
    metric
        Distance between feature vectors, or the angle between them.
    features
        Projection before the search, for samples with more than `features_dimension` features.
    features_dimension
        Number of features after the projection.
    random_state
        Seed of all random numbers.
    memory
        Limit of the anonymous memory of a fit, including the libraries (200 MiB) but not samples that are
        given in memory.
    threads
        Number of threads; all cores by default.
    directory
        Parent of the run directories of the fits, which are kept there. By default, the run directory is in
        the system's temporary directory, is deleted with the estimator, and is part of its pickles.
    client
        A `distributed.Client` whose workers do the work, or "current" for the client of this process or of
        the task on a Dask worker. The workers must see `directory`. By default, threads of this process do
        the work. A client object is not pickled.
    verbose
        Show the progress: a bar in a notebook and on a terminal, lines elsewhere.
    """

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

    def _store(self, given: Mapping[str, Any]) -> None:
        """Set the parameters of ``__init__``, which are its local variables, as attributes."""
        for name in given.keys() - {"self"}:
            setattr(self, name, given[name])

    def __sklearn_clone__(self) -> Self:
        # A connection is shared, not copied.
        bare = copy.copy(self)
        bare.client = None
        fresh = super(NeighborEstimator, bare).__sklearn_clone__()
        fresh.client = self.client
        return cast(Self, fresh)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if not isinstance(self.client, str):
            state = state | {"client": None}
        return state

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        explain_parameters(cls)
        if "fit" in vars(cls):
            cls.fit = _unchanged_by_failure(cls.fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _begin(
        self,
        X: Samples,
        *,
        given: NDArray[np.integer] | None = None,
        values: NDArray[np.float64] | None = None,
        **changed: Any,
    ) -> Fitting:
        """Check the parameters, make the run directory and write the samples into it.

        Parameters
        ----------
        X
            Checked samples.
        given : array of int, shape (n,), optional
            Class numbers for a potential, 0 for none.
        values : array, shape (n,), optional
            A potential.
        changed
            Parameters whose values are other than given.
        """
        affinity: Affinity = getattr(self, "affinity", "nearest_neighbors")
        size = 12 * X.nnz if affinity != "nearest_neighbors" else 8 * X.shape[0] * X.shape[1]
        small = X.shape[0] <= ROW_TILE and size <= SMALL_BYTES
        folder = RunFolder(self.directory, small=small, name=type(self).__name__)
        if values is not None:
            # As the job of a scene names it: an array on the grid, here of one column.
            changed["raster"] = str(folder.path / "potential.npy")
            save_array(changed["raster"], values[:, None])
        job = make_job({**self.get_params(deep=False), **changed}, self._draw_seed())
        self.n_neighbors_ = min(job.neighbors.k, X.shape[0] - 1)
        if affinity != "nearest_neighbors":
            self.n_neighbors_ = min(self.n_neighbors_, longest_list(X))
            # Bridges between components are between samples.
            apart = job.graph.model_copy(update={"components": "each"})
            job = job.model_copy(update={"graph": apart})
        near = job.neighbors.model_copy(update={"k": self.n_neighbors_})
        self._folder = folder
        return Fitting(
            job.model_copy(update={"neighbors": near}), folder, X, given, affinity=affinity,
            on=None if self.client is None else place_of(None, self.client),
            reporter=shown_reporter() if self.verbose else Silent(),
        )  # fmt: skip

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _check(self, X: Any, *, reset: bool = False) -> Samples:
        return check_samples(self, X, reset=reset)

    def _work_bytes(self) -> int:
        return max(0, parse_bytes(self.memory) - BASE_BYTES)

    def _map_new(
        self, X: Any, function: Callable[..., NDArray[Any]], width: int, *further: Any
    ) -> Any:
        """Apply ``function(block, run, memory, *further)`` lazily to the rows of a dask array.

        Parameters
        ----------
        X
            The dask array.
        function
            Returns an array of `width` columns in single precision.
        """
        X = X.rechunk({1: -1})
        # The scheduler's threads share the limit.
        memory = self._work_bytes() // dask.system.CPU_COUNT
        return X.map_blocks(
            function, self._folder.held(), memory, *further, dtype=np.float32,
            chunks=(X.chunks[0], (width,)), meta=np.empty((0, 0), np.float32),
        )  # fmt: skip

    @property
    def run_(self) -> Path:
        """The run directory, for `eigenscape.extend` and `eigenscape.open_run`."""
        check_is_fitted(self)
        path: Path = self._folder.path
        return path


class GraphEstimator(NeighborEstimator):
    """An estimator on the graph of nearest neighbours of its samples.

    Parameters
    ----------
    affinity
        "nearest_neighbors": `X` holds samples, and the graph is computed; "precomputed": `X` is the graph,
        a symmetric matrix of weights (sparse or dense), or another form that `eigenscape.eigenpairs` takes;
        "precomputed_nearest_neighbors": `X` is a sparse matrix of distances to nearest neighbours, as
        from `NeighborsTransformer`; `n_neighbors` per row are used. Components of a given graph are
        not joined.
    weights
        Weight of an edge of length d: "self-tuning", exp(-d^2 / (t s_i s_j)), where s_i is the distance from
        sample i to its last neighbour; "heat", exp(-d^2 / t); "binary", 1.
    bandwidth
        t in the weights. For "heat", in squared units of the features; "auto" is the mean of d^2. For
        "self-tuning", without unit; "auto" is 1 (0.25 is better for few labels).
    """

    def __init__(
        self,
        *,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity != "nearest_neighbors"
        return tags

    @property
    def affinity_matrix_(self) -> csr_array:
        """Weights of the graph, symmetric, shape (n, n), read from the run directory."""
        check_is_fitted(self)
        W = check_weights("run_", self.run_)
        if W.nnz < 2**31:
            # scikit-learn takes no others.
            W.indptr, W.indices = W.indptr.astype(np.int32), W.indices.astype(np.int32)
        return W

    def _check(self, X: Any, *, reset: bool = False) -> Samples:
        if self.affinity not in AFFINITIES:
            raise EstimatorError(
                f"affinity = {self.affinity!r}: give {', '.join(map(repr, AFFINITIES[:-1]))} or "
                f"{AFFINITIES[-1]!r}."
            )
        if self.affinity == "nearest_neighbors":
            return super()._check(X, reset=reset)
        if not reset:
            raise EstimatorError(
                f"affinity = {self.affinity!r}: the estimator was fitted to a graph, so it cannot process "
                "new samples. Its attributes hold the results for the fitted samples. To transform new "
                "samples, fit it to samples."
            )
        with parameter_names():
            graph = check_graph(X, self.affinity)
        self.n_features_in_ = graph.shape[0]
        return graph
