"""The same samples, labels and seeds through a job and through the estimator that has its method."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse

import eigenscape.store.run
from eigenscape import (
    EigenfunctionClassifier,
    GeodesicClassifier,
    InterpolatedClassifier,
    PoissonClassifier,
    SpectralClusterer,
    TikhonovClassifier,
)
from eigenscape.estimators.base import GraphEstimator

METHODS = (
    "poisson", "poisson-mbo", "interpolated", "tikhonov", "geodesic-nn", "eigenfunctions",
    "spectral-clustering",
)  # fmt: skip
"""Of a job and of an estimator."""

_SPREADING = {
    "interpolated": InterpolatedClassifier,
    "tikhonov": TikhonovClassifier,
    "geodesic-nn": GeodesicClassifier,
}


@dataclass(frozen=True)
class Problem:
    """Samples and what is known of them.

    Attributes
    ----------
    X : array, shape (n, d), or sparse array
    truth : array of int, shape (n,)
        Class of each, 0 ... classes-1; -1 where nobody knows it.
    labels : array of int, shape (n,)
        What is given of it, -1 for none.
    shape
        Of the scene that the samples fill; by default one column of n rows.
    options
        Parameters of the estimator, and the keys of the job that they stand for.
    """

    X: Any
    truth: np.ndarray
    labels: np.ndarray
    shape: tuple[int, int] | None = None
    options: tuple[tuple[str, str, Any], ...] = ()

    @property
    def count(self) -> int:
        """Number of classes."""
        return int(self.truth.max()) + 1


def few_labels(truth: np.ndarray, each: int) -> np.ndarray:
    """Return the first labels of each class, -1 for the others."""
    labels = np.full(len(truth), -1)
    for number in range(truth.max() + 1):
        chosen = np.flatnonzero(truth == number)[:each]
        labels[chosen] = number
    return labels


def make_estimator(problem: Problem, method: str) -> GraphEstimator:
    """Return the estimator of a method, not fitted."""
    options = {name: value for name, _, value in problem.options}
    if method == "eigenfunctions":
        return EigenfunctionClassifier(random_state=0, **options)
    if method == "spectral-clustering":
        return SpectralClusterer(problem.count, random_state=0, **options)
    if method.startswith("poisson"):
        return PoissonClassifier(method, random_state=0, **options)
    return _SPREADING[method](random_state=0, **options)


def classes_by_estimator(problem: Problem, method: str) -> tuple[np.ndarray, GraphEstimator]:
    """Return the class or cluster of each sample, and the estimator that called it."""
    model = make_estimator(problem, method)
    if method == "spectral-clustering":
        return model.fit(problem.X).labels_, model
    return model.fit(problem.X, problem.labels).transduction_, model


def classes_by_job(
    problem: Problem, method: str, model: GraphEstimator, folder: Path
) -> np.ndarray:
    """Return the class or cluster of each sample by a job, numbered as the estimator's are."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = {"path": _write_samples(problem, folder)}
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("neighbors", "graph", "spectrum")}
    tables["features"] = {"seed": model._draw_seed()}
    tables["learn"] = {"method": method}
    if method == "spectral-clustering":
        tables["learn"] |= {"clusters": problem.count, "seed": model._draw_seed()}
        tables["spectrum"]["dimension"] = max(1, problem.count - 1)
    else:
        labels = (problem.labels + 1).astype(np.uint16)
        np.save(folder / "labels.npy", labels.reshape(problem.shape or (-1, 1)))
        scene["labels"] = str(folder / "labels.npy")
        tables["learn"]["trials"] = 1
        dimension = 10
        if method == "eigenfunctions":
            dimension = len(model.eigenvalues_) - 1
        tables["spectrum"]["dimension"] = dimension
    for _, key, value in problem.options:
        table, name = key.split(".")
        tables[table][name] = value
    tables["output"] = {"directory": str(folder / "runs"), "formats": []}
    job = eigenscape.parse_job(
        {"scene": scene, **tables}, name="job", base=folder, source="agreement"
    )
    run = eigenscape.run(job)
    store = eigenscape.store.run.Run(run.path, create=False)
    return np.asarray(store.open("labels/class")[...]).astype(np.int64) - 1


def _write_samples(problem: Problem, folder: Path) -> str:
    if scipy.sparse.issparse(problem.X):
        scipy.sparse.save_npz(folder / "samples.npz", problem.X.tocsr())
        return str(folder / "samples.npz")
    shape = problem.shape or (problem.X.shape[0], 1)
    np.save(folder / "samples.npy", problem.X.reshape(*shape, -1))
    return str(folder / "samples.npy")


def differing(first: np.ndarray, second: np.ndarray, *, clusters: bool) -> int:
    """Return how many samples two assignments put differently; clusters have no names of their own."""
    if not clusters:
        return int((first != second).sum())
    table = np.zeros((first.max() + 1, second.max() + 1), int)
    np.add.at(table, (first, second), 1)
    rows, columns = scipy.optimize.linear_sum_assignment(-table)
    return len(first) - int(table[rows, columns].sum())


def compare(problem: Problem, method: str, folder: Path) -> dict[str, Any]:
    """Return how many samples estimator and job call differently, and how many each calls rightly."""
    here, model = classes_by_estimator(problem, method)
    there = classes_by_job(problem, method, model, folder)
    clusters = method == "spectral-clustering"
    known = problem.truth >= 0
    truth = problem.truth[known]
    right = [
        1 - differing(truth, called[known], clusters=clusters) / len(truth)
        for called in (here, there)
    ]
    return {
        "samples": len(here),
        "differing": differing(here, there, clusters=clusters),
        "estimator_right": round(right[0], 4),
        "job_right": round(right[1], 4),
    }
