import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from eigenscape.errors import InputError
from eigenscape.graph.kernels import WEIGHT_FLOOR
from eigenscape.spectrum.operator import RowBlock, laplacian
from harness import Frail, Harness, KilledError

BLOCK_ENTRIES = "eigenscape.graph.stage._BLOCK_ENTRIES"


def brute_lists(features, k):
    squared = ((features[:, None].astype(np.float64) - features[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    index = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return index.astype(np.int32), np.sqrt(np.take_along_axis(squared, index, 1)).astype(np.float32)


def tiled_lists(features, k):
    """Lists within tiles of 500 samples: quick for many samples."""
    tiles = [
        (part + first, lengths)
        for first in range(0, len(features), 500)
        for part, lengths in [brute_lists(features[first : first + 500], k)]
    ]
    index, distance = (np.concatenate(part) for part in zip(*tiles, strict=True))
    return index.astype(np.int32), distance


class Graph:
    """A graph as the stage wrote it, in row order."""

    def __init__(self, harness, summary):
        self.summary = summary
        self.sample, self.degree = harness["graph/sample"], harness["graph/degree"]
        self.component = harness["graph/component"]
        self.blocks = []
        first = 0
        while first < summary["rows"]:
            parts = [
                harness[f"graph/{len(self.blocks)}/{name}"]
                for name in ("indptr", "indices", "data")
            ]
            self.blocks.append(RowBlock(first, *parts))
            first += len(parts[0]) - 1
        indptr = [np.zeros(1, np.int64)]
        for block in self.blocks:
            indptr.append(block.indptr[1:] + indptr[-1][-1])
        columns = np.concatenate([block.indices for block in self.blocks])
        data = np.concatenate([block.data for block in self.blocks])
        n = summary["rows"]
        self.W = scipy.sparse.csr_array((data, columns, np.concatenate(indptr)), shape=(n, n))

    def by_sample(self, n):
        """W with the numbers of samples for rows and columns."""
        place = scipy.sparse.csr_array(
            (np.ones(len(self.sample)), (self.sample, np.arange(len(self.sample)))),
            shape=(n, len(self.sample)),
        )
        return (place @ self.W @ place.T).tocsr()


@pytest.fixture
def build(tmp_path, rng):
    """Run the graph stage on given lists, in a random order of the samples."""

    def run(features, k, *, name="run", lists=None, executor=None, shuffle=True, **options):
        features = np.asarray(features, np.float32)
        index, distance = lists or brute_lists(features, k)
        order = np.arange(len(features))
        if shuffle:
            np.random.default_rng(8).shuffle(order)
        harness = Harness(tmp_path / name, neighbors={"k": k}, graph=options)
        if harness.run_directory.record("features") is None:
            harness.put("features", {"features/values": features})
            harness.put(
                "neighbors",
                {
                    "neighbors/index": index,
                    "neighbors/distance": distance,
                    "neighbors/order": order,
                },
                whole=["neighbors/order"],
            )
        graph = Graph(harness, harness.run("graph", executor))
        check_graph(graph)
        return graph

    return run


def check_graph(graph):
    """W is symmetric to the last bit, positive, without loops; degrees are its row sums."""
    W = graph.W
    W.check_format()
    assert W.has_canonical_format
    assert (W != W.T).nnz == 0
    assert W.data.dtype == np.float32
    assert (W.data > 0).all()
    assert not W.diagonal().any()
    np.testing.assert_allclose(graph.degree, W.astype(np.float64).sum(axis=1), rtol=1e-14)
    assert graph.degree.min() > 0
    assert graph.summary["entries"] == W.nnz


def expected_weights(features, k, weigh):
    """The obvious construction: networkx, one edge for every name on either list."""
    index, distance = brute_lists(features.astype(np.float32), k)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(features)))
    scale = distance[:, -1].astype(np.float64)
    for row in range(len(features)):
        for other, length in zip(index[row], distance[row].astype(np.float64), strict=True):
            graph.add_edge(row, int(other), weight=weigh(length, scale[row], scale[other]))
    return nx.to_numpy_array(graph)


@pytest.mark.parametrize("k", [1, 7])
def test_graph_stage__self_tuning_equals_the_formula(build, rng, k):
    features = rng.standard_normal((300, 3))
    graph = build(features, k, components="each")
    expected = expected_weights(
        features, k, lambda d, s, t: max(np.exp(-d * d / (s * t)), WEIGHT_FLOOR)
    )
    scale = brute_lists(features.astype(np.float32), k)[1][:, -1]
    assert scale.min() > 0.1 * np.median(scale)  # no floor in play
    np.testing.assert_allclose(graph.by_sample(300).toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize(("bandwidth", "t"), [(0.3, 0.3), ("auto", None)])
def test_graph_stage__heat_equals_the_formula(build, rng, bandwidth, t):
    features = rng.standard_normal((300, 3))
    graph = build(features, 6, weights="heat", bandwidth=bandwidth, components="each")
    t = t or float((brute_lists(features.astype(np.float32), 6)[1].astype(float) ** 2).mean())
    expected = expected_weights(features, 6, lambda d, *_: max(np.exp(-d * d / t), WEIGHT_FLOOR))
    np.testing.assert_allclose(graph.by_sample(300).toarray(), expected, rtol=1e-6)


def test_graph_stage__binary_is_the_union_of_both_directions(build, rng):
    features = rng.standard_normal((300, 3))
    graph = build(features, 6, weights="binary", components="each")
    expected = expected_weights(features, 6, lambda *_: 1.0)
    np.testing.assert_array_equal(graph.by_sample(300).toarray(), expected)
    # Some edges are named by one end only, or there would be nothing to unite.
    index, _ = brute_lists(features, 6)
    assert graph.summary["entries"] > 300 * 6 == index.size


@pytest.mark.parametrize("options", [{"weights": "heat", "bandwidth": 1e-9}, {}])
def test_graph_stage__weights_never_underflow(build, rng, options):
    features = rng.standard_normal((200, 3))
    features[5] = 1e6
    graph = build(features, 5, **options)
    assert graph.W.data.min() >= WEIGHT_FLOOR


def test_graph_stage__takes_duplicates(build, rng):
    features = rng.standard_normal((200, 3))
    features[:100] = features[0]
    graph = build(features, 5)
    assert connected_components(graph.W)[0] == 1
    graph = build(np.ones((50, 2)), 4, name="equal")
    np.testing.assert_array_equal(graph.W.data, 1)
    build(np.ones((50, 2)), 4, name="heat", weights="heat")


def test_graph_stage__scales_of_duplicates_have_a_floor(build, rng):
    # A sample with k duplicates would otherwise have scale 0 and weight 0 (or 0 / 0) to all others.
    features = rng.standard_normal((300, 2))
    features[:10] = features[0]
    graph = build(features, 6, components="each")
    scale = brute_lists(features.astype(np.float32), 6)[1][:, -1].astype(float)
    floor = 0.1 * np.median(scale[scale > 0])
    W = graph.by_sample(300)
    rows, columns = W[:10].nonzero()
    lengths = np.linalg.norm(features[rows] - features[columns], axis=1)
    expected = np.exp(-(lengths**2) / (floor * np.maximum(scale, floor)[columns]))
    np.testing.assert_allclose(
        W[:10][rows, columns], np.maximum(expected, WEIGHT_FLOOR), rtol=1e-4, atol=1e-7
    )


def clumps(rng, sizes, spread=0.3):
    centres = 20 * rng.standard_normal((len(sizes), 3))
    return np.concatenate(
        [
            centre + spread * rng.standard_normal((size, 3))
            for centre, size in zip(centres, sizes, strict=True)
        ]
    )


def test_graph_stage__components_equal_scipy(build, rng):
    features = clumps(rng, [40, 90, 25, 90, 6])
    graph = build(features, 4, components="each")
    count, labels = connected_components(graph.by_sample(len(features)))
    assert graph.summary["components"] == count >= 5
    assert not graph.summary["connected"]
    assert graph.summary["bridges"] == 0
    pairs = np.unique(np.stack([labels, graph.component]), axis=1)
    assert pairs.shape[1] == count == graph.component.max() + 1
    sizes = np.bincount(graph.component)
    np.testing.assert_array_equal(sizes, np.sort(sizes)[::-1])
    assert graph.summary["largest_component"] == sizes[0]


@pytest.mark.parametrize("sizes", [[40, 90, 25, 90, 6], [30, 30], [8] * 40])
def test_connect__bridges_are_the_shortest_there_are(build, rng, sizes):
    features = clumps(rng, sizes).astype(np.float32)
    k = 5
    apart = build(features, k, name="apart", components="each", weights="binary")
    joined = build(features, k, name="joined", components="connect", weights="binary")
    count = apart.summary["components"]
    assert connected_components(joined.W)[0] == 1
    assert joined.summary["connected"]
    assert joined.summary["bridges"] == count - 1 > 0
    np.testing.assert_array_equal(joined.component, apart.component)
    n = len(features)
    bridges = scipy.sparse.triu(joined.by_sample(n) - apart.by_sample(n)).tocoo()
    bridges.eliminate_zeros()
    lengths = np.linalg.norm(features[bridges.row] - features[bridges.col], axis=1)
    # Brute force: the gap between every two components, and the tree of the smallest gaps.
    every = np.linalg.norm(features[:, None] - features[None], axis=2)
    gaps = np.array(
        [
            [every[np.ix_(apart.component == a, apart.component == b)].min() for a in range(count)]
            for b in range(count)
        ]
    )
    for a, b, length in zip(bridges.row, bridges.col, lengths, strict=True):
        assert length == pytest.approx(gaps[apart.component[a], apart.component[b]], rel=1e-5)
    assert lengths.sum() == pytest.approx(minimum_spanning_tree(gaps).sum(), rel=1e-5)


def test_connect__tells_gaps_apart_beside_a_far_component(build, rng):
    # Products of samples 1e5 apart are rounded by more than the gaps between the near components.
    features = np.concatenate([clumps(rng, [30, 30]), 1e5 + rng.standard_normal((30, 3))])
    features = features.astype(np.float32)
    apart = build(features, 5, name="apart", components="each", weights="binary")
    graph = build(features, 5, name="joined", weights="binary")
    bridges = scipy.sparse.triu(graph.by_sample(90) - apart.by_sample(90)).tocoo()
    bridges.eliminate_zeros()
    lengths = np.linalg.norm(features[bridges.row] - features[bridges.col], axis=1)
    every = np.linalg.norm(features[:30, None] - features[None, 30:60], axis=2)
    assert apart.summary["components"] == 3
    assert lengths.min() == pytest.approx(every.min(), rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"), [("self-tuning", np.exp(-1)), ("heat", np.exp(-1)), ("binary", 1)]
)
def test_connect__weighs_bridges_whatever_their_length(build, weights, expected):
    features = np.r_[np.linspace(0, 1, 20), np.linspace(300, 301, 20)][:, None]
    graph = build(features, 2, weights=weights)
    W = graph.by_sample(40)
    assert W[19, 20] == W[20, 19] == pytest.approx(expected, rel=1e-6)
    assert W[:20, 20:].nnz == 1


def test_largest__keeps_the_largest_component_alone(build, rng):
    features = clumps(rng, [40, 90, 25])
    whole = build(features, 4, name="each", components="each")
    graph = build(features, 4, name="largest", components="largest")
    inside = np.flatnonzero(whole.component == 0)
    np.testing.assert_array_equal(np.sort(graph.sample), inside)
    assert graph.summary["rows"] == len(inside) == whole.summary["largest_component"]
    assert graph.summary["connected"]
    binary = [
        build(features, 4, name=f"binary-{kind}", components=kind, weights="binary").by_sample(155)
        for kind in ("each", "largest")
    ]
    np.testing.assert_array_equal(
        binary[0].toarray()[np.ix_(inside, inside)], binary[1].toarray()[np.ix_(inside, inside)]
    )
    # The order of what is left is that of the whole.
    np.testing.assert_array_equal(graph.sample, whole.sample[np.isin(whole.sample, inside)])


def test_each__refuses_more_components_than_it_can_solve_on(build):
    features = np.repeat(10.0 * np.arange(1001), 2)[:, None]
    with pytest.raises(InputError, match=r"1001 connected components, the limit is 1000"):
        build(features, 1, components="each")
    assert build(features[:-2], 1, name="fewer", components="each").summary["components"] == 1000


def test_connect__takes_thousands_of_components(build):
    features = np.repeat(np.sqrt(np.arange(3000.0)) * 50, 2)[:, None]
    index = np.arange(6000, dtype=np.int32).reshape(-1, 2)[:, ::-1].reshape(-1, 1)
    lists = index, np.zeros((6000, 1), np.float32)
    graph = build(features, 1, lists=lists)
    assert graph.summary["bridges"] == 2999
    assert connected_components(graph.W)[0] == 1


@pytest.mark.parametrize("components", ["connect", "largest", "each"])
def test_graph_stage__any_number_of_blocks_gives_the_same_graph(
    build, rng, monkeypatch, components
):
    features = np.concatenate([rng.standard_normal((9000, 3)), 50 + rng.standard_normal((500, 3))])
    lists = tiled_lists(features, 5)
    one = build(features, 5, name="one", lists=lists, components=components)
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    more = build(features, 5, name="more", lists=lists, components=components)
    assert (len(one.blocks), len(more.blocks)) == (1, -(-more.summary["rows"] // 4096))
    assert (one.W != more.W).nnz == 0
    np.testing.assert_array_equal(one.degree, more.degree)
    np.testing.assert_array_equal(one.sample, more.sample)


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("step", ["_reorder", "_bucket", "_unite"])
def test_graph_stage__goes_on_after_a_kill(build, rng, monkeypatch, step, noted):
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    features = rng.standard_normal((9500, 3))
    lists = tiled_lists(features, 5)
    whole, rest = Frail(), Frail()
    expected = build(features, 5, name="whole", lists=lists, executor=whole)
    steps = [name for name, _ in whole.log]
    tasks = steps.index(step) + (steps.count(step) + 1) // 2
    with pytest.raises(KilledError):
        build(features, 5, lists=lists, executor=Frail(tasks, noted=noted))
    graph = build(features, 5, lists=lists, executor=rest)
    assert (graph.W != expected.W).nnz == 0
    np.testing.assert_array_equal(graph.degree, expected.degree)
    done = [entry for entry in whole.log[: tasks - (not noted)] if entry[0] != "_search"]
    kept = [entry for entry in whole.log if entry not in done]
    assert rest.log == kept


@given(n=st.integers(3, 40), density=st.floats(0.05, 1), seed=st.integers(0, 999))
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
def test_laplacian__is_symmetric_positive_and_kills_its_null_vector(kind, n, density, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    W[np.arange(n - 1), np.arange(1, n)] += 1e-3
    W = (W + W.T).astype(np.float32)
    S = scipy.sparse.csr_array(W)
    degree = W.astype(np.float64).sum(axis=1)
    half = n // 2
    blocks = [
        RowBlock(first, part.indptr.astype(np.int64), part.indices, part.data)
        for first, part in ((0, S[:half]), (half, S[half:]))
    ]
    operator = laplacian(blocks, degree, kind, np.float64)
    L = operator.matrix().toarray()
    D = np.diag(degree)
    root = np.diag(degree**-0.5)
    expected = D - W if kind == "unnormalized" else root @ (D - W) @ root
    np.testing.assert_allclose(L, expected, atol=1e-14 * operator.bound)
    np.testing.assert_allclose(L, L.T, atol=1e-15 * operator.bound)
    values = np.linalg.eigvalsh(L)
    assert values[0] > -1e-13 * operator.bound
    assert values[-1] <= operator.bound * (1 + 1e-13)
    scale = operator.bound * np.abs(operator.null).max()
    np.testing.assert_allclose(L @ operator.null, 0, atol=1e-13 * scale)
