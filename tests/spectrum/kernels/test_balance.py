from functools import cache

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.spatial import cKDTree

from eigenscape.clusters import Serial
from eigenscape.context import Loop
from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.kernels.balance import Balanced, stiff_rows
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator

loop = Loop(Serial())


ROWS = 800
PAIRS = 12


def quiet(text):
    pass


def neighbour_graph(n=ROWS, k=8):
    points = np.random.default_rng(1).uniform(0, 1, (n, 2))
    points[:, 0] *= 2
    distance, index = cKDTree(points).query(points, k + 1)
    rows = np.repeat(np.arange(n), k)
    weights = np.exp(-((distance[:, 1:] / distance[:, -1:]) ** 2)).ravel()
    W = scipy.sparse.csr_array((weights, (rows, index[:, 1:].ravel())), (n, n))
    return scipy.sparse.csr_array(W.maximum(W.T)), points


W, POINTS = neighbour_graph()
POTENTIALS = {
    # A wall across the domain, one patch, and single rows all over it.
    "wall": np.abs(POINTS[:, 0] - 0.8) < 0.05,
    "patch": np.linalg.norm(POINTS - 0.5, axis=1) < 0.2,
    "scattered": np.arange(ROWS) % 11 == 0,
}


def dense(kind, potential):
    A = W.astype(np.float32).astype(np.float64).toarray()
    degree = A.sum(axis=1)
    A = np.diag(degree) - A
    half = 1 / np.sqrt(degree)
    if kind == "normalized":
        return half[:, None] * A * half + np.diag(potential)
    if kind == "random-walk":
        return half[:, None] * (A + np.diag(potential)) * half
    return A + np.diag(potential)


@cache
def dense_values(name, alpha):
    return np.linalg.eigvalsh(dense("normalized", alpha * POTENTIALS[name]))


def solved(make_problem, kind, potential, dtype, tolerance, name="p"):
    problem = make_problem(W, kind=kind, dtype=dtype, potential=potential, name=name)
    return solve(problem, PAIRS, tolerance, loop, quiet)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize(
    ("dtype", "tolerance", "atol"), [(np.float64, 1e-8, 1e-8), (np.float32, 1e-5, 1e-5)]
)
@pytest.mark.parametrize("name", POTENTIALS)
def test_solve__bears_a_barrier_of_any_height(make_problem, name, dtype, tolerance, atol):
    products = {}
    for alpha in (0, 1e-3, 1, 30, 1e3, 1e4):
        potential = alpha * POTENTIALS[name].astype(float)
        solution = solved(make_problem, "normalized", potential, dtype, tolerance, f"{alpha}")
        assert solution.converged
        values = dense_values(name, alpha)
        nulls = int(alpha == 0)
        np.testing.assert_allclose(
            solution.values[:PAIRS], values[nulls : nulls + PAIRS], atol=atol
        )
        found = solution.vectors.read(slice(None))[:, :PAIRS]
        np.testing.assert_allclose(found.T @ found, np.eye(PAIRS), atol=10 * atol)
        products[alpha] = solution.products
    assert products[1e4] <= 3 * products[0]


@pytest.mark.parametrize("kind", ["random-walk", "unnormalized"])
def test_solve__bears_a_barrier_on_any_laplacian(make_problem, kind):
    potential = 1e4 * POTENTIALS["wall"]
    solution = solved(make_problem, kind, potential, np.float64, 1e-8)
    assert solution.converged
    A = dense(kind, potential)
    expected, vectors = scipy.linalg.eigh(A, subset_by_index=[0, PAIRS])
    np.testing.assert_allclose(solution.values[:PAIRS], expected[:PAIRS], atol=1e-8)
    found = solution.vectors.read(slice(None))[:, :PAIRS]
    assert np.linalg.norm(A @ found - found * solution.values[:PAIRS], axis=0).max() < 1.1e-8
    assert scipy.linalg.subspace_angles(found, vectors[:, :PAIRS]).max() < 1e-4


def test_solve__bears_hubs_of_an_unnormalised_graph(make_problem):
    graph = nx.grid_2d_graph(20, 25)
    graph = nx.convert_node_labels_to_integers(graph)
    for hub in (500, 501):
        graph.add_edges_from((hub, node) for node in range(hub - 500, 500, 2))
    A = nx.adjacency_matrix(graph).astype(float)
    problem = make_problem(A)
    solution = solve(problem, PAIRS, 1e-8, loop, quiet)
    assert len(stiff_rows(problem.operator.open())) == 2
    L = np.diag(A.sum(axis=1)) - A.toarray()
    np.testing.assert_allclose(
        solution.values[:PAIRS], np.linalg.eigvalsh(L)[1 : PAIRS + 1], atol=1e-8
    )
    assert solution.converged


def grid_operator(potential, strong=()):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 10))
    for i, j in strong:
        graph.add_edge(i, j, weight=1e4)
    L = nx.laplacian_matrix(graph).astype(float)
    A = scipy.sparse.csr_array(L + scipy.sparse.diags_array(potential))
    return as_operator(A, np.ones(100), np.float64, singular=False)


def test_stiff_rows__are_those_far_above_the_others():
    potential = np.zeros(100)
    assert len(stiff_rows(grid_operator(potential))) == 0
    potential[[3, 50, 51]] = 1e3
    np.testing.assert_array_equal(stiff_rows(grid_operator(potential)), [3, 50, 51])
    # What makes the spectrum only a little longer is left alone.
    potential[[3, 50, 51]] = 50
    assert len(stiff_rows(grid_operator(potential))) == 0


def test_stiff_rows__do_not_hang_on_each_other():
    # Strong edges make large diagonals too, but their ends move together.
    operator = grid_operator(np.zeros(100), [(0, 1), (1, 2), (40, 50)])
    assert operator.diagonal.max() > 1e4
    assert len(stiff_rows(operator)) == 0
    potential = np.zeros(100)
    potential[77] = 1e5
    operator = grid_operator(potential, [(0, 1), (1, 2), (40, 50)])
    np.testing.assert_array_equal(stiff_rows(operator), [77])


def test_solve__bears_strong_edges(make_problem):
    ends = np.arange(0, ROWS - 1, 40)
    joined = scipy.sparse.coo_array((np.full(len(ends), 1e3), (ends, ends + 1)), (ROWS, ROWS))
    joined = scipy.sparse.csr_array(joined + joined.T)
    problem = make_problem(W, kind="normalized", edges=joined)
    assert len(stiff_rows(problem.operator.open())) == 0
    solution = solve(problem, PAIRS, 1e-7, loop, quiet)
    added = np.diag(joined.sum(axis=1)) - joined.toarray()
    values = np.linalg.eigvalsh(dense("normalized", np.zeros(ROWS)) + added)
    np.testing.assert_allclose(solution.values[:PAIRS], values[:PAIRS], atol=1e-8)
    assert solution.converged


def test_balanced__leaves_eigenvectors_as_they_are():
    potential = np.zeros(100)
    potential[[3, 50, 51]] = 1e3
    operator = grid_operator(potential)
    values, vectors = np.linalg.eigh(operator.matrix().toarray())
    X = np.ascontiguousarray(vectors[:, :WIDTH])
    balanced = Balanced(operator, stiff_rows(operator), values[:WIDTH])
    found = X.copy()
    found[[3, 50, 51]] = 7
    balanced.balance(found)
    # Two of them are neighbours: two sweeps leave no more than 1e-9 of what they hear.
    np.testing.assert_allclose(found, X, atol=1e-8)
    Z = np.zeros_like(X)
    balanced.step(found, Z, 1.0, 2.0, 0.0)
    np.testing.assert_allclose(Z, X * (values[:WIDTH] + 2), atol=1e-5)
