import networkx as nx
import numpy as np
import pytest

from blockvectors import filled
from eigenscape.base.files.mapped import save_array
from eigenscape.spectrum.iteration.algebra import Gram, Project, Rotate
from eigenscape.spectrum.kernels.gather import WIDTH


@pytest.fixture
def problem(make_problem):
    W = nx.adjacency_matrix(nx.grid_2d_graph(20, 15)).astype(float)
    return make_problem(W, kind="normalized")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.iteration.algebra.gram_block", lambda *of: 2 * WIDTH)
    monkeypatch.setattr("eigenscape.spectrum.iteration.algebra.PANEL_BYTES", 2 * WIDTH * 8)
    monkeypatch.setattr("eigenscape.spectrum.iteration.algebra._SUM_ROWS", 70)


RANGES = [(0, 130), (130, 300)]


@pytest.mark.usefixtures("small_blocks")
def test_gram__assembles_symmetric_matrices_from_their_upper_halves(problem, rng):
    X = filled(problem, "x", 5, rng)
    image = problem.named("image", range(5))
    A = problem.operator.open().matrix().toarray()
    full = X.read(slice(None))
    image.write(slice(None), A @ full)
    gram = Gram(X, (X, image))
    items = gram.items(RANGES)
    assert len(items) == 2 * 6
    G, H = gram.assemble(items, [gram(item) for item in items])
    np.testing.assert_allclose(G, full.T @ full, atol=1e-11)
    np.testing.assert_allclose(H, full.T @ A @ full, atol=1e-11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("locked", [1, 3])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-11), ("float32", 1e-4)])
def test_gram__assembles_overlaps(problem, rng, locked, dtype, atol):
    V, Y = filled(problem, "v", locked, rng), filled(problem, "y", 5, rng)
    gram = Gram(V, (Y,), dtype)
    items = gram.items(RANGES)
    (overlap,) = gram.assemble(items, [gram(item) for item in items])
    assert overlap.dtype == np.float64
    np.testing.assert_allclose(overlap, V.read(slice(None)).T @ Y.read(slice(None)), atol=atol)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("locked", [1, 3])
def test_project__leaves_nothing_of_what_is_locked(problem, rng, locked):
    V, Y = filled(problem, "v", locked, rng), filled(problem, "y", 2, rng)
    Q, _ = np.linalg.qr(V.read(slice(None)))
    V.write(slice(None), Q)
    full = Y.read(slice(None))
    path = problem.directory / "overlap.npy"
    save_array(path, Q.T @ full)
    result = problem.named("projected", range(2))
    work = Project(V, Y, result, str(path))
    for block in RANGES:
        work(block)
    np.testing.assert_allclose(result.read(slice(None)), full - Q @ (Q.T @ full), atol=1e-12)
    np.testing.assert_array_equal(Y.read(slice(None)), full)


def test_rotate__replaces_lost_directions_the_same_way_for_any_tasks(problem, rng):
    X = filled(problem, "x", 2, rng)
    C = rng.standard_normal((64, 64))
    C[:, 60:] = 0
    path = problem.directory / "rotation.npy"
    save_array(path, C)
    results = []
    for name, ranges in (("a", [(0, 300)]), ("b", [(0, 200), (200, 300)])):
        following = problem.named(name, range(2))
        work = Rotate(X, following, str(path), 60, 3, 100)
        for block in ranges:
            work(block)
        results.append(following.read(slice(None)))
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0][:, :60], X.read(slice(None)) @ C[:, :60], atol=1e-12)
    assert np.linalg.matrix_rank(results[0][:, 60:]) == 4
