import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from eigenscape import LaplacianEigenmaps, eigenpairs
from eigenscape.errors import InputError
from graphs import adjacency


@pytest.fixture(scope="module")
def cloud():
    """Neighbours of 1600 points in the unit cube, in random order: large enough to iterate."""
    points = np.random.default_rng(3).random((1600, 3))
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


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_eigenpairs__agree_with_a_dense_solve(cloud, kind):
    found = eigenpairs(cloud, 12, kind=kind, solver="chebyshev", tolerance=1e-8)
    L = dense(cloud, kind)
    degree = np.asarray(cloud.sum(axis=1)) if kind == "random-walk" else np.ones(1600)
    # The values of the random walk are those of (D - W, D): two symmetric matrices.
    expected = scipy.linalg.eigvalsh(degree[:, None] * L, np.diag(degree))[:13]
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    assert found.converged
    assert found.solver.startswith("chebyshev")
    np.testing.assert_allclose(L @ found.vectors, found.vectors * found.values, atol=1e-6)
    gram = found.vectors.T @ (degree[:, None] * found.vectors)
    np.testing.assert_allclose(gram, np.eye(13), atol=1e-7)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("alpha", [1e-3, 10.0, 1e4])
def test_eigenpairs__take_a_potential_and_further_edges(cloud, kind, alpha):
    rng = np.random.default_rng(1)
    potential = np.zeros(1600)
    potential[rng.choice(1600, 25, replace=False)] = alpha
    ends = rng.choice(1600, (2, 20), replace=False)
    edges = scipy.sparse.coo_array((np.ones(20), ends), shape=(1600, 1600))
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


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("solver", ["chebyshev", "shift-invert", "lanczos", "lobpcg"])
def test_eigenpairs__other_solvers_agree(cloud, solver):
    found = eigenpairs(cloud, 10, solver=solver, tolerance=1e-7)
    assert found.converged
    assert found.solver.startswith(solver)
    np.testing.assert_allclose(
        found.values, eigenpairs(cloud, 10, solver="dense").values, atol=1e-9
    )


@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_eigenpairs__of_a_path_are_those_of_the_formula(kind):
    n = 20_000
    path = scipy.sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n))
    found = eigenpairs(path, 20, kind=kind)
    assert found.solver.startswith("shift-invert")
    assert found.converged
    number = np.arange(21)
    exact = 2 - 2 * np.cos(np.pi * number / n)
    if kind != "unnormalized":
        exact = 1 - np.cos(np.pi * number / (n - 1))
    np.testing.assert_allclose(found.values, exact, rtol=1e-6, atol=1e-15)


def test_eigenpairs__find_every_copy_of_an_eigenvalue():
    rings = adjacency(nx.disjoint_union_all([nx.cycle_graph(600)] * 4))
    found = eigenpairs(rings, 16, kind="unnormalized", solver="shift-invert")
    ring = np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(600) / 600))
    np.testing.assert_allclose(found.values, np.sort(np.tile(ring, 4))[:20], atol=1e-13)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(20), atol=1e-9)


@pytest.mark.mostly_exhaustive(6)
@pytest.mark.slow
@pytest.mark.parametrize("solver", ["chebyshev", "shift-invert", "dense"])
@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e2, 1e12])
def test_eigenpairs__of_scaled_weights_are_scaled(cloud, solver, factor):
    one = eigenpairs(cloud, 8, kind="unnormalized", solver=solver)
    other = eigenpairs(cloud * factor, 8, kind="unnormalized", solver=solver)
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(other.values / factor, one.values, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(other.residuals / factor, one.residuals, rtol=0.5, atol=1e-6)


@pytest.mark.parametrize("decades", [3, 6])
def test_eigenpairs__bear_weights_over_several_decades(cloud, decades):
    size = 10 ** np.random.default_rng(4).uniform(-decades / 2, decades / 2, 1600)
    turn = scipy.sparse.diags_array(np.sqrt(size))
    W = scipy.sparse.csr_array(turn @ cloud @ turn)
    found = eigenpairs(W, 10, kind="unnormalized", solver="chebyshev")
    exact = eigenpairs(W, 10, kind="unnormalized", solver="shift-invert")
    assert found.converged
    usual = np.median(np.asarray(W.sum(axis=1)))
    np.testing.assert_allclose(found.values, exact.values, atol=1e-6 * usual)


def expanders(samples, clusters, seed, bridge):
    """Clusters with a wide gap of their own, one weak edge between each and an earlier one."""
    rng = np.random.default_rng(seed)
    label = np.sort(rng.integers(0, clusters, samples))
    starts, sizes = np.searchsorted(label, np.arange(clusters)), np.bincount(label)
    row = np.repeat(np.arange(samples), 10)
    column = starts[label[row]] + (rng.random(len(row)) * sizes[label[row]]).astype(int)
    near = starts[1:] + rng.integers(0, sizes[1:])
    far = starts[[rng.integers(0, number) for number in range(1, clusters)]]
    row, column = np.r_[row, near], np.r_[column, far]
    weight = np.r_[np.ones(len(label) * 10), np.full(len(near), bridge)]
    W = scipy.sparse.coo_array((weight, (row, column)), shape=(samples, samples)).tocsr()
    return scipy.sparse.csr_array(W.maximum(W.T))


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize(
    ("samples", "clusters", "bridge", "dimension"),
    [(1700, 2, 1e-9, 5), (1700, 20, 1e-3, 10), (1700, 20, 1e-9, 30), (1700, 60, 1e-6, 60)],
)
def test_eigenpairs__of_nearly_disconnected_graphs(kind, samples, clusters, bridge, dimension):
    W = expanders(samples, clusters, dimension, bridge)
    found = eigenpairs(W, dimension, kind=kind, solver="chebyshev")
    exact = eigenpairs(W, dimension, kind=kind, solver="dense")
    assert found.converged
    unit = 1.0 if kind == "normalized" else np.median(np.asarray(W.sum(axis=1)))
    np.testing.assert_allclose(found.values, exact.values, atol=2e-7 * unit)
    space = exact.vectors[:, : clusters if dimension >= clusters else 1]
    inside = found.vectors[:, : space.shape[1]]
    np.testing.assert_allclose(np.linalg.norm(space.T @ inside, axis=0), 1, atol=1e-5)


def test_eigenpairs__a_sample_without_edges_is_a_null_vector():
    W = scipy.sparse.block_diag([RING, [[0.0]], RING], format="csr")
    found = eigenpairs(W, 3, kind="unnormalized")
    np.testing.assert_allclose(
        found.values, np.linalg.eigvalsh(dense(W, "unnormalized"))[:6], atol=1e-12
    )
    np.testing.assert_array_equal(np.abs(found.vectors[8, :3]), [0, 1, 0])


def test_eigenpairs__take_graphs_as_users_have_them(cloud, tmp_path):
    expected = eigenpairs(cloud, 4).values
    small = cloud[:200][:, :200]
    np.testing.assert_allclose(
        eigenpairs(small.toarray(), 3, kind="unnormalized").values,
        eigenpairs(small, 3, kind="unnormalized").values, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(eigenpairs(scipy.sparse.csr_matrix(cloud), 4).values, expected)
    np.testing.assert_allclose(eigenpairs(nx.from_scipy_sparse_array(cloud), 4).values, expected)
    points = np.random.default_rng(3).random((400, 3))
    near = KNeighborsTransformer(n_neighbors=10, mode="distance").fit(points)
    lists = kneighbors_graph(points, 10)
    np.testing.assert_allclose(
        eigenpairs(near, 4).values, eigenpairs(lists.maximum(lists.T), 4).values
    )
    embedding = SpectralEmbedding(3, n_neighbors=10, random_state=0).fit(points)
    assert len(eigenpairs(embedding, 4).values) == 5


@pytest.mark.parametrize("kept", [True, False])
def test_eigenpairs__of_a_fitted_estimator(tmp_path, kept):
    points = np.random.default_rng(3).random((400, 3))
    maps = LaplacianEigenmaps(
        4, laplacian="normalized", random_state=0, directory=tmp_path if kept else None
    ).fit(points)
    found = eigenpairs(maps, 4)
    np.testing.assert_allclose(found.values[1:], maps.eigenvalues_, atol=1e-6)
    share = np.abs((found.vectors[:, 1:] * maps.embedding_).sum(axis=0))
    np.testing.assert_allclose(share, 1, atol=1e-4)
    np.testing.assert_allclose(eigenpairs(maps.run_, 4).values, found.values)


RING = adjacency(nx.cycle_graph(8))


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        ([[0, 1], [1, 0]], {}, "weights: a list is not a graph. Give a symmetric SciPy sparse array"),
        (np.ones(4), {}, "weights: a ndarray is not a graph"),
        (RING * 1j, {}, "weights: holds complex numbers"),
        (nx.DiGraph([(0, 1)]), {}, "weights: a directed graph"),
        ("nowhere", {}, "no run directory"),
        (RING, {"kind": "sym"}, "kind = 'sym': no such kind"),
        (RING, {"kind": "random_walk"}, "Did you mean random-walk"),
        (RING, {"solver": "arpack"}, "solver = 'arpack': no such solver.* 'lanczos'"),
        (RING, {"tolerance": 0}, "tolerance = 0: give a number from 1e-12 to 0.01"),
        (RING, {"tolerance": float("nan")}, "tolerance = nan"),
        (RING, {"dimension": 2.5}, "dimension = 2.5: give a whole number"),
        (RING, {"memory": 2**30}, "memory = 1073741824: give a size with its unit"),
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


@pytest.mark.slow
def test_eigenpairs__strong_edges_are_found_in_double(cloud):
    """In single precision their rounding errors would exceed the tolerance: no pass would reach it."""
    n = cloud.shape[0]
    ends = np.random.default_rng(1).integers(0, n, (2, 12))
    edges = scipy.sparse.coo_array((np.full(12, 1e5), ends), (n, n))
    edges = scipy.sparse.csr_array(edges + edges.T)
    edges.setdiag(0)
    found = eigenpairs(cloud, 8, edges=edges, solver="chebyshev")
    assert found.converged
    values = np.linalg.eigvalsh(dense(cloud, "normalized", edges=edges))
    np.testing.assert_allclose(found.values, values[:8], atol=1e-6)


@pytest.mark.parametrize("solver", ["lanczos", "shift-invert", "lobpcg", "chebyshev", "dense"])
def test_eigenpairs__all_of_a_graph(solver):
    """ARPACK finds all but one at most, and LOBPCG a fifth of them."""
    if solver == "lobpcg":
        pytest.importorskip("pyamg")
    W = adjacency(nx.path_graph(30))
    potential = np.linspace(0.1, 1, 30)
    found = eigenpairs(W, 30, potential=potential, solver=solver)
    expected = np.linalg.eigvalsh(dense(W, "normalized", potential))
    np.testing.assert_allclose(found.values, expected, atol=1e-6)


def test_eigenpairs__small_weights_that_differ_are_no_rounding():
    W = adjacency(nx.path_graph(10)).tolil()
    W[0, 1] = W[1, 0] = 1e7
    W[2, 4] = 1
    with pytest.raises(InputError, match=r"not symmetric, entries differ .* by up to 1"):
        eigenpairs(W.tocsr(), 3)
    # What differs by rounding is made equal.
    W = adjacency(nx.path_graph(10)).tolil()
    W[2, 3] *= 1 + 1e-7
    assert eigenpairs(W.tocsr(), 3).residuals.max() < 1e-7


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_eigenpairs__refuse_what_is_no_number_of_threads(threads):
    with pytest.raises(InputError, match=f"threads = {threads}: give a whole number from 1 on"):
        eigenpairs(adjacency(nx.path_graph(10)), 3, threads=threads)
