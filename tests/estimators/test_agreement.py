"""Estimator and job agree to the class, and with dense solves.

`tests/bench/correctness/agreement.py` has more data.
"""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import pairwise_distances

from agreeing import METHODS, Problem, compare, few_labels
from eigenscape import PoissonClassifier


def blobs(samples, classes, *, each=5, scale=1.0, seed=0):
    X, truth = make_blobs(samples, 20, centers=classes, random_state=seed)
    return Problem(scale * X, truth, few_labels(truth, each))


@pytest.mark.mostly_exhaustive(8)
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", [blobs(600, 4), blobs(1000, 25, each=2)], ids=["4", "25"])
def test_agreement__of_blobs(problem, method, tmp_path):
    found = compare(problem, method, tmp_path)
    assert found["differing"] == 0
    assert found["estimator_right"] > 0.95


@pytest.mark.slow
def test_agreement__of_clusters_found_by_a_draw_of_the_samples(tmp_path):
    X, truth = make_blobs(6000, 20, centers=4, cluster_std=6, random_state=4)
    problem = Problem(X, truth, few_labels(truth, 5))
    assert compare(problem, "spectral-clustering", tmp_path)["differing"] == 0


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("method", METHODS)
def test_agreement__of_moons(method, tmp_path):
    X, truth = make_moons(500, noise=0.1, random_state=0)
    assert compare(Problem(X, truth, few_labels(truth, 3)), method, tmp_path)["differing"] == 0


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("prior", ["uniform", "training", (0.2, 0.8)], ids=str)
@pytest.mark.parametrize("method", ["interpolated", "eigenfunctions", "poisson"])
def test_agreement__under_a_prior(method, prior, tmp_path):
    X, truth = make_moons(500, noise=0.2, random_state=0)
    labels = few_labels(truth, 10)
    labels[np.flatnonzero(labels == 0)[3:]] = -1
    options = (("prior", "learn.prior", prior),)
    assert compare(Problem(X, truth, labels, options=options), method, tmp_path)["differing"] == 0


def dense_potentials(X, labels, k):
    """Poisson learning (Calder and others 2020, algorithm 1) on self-tuning weights, in double."""
    n, known = len(X), np.flatnonzero(labels >= 0)
    away = pairwise_distances(X.astype(np.float32).astype(np.float64))
    order = np.argsort(away, axis=1, kind="stable")[:, 1 : k + 1]
    scale = np.take_along_axis(away, order[:, -1:], 1)
    W = np.zeros((n, n))
    rows = np.arange(n)[:, None]
    W[rows, order] = np.exp(-(away[rows, order] ** 2) / (scale * scale[order][..., 0]))
    W = np.maximum(W, W.T)
    degree = W.sum(axis=1)
    B = np.zeros((n, labels.max() + 1))
    Y = np.eye(labels.max() + 1)[labels[known]]
    B[known] = Y - Y.mean(axis=0)
    # The weighted mean is 0: a multiple of d d^T makes the equations regular.
    u = scipy.linalg.solve(np.diag(degree) - W + np.outer(degree, degree) / degree.sum(), B)
    return u - degree @ u / degree.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "classes", "scale"),
    [(100, 2, 1), (100, 2, 1e-3), (300, 10, 1e3), (1000, 20, 1), (2000, 50, 1), (3000, 5, 1e3)],
)
def test_poisson__equals_a_dense_solve(rng, samples, classes, scale):
    # They overlap, so that the graph is of one piece and has no bridges.
    centres = 1.3 * rng.standard_normal((classes, 6))
    truth = np.arange(samples) % classes
    X = scale * (centres[truth] + rng.standard_normal((samples, 6)))
    labels = few_labels(truth, 2)
    model = PoissonClassifier(random_state=0, neighbors="exact", n_neighbors=15).fit(X, labels)
    u = dense_potentials(X, labels, 15)
    top = np.sort(u, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-5 * np.abs(u).max()
    assert clear.mean() > 0.99
    shares = model.label_distributions_
    np.testing.assert_array_equal(model.transduction_[clear], u.argmax(axis=1)[clear])
    np.testing.assert_array_equal(shares.argmax(axis=1), model.transduction_)
    np.testing.assert_array_equal(model.predict(X), model.transduction_)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    # The order of all classes is that of the potentials, not of the first alone.
    second = np.argsort(u, axis=1)[:, -2]
    far = top[:, -2] - top[:, -3] > 1e-3 * np.abs(u).max() if classes > 2 else clear
    np.testing.assert_array_equal(np.argsort(shares, axis=1)[far, -2], second[far])
    # New samples: the class of the largest mean share.
    new = X[:50] + 1e-3 * scale
    proba = model.predict_proba(new)
    np.testing.assert_array_equal(model.predict(new), proba.argmax(axis=1))
