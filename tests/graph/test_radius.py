"""What only lists of any length have: none at all, and very many."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from eigenscape.errors import InputError
from graphs import Lists, clumps, expected_weights, join_lists, radius_lists

BLOCK_ENTRIES = "eigenscape.graph.stage._BLOCK_ENTRIES"


@pytest.fixture
def lonely(rng):
    """Two clouds, and samples among and around them that have no neighbour."""
    features = np.concatenate([clumps(rng, [60, 40]), [[200, 0, 0], [0, 200, 0], [0, 0, 201]]])
    features = features[np.random.default_rng(1).permutation(len(features))].astype(np.float32)
    lists = radius_lists(features, 1.0)
    alone = np.flatnonzero(np.diff(lists.indptr) == 0)
    assert len(alone) == 3
    assert {len(near) for near, _ in lists.rows()} > {0}
    return features, lists, alone


@pytest.mark.parametrize("weights", ["self-tuning", "heat", "binary"])
def test_connect__bridges_samples_without_neighbours(build, lonely, weights):
    features, lists, alone = lonely
    graph = build(features, lists=lists, weights=weights)
    count, _ = connected_components(expected_weights(lists, lambda *_: 1.0))
    assert graph.summary["components"] == count == 5
    assert graph.summary["bridges"] == 4
    sizes = np.bincount(graph.component)
    np.testing.assert_array_equal(sizes[-3:], 1)
    np.testing.assert_array_equal(
        np.sort(graph.component[alone]), [count - 3, count - 2, count - 1]
    )
    W = graph.by_sample(len(features))
    every = np.linalg.norm(features[:, None] - features[None], axis=2)
    np.fill_diagonal(every, np.inf)
    for sample in alone:
        others = W[[sample]].nonzero()[1]
        assert every[sample].argmin() in others


def test_largest__leaves_samples_without_neighbours_out(build, lonely):
    features, lists, _ = lonely
    graph = build(features, lists=lists, components="largest", weights="binary")
    expected = expected_weights(lists, lambda *_: 1.0)
    labels = connected_components(expected)[1]
    inside = np.flatnonzero(labels == np.bincount(labels).argmax())
    np.testing.assert_array_equal(np.sort(graph.sample), inside)
    np.testing.assert_array_equal(
        graph.by_sample(len(features)).toarray()[np.ix_(inside, inside)],
        expected[np.ix_(inside, inside)],
    )


def test_each__refuses_samples_without_neighbours(build, lonely):
    features, lists, _ = lonely
    with pytest.raises(InputError, match=r"3 of 103 samples have no neighbour.*neighbors\.radius"):
        build(features, lists=lists, components="each")


@pytest.mark.parametrize("components", ["connect", "largest", "each"])
def test_graph_stage__refuses_a_graph_without_edges(build, components):
    features = np.arange(5.0)[:, None]
    none = Lists(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(6, np.int64))
    with pytest.raises(
        InputError, match=r"no edge, for none of 5 samples.* Raise neighbors\.radius"
    ):
        build(features, lists=none, components=components)


def test_graph_stage__takes_blocks_without_entries(build, rng, monkeypatch):
    # The first 4096 ranks have no neighbour at all; there are bridges alone in their rows.
    n = 4200
    near = [[]] * 4100 + [[row ^ 1] for row in range(4100, n)]
    lists = join_lists([(others, [0.5] * len(others)) for others in near])
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    graph = build(rng.random((n, 1)), lists=lists, order=np.arange(n))
    assert [len(block.indptr) - 1 for block in graph.blocks] == [4096, 104]
    assert connected_components(graph.W)[0] == 1
    assert graph.summary["entries"] == 2 * (n - 1)


def star(n, kind):
    """Sample 7 is the neighbour of all others; of a radius, they are all its neighbours too."""
    others = np.delete(np.arange(n), 7)
    distance = (1 + others / n).astype(np.float32)
    if kind == "k":
        index = np.full((n, 1), 7, np.int32)
        index[7] = others[0]
        lengths = np.insert(distance, 7, distance[0])
        return others, distance, Lists(index, lengths[:, None])
    rows = [([7], [length]) for length in distance]
    rows.insert(7, (others, distance))
    return others, distance, join_lists(rows)


@pytest.mark.parametrize("kind", ["k", "radius"])
def test_graph_stage__takes_a_hub(build, monkeypatch, kind):
    n = 20_001
    others, distance, lists = star(n, kind)
    features = np.zeros((n, 1))
    one = build(features, lists=lists, name="one", weights="heat", bandwidth=2.0)
    W = one.by_sample(n)
    np.testing.assert_array_equal(np.sort(W[[7]].nonzero()[1]), others)
    expected = np.exp(-(distance.astype(float) ** 2) / 2)
    np.testing.assert_allclose(W[[7]].toarray()[0, others], expected, rtol=1e-6)
    assert W.nnz == 2 * len(others)
    # The hub's row is more than a block should hold: it is one of its own.
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    more = build(features, lists=lists, name="more", weights="heat", bandwidth=2.0)
    assert (one.W != more.W).nnz == 0
    np.testing.assert_array_equal(one.degree, more.degree)
    assert sorted(len(block.data) for block in more.blocks)[-1] == n - 1
    assert len(next(b for b in more.blocks if len(b.data) == n - 1).indptr) == 2


def test_graph_stage__cuts_blocks_where_lists_are_long(build, monkeypatch):
    # A chain of samples that begins with 400 so close that each has all the others.
    n, close = 20_000, 400
    near = [np.delete(np.arange(close), row) for row in range(close)]
    near += [[row - 1, row + 1][: n - row] for row in range(close, n)]
    near[close - 1] = np.append(near[close - 1], close)
    lists = join_lists([(others, np.ones(len(others))) for others in near])
    features = np.zeros((n, 1))
    one = build(features, lists=lists, name="one", order=np.arange(n))
    assert one.summary["components"] == 1
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    more = build(features, lists=lists, name="more", order=np.arange(n))
    assert (one.W != more.W).nnz == 0
    np.testing.assert_array_equal(one.degree, more.degree)
    mean = -(-lists.index.size // n)
    assert more.summary["block_rows"] == 4096
    # Own and arriving entries: two for each that is left.
    assert max(len(block.data) for block in more.blocks) <= 3 * 4096 * mean / 2
    assert len(more.blocks[0].indptr) - 1 < close < 4096 == len(more.blocks[-2].indptr) - 1


def test_connect__refuses_more_components_than_it_bridges(build, lonely, monkeypatch):
    monkeypatch.setattr("eigenscape.graph.stage.MOST_BRIDGED", 4)
    features, lists, _ = lonely
    with pytest.raises(InputError, match="5 connected components, 3 of them single samples"):
        build(features, lists=lists)
    assert build(features, lists=lists, components="largest").summary["components"] == 5
