import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from eigenscape import eigenpairs
from eigenscape.errors import ConvergenceError
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.kernels import thin
from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from eigenscape.spectrum.kernels.thin import Profile, profile, shifted_pairs, whole_structure
from graphs import adjacency


def row_blocks(W, cut):
    parts = [(0, W[:cut]), (cut, W[cut:])]
    return [
        RowBlock(first, part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data)
        for first, part in parts
    ]


GRAPHS = {
    "path": nx.path_graph(40),
    "grid": nx.grid_2d_graph(5, 9),
    "tree": nx.balanced_tree(2, 4),
    "apart": nx.disjoint_union(nx.cycle_graph(7), nx.empty_graph(3)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_profile__is_the_envelope_in_reverse_cuthill_mckee_order(name):
    W = adjacency(GRAPHS[name])
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(W), symmetric_mode=True)
    dense = W[order][:, order].toarray() + np.eye(W.shape[0])
    widths = np.arange(W.shape[0]) - np.argmax(dense > 0, axis=1) + 1
    found = profile(W)
    assert found == Profile(int(widths.sum()), float((widths**2).sum()), W.nnz)
    assert found.bytes == 24 * widths.sum()


def test_profile__holds_the_factor():
    W = adjacency(nx.grid_2d_graph(5, 9))
    A = np.diag(np.asarray(W.sum(axis=1)) + 0.1) - W.toarray()
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(W), symmetric_mode=True)
    L = scipy.linalg.cholesky(A[np.ix_(order, order)], lower=True)
    assert np.count_nonzero(np.abs(L) > 1e-12) <= profile(W).entries


def test_profile__tells_thin_graphs_from_others():
    assert profile(adjacency(nx.path_graph(5000))).is_thin(32)
    cloud = adjacency(nx.random_regular_graph(6, 2000, seed=1))
    assert not profile(cloud).is_thin(64)
    # Cheap enough beside very many columns, but too large.
    large = Profile(entries=2**21, operations=1.0, edges=2**21)
    assert not large.is_thin(64)


def test_whole_structure__joins_row_blocks():
    W = adjacency(GRAPHS["grid"])
    W.sort_indices()
    found = whole_structure(row_blocks(W, 20))
    np.testing.assert_array_equal(found.toarray(), W.toarray() > 0)


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("potential", [False, True])
def test_shifted_pairs__equal_lapack(kind, potential):
    rng = np.random.default_rng(2)
    W = adjacency(nx.grid_2d_graph(9, 11))
    W.data = rng.uniform(0.1, 3, len(W.data))
    W = scipy.sparse.csr_array(W + W.T)
    W.sort_indices()
    V = rng.uniform(0, 1, 99) * (rng.random(99) < 0.1) if potential else None
    degree = np.asarray(W.sum(axis=1))
    operator = laplacian(row_blocks(W, 40), degree, kind, np.float64, potential=V)
    null = NullSpace(operator.null, singular=operator.singular)
    values, vectors = shifted_pairs(operator, null, 12)
    A = operator.matrix().toarray()
    expected = scipy.linalg.eigvalsh(A)[null.count : null.count + 12]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-10)


def test_shifted_pairs__find_every_copy():
    # Every eigenvalue of the ring twice, of five rings ten times.
    W = adjacency(nx.disjoint_union_all([nx.cycle_graph(30)] * 5))
    W.sort_indices()
    degree = np.asarray(W.sum(axis=1))
    operator = laplacian(row_blocks(W, 70), degree, "unnormalized", np.float64)
    null = NullSpace(operator.null, np.repeat(np.arange(5), 30).astype(np.int32))
    values, _ = shifted_pairs(operator, null, 24)
    expected = np.sort(scipy.linalg.eigvalsh(operator.matrix().toarray()))[5:29]
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("dimension", [20, 45, 60, 90])
def test_shifted_pairs__skip_no_copy_above_a_wide_gap(dimension):
    """Low eigenvalues of a potential, a wide gap, and 1.05 once for every sample without potential."""
    rng = np.random.default_rng(0)
    W = adjacency(nx.disjoint_union_all([nx.complete_graph(20)] * 40))
    W.sort_indices()
    V = np.where(rng.random(800) < 0.2, rng.random(800), 0.0)
    operator = laplacian(
        row_blocks(W, 400), np.full(800, 19.0), "normalized", np.float64, potential=V
    )
    null = NullSpace(operator.null, singular=False)
    values, vectors = shifted_pairs(operator, null, dimension)
    A = operator.matrix().toarray()
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh(A)[:dimension], atol=1e-11)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(dimension), atol=1e-9)


def test_shifted_pairs__seek_no_more_than_is_wanted(monkeypatch):
    """Of 200 equal rings more than a thousand copies lie below the values that are found first."""
    sought = []

    def search(*given):
        sought.append(given[5])
        return invert(*given)

    invert = thin._invert
    monkeypatch.setattr(thin, "_invert", search)
    W = adjacency(nx.disjoint_union_all([nx.cycle_graph(20)] * 200))
    values = eigenpairs(W, 30, solver="shift-invert").values
    np.testing.assert_allclose(values[:200], 0, atol=1e-12)
    np.testing.assert_allclose(values[200:], 1 - np.cos(np.pi / 10), atol=1e-12)
    assert max(sought) == 30


def test_shifted_pairs__refuse_what_could_not_be_counted(monkeypatch):
    class Exchanged:
        perm_r, perm_c = np.arange(2), np.arange(2)[::-1]

    factorise = thin._factorise
    monkeypatch.setattr(
        thin, "_factorise", lambda A, shift: factorise(A, shift) if shift > 0 else Exchanged()
    )
    with pytest.raises(ConvergenceError, match="could not be counted"):
        eigenpairs(adjacency(nx.path_graph(40)), 3, solver="shift-invert")


@pytest.mark.parametrize("kind", ["unnormalized", "normalized", "random-walk"])
def test_shifted_pairs__bear_a_potential_of_any_height(kind):
    """A shift by the bound of the spectrum, which the potential raises, leaves residuals of 1e-8."""
    n = 2000
    W = nx.to_scipy_sparse_array(nx.path_graph(n), dtype=np.float64)
    barrier = np.zeros(n)
    barrier[n // 2] = 1e8
    found = eigenpairs(W, 20, kind=kind, potential=barrier, solver="shift-invert")
    assert found.residuals.max() < 1e-13
