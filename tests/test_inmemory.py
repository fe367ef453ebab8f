import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.neighbors import kneighbors_graph

from eigenscape import eigenpairs
from eigenscape.errors import InputError


def adjacency(graph):
    return scipy.sparse.csr_array(nx.adjacency_matrix(graph).astype(np.float64))


@pytest.fixture(scope="module")
def cloud():
    """Neighbours of 2200 points in the unit cube, in random order: large enough to iterate."""
    points = np.random.default_rng(3).random((2200, 3))
    W = kneighbors_graph(points, 10)
    return scipy.sparse.csr_array(W.maximum(W.T))


def dense(W, kind, potential=None, edges=None):
    W = W.toarray()
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "normalized":
        L /= np.sqrt(np.outer(degree, degree))
    if potential is not None:
        L += np.diag(potential)
    if edges is not None:
        L += np.diag(edges.toarray().sum(axis=1)) - edges.toarray()
    if kind == "random-walk":
        L /= degree[:, None]
    return L


@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_eigenpairs__agree_with_a_dense_solve(cloud, kind):
    found = eigenpairs(cloud, 12, kind=kind, tolerance=1e-8)
    L = dense(cloud, kind)
    degree = np.asarray(cloud.sum(axis=1)) if kind == "random-walk" else np.ones(2200)
    # The values of the random walk are those of (D - W, D): two symmetric matrices.
    expected = scipy.linalg.eigvalsh(degree[:, None] * L, np.diag(degree))[:13]
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    assert found.converged
    assert found.solver.startswith("chebyshev")
    np.testing.assert_allclose(L @ found.vectors, found.vectors * found.values, atol=1e-6)
    gram = found.vectors.T @ (degree[:, None] * found.vectors)
    np.testing.assert_allclose(gram, np.eye(13), atol=1e-7)


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("alpha", [1e-3, 10.0, 1e4])
def test_eigenpairs__take_a_potential_and_further_edges(cloud, kind, alpha):
    rng = np.random.default_rng(1)
    potential = np.zeros(2200)
    potential[rng.choice(2200, 25, replace=False)] = alpha
    ends = rng.choice(2200, (2, 20), replace=False)
    edges = scipy.sparse.coo_array((np.ones(20), ends), shape=(2200, 2200))
    edges = scipy.sparse.csr_array(edges + edges.T)
    found = eigenpairs(cloud, 10, kind=kind, potential=potential, edges=edges, tolerance=1e-8)
    expected = np.linalg.eigvalsh(dense(cloud, kind, potential, edges))[:10]
    assert found.converged
    np.testing.assert_allclose(found.values, expected, atol=1e-8)


def test_eigenpairs__keep_apart_what_is_not_connected():
    graph = nx.disjoint_union_all(
        [nx.grid_2d_graph(30, 40), nx.path_graph(4), nx.grid_2d_graph(25, 20)]
    )
    found = eigenpairs(adjacency(graph), 8)
    np.testing.assert_array_equal(found.values[:3], 0)
    assert (np.abs(found.vectors[:, :3]) > 0).sum(axis=0).tolist() == [1200, 4, 500]
    L = dense(adjacency(graph), "normalized")
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(L)[:11], atol=1e-6)


def test_eigenpairs__are_the_same_in_little_memory(cloud, tmp_path):
    plenty = eigenpairs(cloud, 12, threads=1)
    little = eigenpairs(cloud, 12, memory="1MiB", threads=2, directory=tmp_path)
    np.testing.assert_array_equal(plenty.values, little.values)
    np.testing.assert_array_equal(plenty.vectors, little.vectors)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("solver", ["lanczos", "lobpcg", "dense"])
def test_eigenpairs__other_solvers_agree(cloud, solver):
    found = eigenpairs(cloud, 10, solver=solver, tolerance=1e-7)
    assert found.converged
    np.testing.assert_allclose(found.values, eigenpairs(cloud, 10).values, atol=1e-6)


RING = adjacency(nx.cycle_graph(8))


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (np.eye(4), {}, "weights: a ndarray is no sparse array"),
        (scipy.sparse.csr_array((3, 4)), {}, r"weights: its shape is \(3, 4\)"),
        (-RING, {}, "weights: holds -1.0"),
        (RING * np.nan, {}, "weights: holds nan"),
        (scipy.sparse.triu(RING), {}, "not symmetric, entries differ from their mirror images by up to 1"),
        (scipy.sparse.block_diag([RING, [[0.0]]]), {}, "sample 8 has no edge"),
        (RING, {"dimension": 8}, "dimension = 8: a graph of 8 samples with 1 null vector"),
        (RING, {"potential": np.ones(7)}, r"potential: its shape is \(7,\)"),
        (RING, {"potential": -np.ones(8)}, "potential: holds -1.0"),
        (RING, {"edges": scipy.sparse.eye_array(7)}, r"edges: its shape is \(7, 7\); \(8, 8\) is needed"),
    ],
)  # fmt: skip
def test_eigenpairs__say_what_is_wrong(weights, options, message):
    with pytest.raises(InputError, match=message):
        eigenpairs(weights, **{"dimension": 2, **options})
