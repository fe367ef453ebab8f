import networkx as nx
import numpy as np
import pytest
import scipy.linalg

from eigenscape.learn.propagate.kernels.smoothness import Heat, Inverse, Steps
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator


def laplacian(nodes=90):
    graph = nx.connected_watts_strogatz_graph(nodes, 6, 0.2, seed=3)
    return nx.laplacian_matrix(graph).astype(float)


@pytest.mark.parametrize("weight", [1e-3, 1, 40, 1e4])
def test_inverse__equals_a_dense_solve(rng, weight):
    L = laplacian()
    operator = as_operator(L, np.ones(90), np.float64)
    X, Z = rng.random((90, WIDTH)), np.zeros((90, WIDTH))
    Inverse(operator, weight, np.zeros_like(Z)).apply(X, Z)
    np.testing.assert_allclose(Z, np.linalg.solve(np.eye(90) + weight * L, X), atol=1e-9)


def test_inverse__keeps_distributions(rng):
    operator = as_operator(laplacian(), np.ones(90), np.float32)
    X = rng.dirichlet(np.full(WIDTH, 0.1), 90).astype(np.float32)
    Z = np.zeros_like(X)
    Inverse(operator, 20.0, np.zeros_like(Z)).apply(X, Z)
    assert Z.min() > -1e-5
    np.testing.assert_allclose(Z.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(Z.sum(axis=0), X.sum(axis=0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("time", [1e-3, 0.5, 20])
def test_heat__equals_the_matrix_exponential(rng, time):
    L = laplacian()
    operator = as_operator(L, np.ones(90), np.float64)
    X, Z = rng.random((90, WIDTH)), np.zeros((90, WIDTH))
    Heat(operator, time, np.zeros_like(Z)).apply(X, Z)
    np.testing.assert_allclose(Z, scipy.linalg.expm(-time * L.toarray()) @ X, atol=1e-9)


@pytest.mark.parametrize("count", [1, 40])
def test_steps__equal_the_power_of_one_step(rng, count):
    L = laplacian()
    operator = as_operator(L, np.ones(90), np.float64)
    X, Z = rng.random((90, WIDTH)), np.zeros((90, WIDTH))
    steps = Steps(operator, count, np.zeros_like(Z))
    steps.apply(X, Z)
    one = np.eye(90) - L.toarray() / L.diagonal().max()
    np.testing.assert_allclose(Z, np.linalg.matrix_power(one, count) @ X, atol=5e-4)
    assert len(steps.coefficients) <= max(2, 0.6 * count)
