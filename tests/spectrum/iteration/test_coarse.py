from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from eigenscape.clusters import Serial
from eigenscape.context import Loop
from eigenscape.spectrum.iteration.coarse import aggregate_rows, coarsen, prolong, store_coarse
from eigenscape.spectrum.iteration.subspace import Subspace
from eigenscape.spectrum.kernels.operator import Operator, RowBlock, as_operator

loop = Loop(Serial())


def geometric(n, seed=0):
    """Return the weights of a neighbour graph of points in the unit square."""
    graph = nx.random_geometric_graph(n, np.sqrt(8 / (np.pi * n)), seed=seed)
    nx.add_path(graph, range(n))
    return nx.adjacency_matrix(graph).astype(float)


def normalized(W):
    degree = W.sum(axis=1)
    scale = scipy.sparse.diags_array(1 / np.sqrt(degree))
    L = scipy.sparse.csr_array(scipy.sparse.eye_array(len(degree)) - scale @ W @ scale)
    return L, np.sqrt(degree)


@pytest.fixture(scope="module")
def operator():
    return as_operator(*normalized(geometric(900)), np.float64)


def cut(operator, pieces):
    """Return the same operator in several row blocks."""
    block = operator.blocks[0]
    bounds = np.linspace(0, operator.rows, pieces + 1).astype(int)
    blocks = [
        RowBlock(
            int(first),
            block.indptr[first : last + 1] - block.indptr[first],
            *(
                part[block.indptr[first] : block.indptr[last]]
                for part in (block.indices, block.data)
            ),
        )
        for first, last in pairwise(bounds)
    ]
    return Operator(blocks, operator.diagonal, operator.null, operator.singular, operator.bound)


def test_aggregate_rows__covers_all_with_connected_aggregates(operator):
    label = aggregate_rows(operator)
    count = label.max() + 1
    np.testing.assert_array_equal(np.unique(label), np.arange(count))
    assert 900 / 20 < count < 900 / 3
    graph = nx.from_scipy_sparse_array(abs(operator.matrix()))
    for aggregate in range(count):
        assert nx.is_connected(graph.subgraph(np.flatnonzero(label == aggregate)))


def test_aggregate_rows__does_not_depend_on_the_blocks(operator):
    np.testing.assert_array_equal(aggregate_rows(cut(operator, 7)), aggregate_rows(operator))


def test_aggregate_rows__leaves_isolated_rows_alone():
    operator = as_operator(scipy.sparse.csr_array((5, 5)), np.ones(5), np.float64)
    np.testing.assert_array_equal(np.sort(aggregate_rows(operator)), np.arange(5))


@pytest.mark.parametrize("slice_rows", [2**17, 100])
@pytest.mark.parametrize("pieces", [1, 5])
def test_coarsen__is_the_galerkin_product(operator, monkeypatch, pieces, slice_rows):
    monkeypatch.setattr("eigenscape.spectrum.iteration.coarse._SLICE_ROWS", slice_rows)
    label = aggregate_rows(operator)
    coarse, weight = coarsen(cut(operator, pieces), label)
    basis = np.zeros((900, coarse.rows))
    basis[np.arange(900), label] = weight
    np.testing.assert_allclose(basis.T @ basis, np.eye(coarse.rows), atol=1e-14)
    A = operator.matrix().toarray()
    np.testing.assert_allclose(coarse.matrix().toarray(), basis.T @ A @ basis, atol=1e-13)
    # The null vector is carried over, and stays one.
    np.testing.assert_allclose(basis @ coarse.null, operator.null, rtol=1e-12)
    np.testing.assert_allclose(coarse.matrix() @ coarse.null, 0, atol=1e-12)
    assert coarse.singular
    assert np.linalg.eigvalsh(coarse.matrix().toarray())[-1] <= coarse.bound * (1 + 1e-12)


def test_coarsen__keeps_a_potential(operator):
    values = np.where(np.arange(900) % 9 == 0, 50.0, 0.0)
    A = scipy.sparse.csr_array(operator.matrix() + scipy.sparse.diags_array(values))
    heavy = as_operator(A, operator.null / (1 + values), np.float64, singular=False)
    label = aggregate_rows(heavy)
    coarse, weight = coarsen(heavy, label)
    basis = np.zeros((900, coarse.rows))
    basis[np.arange(900), label] = weight
    np.testing.assert_allclose(coarse.matrix().toarray(), basis.T @ A @ basis, atol=1e-11)
    assert not coarse.singular


def test_store_coarse__carries_vectors_and_components_back(tmp_path, rng):
    W = scipy.sparse.block_diag([geometric(200, 1), geometric(100, 2)], format="csr")
    component = connected_components(W)[1].astype(np.int32)
    operator = as_operator(*normalized(scipy.sparse.csr_array(W)), np.float32)
    label = aggregate_rows(operator)
    stored = store_coarse(operator, label, component, tmp_path / "coarse")
    coarse, weight = coarsen(operator, label)
    np.testing.assert_array_equal(stored.open().matrix().toarray(), coarse.matrix().toarray())
    inside = np.load(tmp_path / "coarse" / "component.npy")
    np.testing.assert_array_equal(inside[label], component)
    vectors = rng.standard_normal((coarse.rows, 5)).astype(np.float32)
    carried = prolong(vectors, tmp_path / "coarse", slice(50, 260))
    assert carried.dtype == np.float32
    expected = (vectors[label] * weight[:, None])[50:260]
    np.testing.assert_allclose(carried, expected, rtol=1e-6)


@pytest.mark.parametrize(("n", "levels"), [(2000, 1), (6000, 1)])
def test_begin__starts_near_the_lowest_vectors(make_problem, monkeypatch, n, levels):
    monkeypatch.setattr("eigenscape.spectrum.iteration.subspace.DENSE_ROWS", 300)
    problem = make_problem(geometric(n), kind="normalized", dtype=np.float32)
    state = Subspace.on(problem, loop).begin(32, 32, whole=False)
    directory, found = problem.directory, 0
    while (directory / "coarse").exists():
        directory, found = directory / "coarse", found + 1
    assert found >= levels
    X = problem.vectors(state.files).read(slice(None))
    assert X.shape == (n, 32)
    assert np.isfinite(X).all()
    assert np.isinf(state.residuals).all()
    # All but the probes, which are random and no worse than others beside them.
    X = np.linalg.qr(X[:, :24])[0]
    A = problem.operator.open().matrix()
    ritz = scipy.linalg.eigvalsh(X.T @ (A @ X))
    flipped = 2 * scipy.sparse.eye_array(n) - A
    lowest = scipy.sparse.linalg.eigsh(flipped, 25, which="LA", tol=1e-3)[0]
    lowest = np.sort(2 - lowest)[1:]
    # Far closer than a random block, whose Ritz values are all near 1, and never below.
    assert (ritz >= lowest * 0.99).all()
    assert (ritz[:16] < 12 * lowest[:16]).all()


def test_begin__of_a_complete_graph_is_random(make_problem):
    problem = make_problem(nx.adjacency_matrix(nx.complete_graph(200)).astype(float))
    state = Subspace.on(problem, loop).begin(32, 32, whole=False)
    assert not (problem.directory / "coarse").exists()
    assert len(set(state.values)) == 1
    X = problem.vectors(state.files).read(slice(None))
    assert abs(X.std() - 1) < 0.05
