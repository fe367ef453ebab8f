import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from graphs import Lists, clumps, join_lists


def bridges_of(graph, features):
    """Both ends of every bridge, and their lengths in double."""
    features = features.astype(np.float32).astype(np.float64)
    W = scipy.sparse.triu(graph.by_sample(len(features))).tocoo()
    across = graph.component[W.row] != graph.component[W.col]
    ends = np.stack([W.row[across], W.col[across]])
    return ends, np.linalg.norm(features[ends[0]] - features[ends[1]], axis=1)


def gaps_of(graph, features):
    """Brute force: the gap between every two components."""
    features = features.astype(np.float32).astype(np.float64)
    every = cdist(features, features)
    count = graph.summary["components"]
    groups = [np.flatnonzero(graph.component == label) for label in range(count)]
    return np.array([[every[np.ix_(a, b)].min() for a in groups] for b in groups])


@pytest.mark.parametrize("sizes", [[40, 90, 25, 90, 6], [30, 30], [8] * 40])
def test_connect__bridges_are_the_shortest_there_are(build, rng, sizes):
    features = clumps(rng, sizes)
    apart = build(features, 5, name="apart", components="each", weights="binary")
    joined = build(features, 5, name="joined", components="connect", weights="binary")
    count = apart.summary["components"]
    assert connected_components(joined.W)[0] == 1
    assert joined.summary["connected"]
    assert joined.summary["bridges"] == count - 1 > 0
    np.testing.assert_array_equal(joined.component, apart.component)
    ends, lengths = bridges_of(joined, features)
    # Brute force: the tree of the smallest gaps.
    gaps = gaps_of(joined, features)
    np.testing.assert_allclose(lengths, gaps[tuple(joined.component[ends])], rtol=1e-6)
    assert lengths.sum() == pytest.approx(minimum_spanning_tree(gaps).sum(), rel=1e-6)


def test_connect__tells_gaps_apart_beside_a_far_component(build, rng):
    # Products of samples 1e5 apart are rounded by more than the gaps between the near components.
    features = np.concatenate([clumps(rng, [30, 30]), 1e5 + rng.standard_normal((30, 3))])
    graph = build(features, 5, weights="binary")
    _, lengths = bridges_of(graph, features)
    gaps = gaps_of(graph, features)
    assert len(gaps) == 3
    assert lengths.sum() == pytest.approx(minimum_spanning_tree(gaps).sum(), rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"), [("self-tuning", np.exp(-1)), ("heat", np.exp(-1)), ("binary", 1)]
)
def test_connect__weighs_bridges_whatever_their_length(build, weights, expected):
    features = np.r_[np.linspace(0, 1, 20), np.linspace(300, 301, 20)][:, None]
    graph = build(features, 2, weights=weights)
    W = graph.by_sample(40)
    assert W[19, 20] == W[20, 19] == pytest.approx(expected, rel=1e-6)
    assert W[:20, 20:].nnz == 1


def test_connect__takes_thousands_of_components(build):
    features = np.repeat(np.sqrt(np.arange(3000.0)) * 50, 2)[:, None]
    index = np.arange(6000, dtype=np.int32).reshape(-1, 2)[:, ::-1].reshape(-1, 1)
    graph = build(features, lists=Lists(index, np.zeros((6000, 1), np.float32)))
    assert graph.summary["bridges"] == 2999
    assert connected_components(graph.W)[0] == 1


def test_connect__deals_out_many_queries(build, rng, monkeypatch):
    # All but two samples are alone: each gets a bridge to the nearest other at least.
    n = 5000
    place = rng.permutation(n)
    features = np.cumsum(rng.uniform(1, 2, n))[place, None]
    first, second = np.flatnonzero(place < 2)
    near = {first: [second], second: [first]}
    lists = join_lists([(near.get(row, []), [0.5] * (row in near)) for row in range(n)])
    monkeypatch.setattr("eigenscape.graph.bridges.MOST_QUERIES", 4096)
    graph = build(features, lists=lists, weights="binary")
    assert connected_components(graph.W)[0] == 1
    assert graph.summary["bridges"] == n - 2
    line = np.argsort(place)
    position = features[line, 0].astype(np.float32)
    gaps = np.diff(position)
    shortest = np.r_[True, (gaps[1:-1] < gaps[:-2]) | (gaps[1:-1] < gaps[2:]), True]
    assert graph.by_sample(n)[line][:, line].diagonal(1)[shortest].all()


@pytest.fixture
def rings(rng):
    """Sparse rows with a large entry in common, in rings of samples; one row is all zeros.

    Products of such rows are rounded by more than their distances.
    """
    features = scipy.sparse.random_array((300, 400), density=0.02, rng=rng, format="lil")
    features[:, 0] = 1000
    features[:100, 1] = 3
    features[100:150, 1] = 6
    features[200] = 0
    near = [[] for _ in range(300)]
    for first, last in ((0, 100), (100, 150), (150, 200), (201, 300)):
        for row in range(first, last):
            near[row] = [row + 1 if row + 1 < last else first]
    lists = join_lists([(others, [0.1] * len(others)) for others in near])
    return scipy.sparse.csr_array(features, dtype=np.float32), lists


@pytest.mark.parametrize("metric", ["euclidean", "angle"])
def test_connect__bridges_sparse_rows_as_dense_ones(build, rings, metric):
    sparse, lists = rings
    dense = sparse.toarray()
    options = {"lists": lists, "weights": "binary", "neighbors": {"metric": metric}}
    graphs = [build(rows, name=name, **options) for name, rows in (("a", dense), ("b", sparse))]
    if metric == "angle":
        # By definition: at a right angle to the sample without direction.
        length = np.linalg.norm(dense.astype(float), axis=1, keepdims=True)
        dense = np.c_[dense / np.where(length > 0, length, 1), length == 0]
    else:
        assert (graphs[0].W != graphs[1].W).nnz == 0
    # The large entry takes most of the digits of a unit vector.
    tolerance = 1e-6 if metric == "euclidean" else 1e-4
    for graph in graphs:
        assert graph.summary["components"] == 5
        tree = minimum_spanning_tree(gaps_of(graph, dense)).sum()
        assert bridges_of(graph, dense)[1].sum() == pytest.approx(tree, rel=tolerance)
