import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import NearestNeighbors

from eigenscape.learn.propagate.kernels import geodesic
from eigenscape.learn.propagate.kernels.geodesic import geodesic_nearest, undirected


def random_lists(rng, rows, k, padding=-1):
    """Return neighbour lists with lengths on a grid, so that there are ties, and holes."""
    index = rng.integers(0, rows, (rows, k)).astype(np.int32)
    distance = (rng.integers(0, 6, (rows, k)) / 4).astype(np.float32)
    none = rng.random((rows, k)) < 0.3
    index[none], distance[none] = padding, np.inf
    return index, distance


def path_lengths(index, distance, sample):
    """Return the length of the shortest path from each labelled sample to every sample."""
    rows = len(index)
    dense = np.full((rows, rows), np.inf)
    for row in range(rows):
        for other, length in zip(index[row], distance[row], strict=True):
            if 0 <= other < rows and np.isfinite(length):
                dense[row, other] = min(dense[row, other], length)
    dense = np.minimum(dense, dense.T)
    for between in range(rows):
        dense = np.minimum(dense, dense[:, between, None] + dense[between])
    np.fill_diagonal(dense, 0)
    return dense[sample]


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 30),
    k=st.integers(1, 4),
    labelled=st.integers(1, 8),
    classes=st.integers(1, 4),
)
def test_geodesic_nearest__against_all_paths(seed, rows, k, labelled, classes):
    rng = np.random.default_rng(seed)
    index, distance = random_lists(rng, rows, k, padding=rng.choice([-1, rows]))
    sample = rng.permutation(rows)[:labelled]
    given_classes = rng.integers(0, classes, len(sample))
    found = geodesic_nearest(undirected(index, distance), sample, given_classes)
    lengths = path_lengths(index, distance, sample)
    for row in range(rows):
        best = lengths[:, row].argmin()
        if np.isinf(lengths[best, row]):
            assert found.position[row] == found.rival[row] == -1
            continue
        assert found.position[row] == best
        assert found.distance[row] == lengths[best, row]
        others = np.where(given_classes == given_classes[best], np.inf, lengths[:, row])
        assert found.rival_distance[row] == others.min()
        assert found.rival[row] == (-1 if np.isinf(others.min()) else others.argmin())


def test_geodesic_nearest__against_scipy(rng):
    points = rng.random((3000, 3))
    distance, index = NearestNeighbors(n_neighbors=8).fit(points).kneighbors()
    distance = distance.astype(np.float32)
    sample = rng.choice(3000, 40, replace=False)
    found = geodesic_nearest(undirected(index, distance), sample, np.arange(40))
    rows = np.repeat(np.arange(3000), 8)
    W = scipy.sparse.csr_array((distance.ravel().astype(float), (rows, index.ravel())))
    lengths, _, source = dijkstra(
        W.maximum(W.T), indices=sample, min_only=True, return_predecessors=True
    )
    np.testing.assert_array_equal(found.distance, lengths)
    np.testing.assert_array_equal(sample[found.position], source)


def test_geodesic_nearest__follows_the_curve():
    # Two half circles facing each other: the ends are close, the way along the curve is long.
    angle = np.linspace(0, np.pi, 60)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.concatenate([upper, 0.8 * upper])
    distance, index = NearestNeighbors(n_neighbors=2).fit(points).kneighbors()
    found = geodesic_nearest(undirected(index, distance), np.array([0, 119]), np.array([3, 7]))
    scores = found.scores(np.array([0, 1]), 2)
    np.testing.assert_array_equal(scores, np.eye(2)[np.repeat([0, 1], 60)])


def test_undirected__of_lists_of_any_length(rng):
    index, distance = random_lists(rng, 25, 5)
    kept = index >= 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    flat = undirected(index[kept], distance[kept], indptr)
    sample, classes = np.arange(4), np.array([0, 1, 1, 0])
    wanted = geodesic_nearest(undirected(index, distance), sample, classes)
    found = geodesic_nearest(flat, sample, classes)
    np.testing.assert_array_equal(found.position, wanted.position)
    np.testing.assert_array_equal(found.rival_distance, wanted.rival_distance)


def test_scores__by_hand():
    # 0 --1-- 1 --2-- 2    3 --0-- 4    5
    index = np.array([[1], [2], [-1], [4], [-1], [-1]])
    distance = np.array([[1.0], [2.0], [np.inf], [0.0], [np.inf], [np.inf]])
    graph = undirected(index, distance)
    found = geodesic_nearest(graph, np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]))
    scores = found.scores(np.array([0, 1, 0, 1]), 3)
    expected = [[1, 0], [2 / 3, 1 / 3], [0, 1], [0.5, 0.5], [0.5, 0.5], [np.nan, np.nan]]
    np.testing.assert_allclose(scores[:, :2], expected, rtol=1e-5)
    # Rows 3 and 4 are copies of each other with other classes: the first one counts.
    assert scores[:5].argmax(axis=1).tolist() == [0, 0, 1, 0, 0]


def test_geodesic_nearest__heap_grows(rng, monkeypatch):
    graph = undirected(*random_lists(rng, 300, 6))
    sample, classes = np.arange(5), np.array([0, 1, 0, 1, 2])
    wanted = geodesic_nearest(graph, sample, classes)
    # As plain Python, for which the room of the heap is no constant.
    monkeypatch.setattr(geodesic, "_ROOM", 1)
    monkeypatch.setattr(geodesic, "_search", geodesic._search.py_func)
    found = geodesic_nearest(graph, sample, classes)
    np.testing.assert_array_equal(found.position, wanted.position)
    np.testing.assert_array_equal(found.rival_distance, wanted.rival_distance)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_undirected__holds_every_edge_twice(dtype):
    index = np.array([[1, 2], [0, -1], [2, 3]], dtype)
    distance = np.array([[1.0, np.inf], [2.0, 1.0], [0.0, 1.0]], np.float32)
    graph = undirected(index, distance)
    # The edge to infinity, the one to itself and the one to sample 3 = n are none.
    assert graph.indptr.tolist() == [0, 2, 4, 4]
    assert sorted(graph.data.tolist()) == [1, 1, 2, 2]
