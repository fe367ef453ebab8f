import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from eigenscape import eigenpairs
from eigenscape.learn.clustering.kernels.costs import ClusterCuts, block_cuts, ncut_bound
from eigenscape.spectrum.kernels.operator import RowBlock


def graph_of(rng, rows=40):
    weights = np.triu(np.where(rng.random((rows, rows)) < 0.2, rng.random((rows, rows)), 0), 1)
    weights[np.arange(rows - 1), np.arange(1, rows)] = 0.5
    return scipy.sparse.csr_array(weights + weights.T)


def measure(W, clusters, count, starts):
    parts, leads = [], []
    for start, stop in itertools.pairwise([*starts, W.shape[0]]):
        piece = W[start:stop]
        block = RowBlock(start, piece.indptr, piece.indices, piece.data)
        cuts, lead = block_cuts(block, clusters, count)
        parts.append([cuts.cut, cuts.volume])
        leads.append(lead)
    return ClusterCuts(*np.sum(parts, axis=0)), np.concatenate(leads)


def test_block_cuts__against_networkx(rng):
    W = graph_of(rng)
    clusters = rng.integers(0, 4, 40)
    cuts, _ = measure(W, clusters, 4, [0, 13, 30])
    graph = nx.from_scipy_sparse_array(W)
    for number in range(4):
        inside = set(np.flatnonzero(clusters == number).tolist())
        assert cuts.cut[number] == pytest.approx(nx.cut_size(graph, inside, weight="weight"))
        assert cuts.volume[number] == pytest.approx(nx.volume(graph, inside, weight="weight"))
        conductance = nx.conductance(graph, inside, weight="weight")
        assert cuts.conductance[number] == pytest.approx(conductance)
    np.testing.assert_allclose(cuts.ncut, cuts.cut / cuts.volume)


def test_block_cuts__lead_of_every_row(rng):
    W = graph_of(rng)
    clusters = rng.integers(0, 4, 40)
    _, lead = measure(W, clusters, 4, [0, 7])
    toward = W.toarray() @ np.eye(4)[clusters]
    own = toward[np.arange(40), clusters]
    toward[np.arange(40), clusters] = 0
    others = toward.max(axis=1)
    wanted = np.where(others > 0, np.maximum(0, 1 - others / np.maximum(own, 1e-300)), 1)
    np.testing.assert_allclose(lead, wanted, atol=1e-6)


def test_block_cuts__rows_without_edges_and_one_cluster():
    W = scipy.sparse.csr_array((3, 3))
    cuts, lead = measure(W, np.array([0, 1, 0]), 2, [0])
    assert not cuts.ncut.any()
    assert not cuts.conductance.any()
    assert lead.tolist() == [1, 1, 1]
    W = scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3))
    cuts, lead = measure(W, np.zeros(3, int), 1, [0])
    assert (cuts.cut.tolist(), cuts.volume.tolist(), lead.tolist()) == ([0], [6], [1, 1, 1])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_ncut_bound__no_partition_costs_less(rng, count):
    W = graph_of(rng, 25)
    bound = ncut_bound(eigenpairs(W, 24).values, count)
    costs = []
    for _ in range(50):
        clusters = rng.permutation(np.arange(25) % count)
        costs.append(measure(W, clusters, count, [0])[0].ncut.sum())
    # Runs of the path that the graph holds, which cut little.
    costs.append(measure(W, np.arange(25) * count // 25, count, [0])[0].ncut.sum())
    assert bound <= min(costs)
    pieces = scipy.sparse.block_diag([graph_of(rng, 10)] * count).tocsr()
    clusters = np.repeat(np.arange(count), 10)
    assert measure(pieces, clusters, count, [0])[0].ncut.sum() == 0
    assert ncut_bound(eigenpairs(pieces, 2).values, count) == pytest.approx(0, abs=1e-9)
