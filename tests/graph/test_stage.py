import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from eigenscape.errors import InputError
from eigenscape.graph.kernels.weights import WEIGHT_FLOOR
from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock
from graphs import (
    Lists,
    brute_lists,
    clumps,
    expected_weights,
    join_lists,
    radius_lists,
)
from harness import Frail, KilledError

BLOCK_ENTRIES = "eigenscape.graph.stage._BLOCK_ENTRIES"


@pytest.fixture(params=["k = 1", "k = 7", "radius"])
def case(request, rng):
    """Samples and their lists; each kind has edges that one end alone names."""
    features = rng.standard_normal((300, 3))
    if request.param != "radius":
        return features, brute_lists(features, int(request.param[4:]))
    # What is left of a radius whose search missed some neighbours.
    features = rng.uniform(0, 3, (300, 3))
    rows = radius_lists(features, 1.0).rows()
    seen = [rng.random(len(near)) < 0.8 for near, _ in rows]
    assert all(part.any() for part in seen)
    return features, join_lists(
        [(near[part], lengths[part]) for (near, lengths), part in zip(rows, seen, strict=True)]
    )


@pytest.mark.parametrize(("bandwidth", "factor"), [("auto", 1), (0.25, 0.25)])
def test_graph_stage__self_tuning_equals_the_formula(build, case, bandwidth, factor):
    features, lists = case
    graph = build(features, lists=lists, bandwidth=bandwidth)
    expected = expected_weights(
        lists, lambda d, s, t: max(np.exp(-d * d / (factor * s * t)), WEIGHT_FLOOR)
    )
    apart = expected > 0
    W = graph.by_sample(300).toarray()
    np.testing.assert_allclose(W[apart], expected[apart], rtol=1e-6)
    assert np.count_nonzero(W[~apart]) == 2 * graph.summary["bridges"]


@pytest.mark.parametrize(("bandwidth", "t"), [(0.3, 0.3), ("auto", None)])
def test_graph_stage__heat_equals_the_formula(build, case, bandwidth, t):
    features, lists = case
    graph = build(features, lists=lists, weights="heat", bandwidth=bandwidth, components="each")
    t = t or float((lists.distance.astype(float) ** 2).mean())
    expected = expected_weights(lists, lambda d, *_: max(np.exp(-d * d / t), WEIGHT_FLOOR))
    np.testing.assert_allclose(graph.by_sample(300).toarray(), expected, rtol=1e-6)


def test_graph_stage__binary_is_the_union_of_both_directions(build, case):
    features, lists = case
    graph = build(features, lists=lists, weights="binary", components="each")
    expected = expected_weights(lists, lambda *_: 1.0)
    np.testing.assert_array_equal(graph.by_sample(300).toarray(), expected)
    # Some edges are named by one end only, or there would be nothing to unite.
    assert 2 * lists.index.size > graph.summary["entries"] > lists.index.size


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
    scale = brute_lists(features, 6).distance[:, -1].astype(float)
    floor = 0.1 * np.median(scale[scale > 0])
    W = graph.by_sample(300)
    rows, columns = W[:10].nonzero()
    lengths = np.linalg.norm(features[rows] - features[columns], axis=1)
    expected = np.exp(-(lengths**2) / (floor * np.maximum(scale, floor)[columns]))
    np.testing.assert_allclose(
        W[:10][rows, columns], np.maximum(expected, WEIGHT_FLOOR), rtol=1e-4, atol=1e-7
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


@pytest.fixture(scope="module", params=["k", "radius"])
def many(request):
    """So many samples that they are cut into several blocks, and lists in two components."""
    rng = np.random.default_rng(6)
    features = np.concatenate([rng.standard_normal((9000, 3)), 50 + rng.standard_normal((500, 3))])
    rows = []
    for row in range(9500):
        first, n = (0, 9000) if row < 9000 else (9000, 500)
        size = 5 if request.param == "k" else rng.integers(1, 12)
        near = first + (row - first + rng.integers(1, n, size)) % n
        rows.append((near, np.sort(rng.random(size))))
    lists = join_lists(rows)
    if request.param == "k":
        lists = Lists(lists.index.reshape(-1, 5), lists.distance.reshape(-1, 5))
    return features, lists


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("components", ["connect", "largest"])
def test_graph_stage__any_number_of_blocks_gives_the_same_graph(
    build, many, monkeypatch, components
):
    features, lists = many
    one = build(features, name="one", lists=lists, components=components)
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    more = build(features, name="more", lists=lists, components=components)
    assert (len(one.blocks), len(more.blocks)) == (1, -(-more.summary["rows"] // 4096))
    assert (one.W != more.W).nnz == 0
    np.testing.assert_array_equal(one.degree, more.degree)
    np.testing.assert_array_equal(one.sample, more.sample)


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    ("step", "noted"),
    [
        ("_reorder", True),
        ("_bucket", True),
        ("_bucket", False),
        ("_unite", True),
        ("_unite", False),
    ],
)
def test_graph_stage__goes_on_after_a_kill(build, many, monkeypatch, step, noted):
    monkeypatch.setattr(BLOCK_ENTRIES, 1)
    features, lists = many
    whole, rest = Frail(), Frail()
    expected = build(features, name="whole", lists=lists, executor=whole)
    steps = [name for name, _ in whole.log]
    tasks = steps.index(step) + (steps.count(step) + 1) // 2
    with pytest.raises(KilledError):
        build(features, lists=lists, executor=Frail(tasks, noted=noted))
    graph = build(features, lists=lists, executor=rest)
    assert (graph.W != expected.W).nnz == 0
    np.testing.assert_array_equal(graph.degree, expected.degree)
    # Lists are reordered here and there in a file: that counts when all of them are.
    finished = tasks - (not noted)
    if step == "_reorder" and steps.count(step) > 1:
        finished = steps.index(step)
    done = [entry for entry in whole.log[:finished] if entry[0] != "_search"]
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
