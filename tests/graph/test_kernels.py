import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.graph import kernels


def random_lists(rng, n, k):
    index = np.stack(
        [rng.choice(np.delete(np.arange(n), row), k, replace=False) for row in range(n)]
    )
    # One length for each pair, as for distances.
    lengths = np.triu(rng.random((n, n)), 1)
    lengths += lengths.T
    index[rng.random((n, k)) < 0.1] = -1
    distance = np.where(index >= 0, np.take_along_axis(lengths, np.maximum(index, 0), 1), np.inf)
    return index.astype(np.int32), distance.astype(np.float32)


@given(
    n=st.integers(2, 60), k=st.integers(1, 5), block=st.integers(1, 60), seed=st.integers(0, 999)
)
def test_union_rows__equals_networkx_for_any_blocks(n, k, block, seed):
    index, distance = random_lists(np.random.default_rng(seed), n, min(k, n - 1))
    count = -(-n // block)
    filed = []
    for first in range(0, n, block):
        mine = index[first : first + block], distance[first : first + block]
        counts = np.zeros(count, np.int64)
        kernels.count_targets(mine[0], block, counts)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        edges = [np.empty(offsets[-1], kind) for kind in (np.int32, np.int32, np.float32)]
        kernels.bucket_edges(*mine, first, block, offsets[:-1].copy(), *edges)
        filed.append((offsets, edges))
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    rows, slots = np.nonzero(index >= 0)
    graph.add_weighted_edges_from(
        zip(rows, index[rows, slots], distance[rows, slots], strict=True), weight="length"
    )
    for number, first in enumerate(range(0, n, block)):
        arriving = [
            np.concatenate(
                [edges[part][offsets[number] : offsets[number + 1]] for offsets, edges in filed]
            )
            for part in range(3)
        ]
        indptr, columns, lengths = kernels.union_rows(
            first, index[first : first + block], distance[first : first + block], *arriving
        )
        for row in range(len(indptr) - 1):
            here = slice(indptr[row], indptr[row + 1])
            expected = sorted(graph[first + row])
            assert columns[here].tolist() == expected
            assert lengths[here].tolist() == [graph[first + row][j]["length"] for j in expected]


def test_union_rows__sorts_a_hub(rng):
    # Every row names row 0, which therefore has more than 64 entries.
    n = 300
    index = np.zeros((n, 1), np.int32)
    index[0] = n - 1
    distance = rng.random((n, 1)).astype(np.float32)
    others = np.delete(np.arange(n, dtype=np.int32), 0)[::-1]
    source = np.r_[others, [0]].astype(np.int32)
    target = np.r_[np.zeros(n - 1), [n - 1]].astype(np.int32)
    indptr, columns, lengths = kernels.union_rows(
        0, index, distance, source, target, distance[source, 0]
    )
    np.testing.assert_array_equal(columns[: n - 1], np.arange(1, n))
    np.testing.assert_array_equal(lengths[: n - 2], distance[1 : n - 1, 0])
    # Both ends of the last pair named each other: the shorter of the two lengths counts.
    assert lengths[n - 2] == lengths[-1] == min(distance[0, 0], distance[-1, 0])
    assert indptr[-1] == 2 * (n - 1)


def test_self_tuning_weights__equals_numpy(rng):
    indptr, columns = np.array([0, 2, 3]), np.array([1, 3, 0], np.int32)
    lengths, scale = rng.random(3).astype(np.float32), rng.random(6).astype(np.float32)
    weights = np.empty(3, np.float32)
    kernels.self_tuning_weights(2, indptr, columns, lengths, scale, weights)
    own = scale[[2, 2, 3]].astype(float)
    expected = np.exp(-(lengths.astype(float) ** 2) / (own * scale[columns]))
    np.testing.assert_allclose(weights, np.maximum(expected, kernels.WEIGHT_FLOOR), rtol=1e-6)


def test_heat_weights__are_never_0():
    lengths = np.array([0, 1e-3, 1, 1e3, 1e30], np.float32)
    weights = np.empty(5, np.float32)
    kernels.heat_weights(lengths, 1.0, weights)
    assert weights[0] == 1
    np.testing.assert_allclose(weights[2], np.exp(-1), rtol=1e-6)
    np.testing.assert_array_equal(weights[3:], kernels.WEIGHT_FLOOR)


@given(n=st.integers(1, 60), edges=st.integers(0, 60), seed=st.integers(0, 999))
def test_unite__equals_networkx(n, edges, seed):
    rng = np.random.default_rng(seed)
    index = np.full((n, 3), -1, np.int32)
    index[rng.integers(0, n, edges), rng.integers(0, 3, edges)] = rng.integers(0, n, edges)
    parent = np.arange(n, dtype=np.int32)
    kernels.unite(index, parent)
    kernels.flatten(parent)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    rows, slots = np.nonzero(index >= 0)
    graph.add_edges_from(zip(rows, index[rows, slots], strict=True))
    for members in nx.connected_components(graph):
        assert {int(parent[row]) for row in members} == {min(members)}
