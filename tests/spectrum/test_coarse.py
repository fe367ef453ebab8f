from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from eigenscape.spectrum.coarse import aggregate_rows, coarse_start, coarsen, cut_above
from eigenscape.spectrum.operator import Operator, RowBlock, as_operator


def random_geometric(n, seed=0):
    """A weighted neighbour graph of points in the unit square, as a normalised Laplacian."""
    graph = nx.random_geometric_graph(n, np.sqrt(8 / (np.pi * n)), seed=seed)
    nx.add_path(graph, range(n))
    L = nx.laplacian_matrix(graph).astype(float)
    scale = scipy.sparse.diags_array(1 / np.sqrt(L.diagonal()))
    return scale @ L @ scale, np.sqrt(L.diagonal())


@pytest.fixture
def operator():
    return as_operator(*random_geometric(900), np.float64)


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
    return Operator(blocks, operator.diagonal, operator.null, operator.bound)


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


@pytest.mark.parametrize("pieces", [1, 5])
def test_coarsen__is_the_galerkin_product(operator, pieces):
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
    assert np.linalg.eigvalsh(coarse.matrix().toarray())[-1] <= coarse.bound * (1 + 1e-12)


@pytest.mark.parametrize("n", [2000, 12_000])
def test_coarse_start__begins_near_the_lowest_vectors(n):
    # The larger one takes several levels.
    operator = as_operator(*random_geometric(n), np.float32)
    start = coarse_start(operator, 32)
    X = np.linalg.qr(start.columns(slice(None)))[0]
    assert X.shape == (n, 32)
    A = operator.matrix()
    ritz = scipy.linalg.eigvalsh(X.T @ (A @ X))
    lowest = scipy.sparse.linalg.eigsh(
        -A + 2 * scipy.sparse.eye_array(n), 33, which="LA", tol=1e-3
    )[0]
    lowest = np.sort(2 - lowest)[1:]
    # Far closer than a random block, whose Ritz values are all near 1, and never below.
    assert (ritz >= lowest * 0.99).all()
    assert (ritz[:16] < 12 * lowest[:16]).all()
    assert np.isfinite(start.columns(slice(0, 16))).all()


def test_coarse_start__of_a_complete_graph_is_none():
    L = nx.laplacian_matrix(nx.complete_graph(200)).astype(float)
    assert coarse_start(as_operator(L, np.ones(200), np.float64), 16) is None


def test_cut_above__takes_the_last_finite_value_within_limits():
    assert cut_above(np.array([0.1, 0.3, np.inf]), 2.0) == 0.3
    assert cut_above(np.array([1e-20]), 2.0) == 2e-6
    assert cut_above(np.array([1.99]), 2.0) == 1.8
