import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from eigenscape.neighbors import recall
from harness import Frail, Harness, KilledError

PART_SIZE = "eigenscape.neighbors.stage.PART_SIZE"


class Lists:
    def __init__(self, harness, summary):
        self.index, self.distance = harness["neighbors/index"], harness["neighbors/distance"]
        self.order, self.summary = harness["neighbors/order"], summary


@pytest.fixture
def find(tmp_path):
    """Run the neighbors stage on given features and check what holds for all lists."""

    def run(features, *, name="run", memory="2GiB", threads=2, executor=None, **options):
        features = features.astype(np.float32)
        harness = Harness(tmp_path / name, neighbors=options, limits={"memory": memory})
        if harness.run_directory.record("features") is None:
            harness.put("features", {"features/values": features})
        lists = Lists(harness, harness.run("neighbors", executor, threads=threads))
        check_lists(features, lists, options["k"])
        return lists

    return run


def check_lists(features, lists, k):
    """No self, no repeats, valid numbers, sorted by (distance, number), distances by differences."""
    n = len(features)
    index, distance = lists.index, lists.distance
    assert index.shape == distance.shape == (n, k)
    assert index.min() >= 0
    assert index.max() < n
    assert (index != np.arange(n)[:, None]).all()
    assert (np.diff(np.sort(index, axis=1), axis=1) > 0).all()
    # Squares that differ in the last bit may have the same root.
    steps = np.diff(distance.astype(np.float64), axis=1)
    assert (steps >= 0).all()
    own = np.sqrt(((features[index].astype(np.float64) - features[:, None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(distance, own, rtol=1e-5)
    np.testing.assert_array_equal(np.sort(lists.order), np.arange(n))


def true_distances(features, k):
    """Return the distances of the k nearest, by differences in double."""
    features = np.asarray(features, np.float32).astype(np.float64)
    search = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(features)
    return search.kneighbors()[0]


def true_recall(features, lists):
    limit = true_distances(features, lists.index.shape[1])[:, -1:]
    return float((lists.distance <= limit * (1 + 1e-5)).mean())


def clustered(rng, n, width=12, clusters=6):
    centres = 4 * rng.standard_normal((clusters, width))
    flat = rng.standard_normal((width, width)) * np.geomspace(1, 0.05, width)[:, None]
    return (centres[rng.integers(0, clusters, n)] + rng.standard_normal((n, width)) @ flat).astype(
        np.float32
    )


def assert_exact(features, lists):
    expected = true_distances(features, lists.index.shape[1])
    scale = max(float(expected.max()), 1e-30)
    np.testing.assert_allclose(lists.distance, expected, rtol=1e-5, atol=1e-7 * scale)


METHODS = ["lanczos-bisection", "exact", "pynndescent"]


@pytest.mark.parametrize("n", [300, 5000])
def test_exact__equals_sklearn(find, rng, n):
    features = clustered(rng, n)
    lists = find(features, method="exact", k=10)
    expected, index = (
        NearestNeighbors(n_neighbors=10, algorithm="brute")
        .fit(features.astype(np.float64))
        .kneighbors()
    )
    np.testing.assert_allclose(lists.distance, expected, rtol=1e-5)
    # Up to distances that agree to the last digits of single precision.
    swapped = lists.index != index
    assert swapped.mean() < 1e-3
    assert lists.summary["recall"] == 1


def test_exact__breaks_ties_by_number(find):
    features = np.stack(np.meshgrid(np.arange(20), np.arange(20)), -1).reshape(-1, 2)
    lists = find(features, method="exact", k=7)
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2).astype(float)
    np.fill_diagonal(squared, np.inf)
    np.testing.assert_array_equal(lists.index, np.argsort(squared, axis=1, kind="stable")[:, :7])


def test_bisection__is_exact_within_one_leaf(find, rng):
    features = clustered(rng, 900)
    assert_exact(features, find(features, k=12, leaf_size=1000))


@pytest.mark.parametrize("part_size", [2**16, 1000])
def test_bisection__recalls_clustered_data(find, rng, monkeypatch, part_size):
    monkeypatch.setattr(PART_SIZE, part_size)
    features = clustered(rng, 8000)
    lists = find(features, k=12, leaf_size=400, overlap=0.2)
    assert lists.summary["parts"] == {2**16: 1, 1000: 32}[part_size]
    assert true_recall(features, lists) >= 0.98


def test_bisection__refinement_finds_more(find, rng):
    features = clustered(rng, 6000)
    recalls, shares = [], []
    for rounds in range(4):
        lists = find(features, name=f"{rounds}", k=8, leaf_size=200, overlap=0.05, refine=rounds)
        recalls.append(true_recall(features, lists))
        shares = lists.summary["refined"]
    assert recalls == sorted(recalls)
    assert recalls[3] > recalls[0] + 0.05
    assert len(shares) == 3
    # Fewer entries change from round to round.
    assert shares == sorted(shares, reverse=True)


def test_pynndescent__recalls_clustered_data(find, rng):
    features = clustered(rng, 5000)
    assert true_recall(features, find(features, method="pynndescent", k=12)) >= 0.97


def test_pynndescent__takes_more_threads_than_cores(find, rng):
    find(clustered(rng, 300), method="pynndescent", k=5, threads=500)


def test_recall__equals_the_true_recall_where_all_samples_are_queried(find, rng, monkeypatch):
    monkeypatch.setattr(recall, "QUERIES", 4000)
    features = clustered(rng, 3000)
    lists = find(features, k=10, leaf_size=128, overlap=0.02, refine=0)
    assert 0.5 < lists.summary["recall"] < 0.95
    assert lists.summary["recall"] == pytest.approx(true_recall(features, lists), abs=1e-4)
    assert lists.summary["recall_samples"] == 3000
    # There is nothing left to estimate.
    assert lists.summary["recall_low"] == lists.summary["recall"] == lists.summary["recall_high"]


def test_recall__interval_holds_the_true_recall(find, rng, monkeypatch):
    monkeypatch.setattr(recall, "QUERIES", 500)
    features = clustered(rng, 6000)
    lists = find(features, k=10, leaf_size=128, overlap=0.02, refine=0)
    low, high = lists.summary["recall_low"], lists.summary["recall_high"]
    assert low < true_recall(features, lists) < high
    assert 0 < high - low < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__takes_many_duplicates(find, rng, method):
    features = rng.standard_normal((3000, 8)).astype(np.float32)
    features[rng.random(3000) < 0.9] = features[0]
    lists = find(features, method=method, k=10, leaf_size=300, overlap=0.2)
    assert true_recall(features, lists) >= 0.98
    same = (features == features[0]).all(axis=1)
    np.testing.assert_array_equal(lists.distance[same], 0)


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__takes_samples_that_are_all_equal(find, method):
    lists = find(np.full((700, 4), 3.3), method=method, k=6, leaf_size=100)
    np.testing.assert_array_equal(lists.distance, 0)


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__keeps_near_duplicates_under_an_offset(find, rng, method):
    # Squared distances of 1e-4 beside squared norms of 1e9: a product shows none of them.
    features = 1e4 + 10 * clustered(rng, 1500)
    features[750:] = features[:750]
    features[750:, 0] += 1e-2
    lists = find(features, method=method, k=5, leaf_size=300, overlap=0.2)
    pairs = np.r_[np.arange(750, 1500), np.arange(750)]
    # In single precision the shift is a hundredth give or take a tenth of it.
    assert (lists.index[:, 0] == pairs).mean() >= 0.99
    np.testing.assert_allclose(lists.distance[:, 0], 1e-2, rtol=0.1)


@pytest.mark.parametrize("method", ["lanczos-bisection", "exact"])
@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize("leaf_size", [300, 2000])
def test_neighbors_stage__tells_neighbours_apart_in_two_far_clusters(
    find, rng, method, share, leaf_size
):
    features = rng.standard_normal((2000, 3))
    features[rng.random(2000) < share] += 1e5
    lists = find(features, method=method, k=8, leaf_size=leaf_size, overlap=0.2)
    assert true_recall(features, lists) >= 0.98


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__bears_an_outlier(find, rng, method):
    features = clustered(rng, 2000)
    features[77] = 1e6
    lists = find(features, method=method, k=8, leaf_size=400, overlap=0.2)
    assert true_recall(features, lists) >= 0.97


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_stage__finds_a_line_in_many_dimensions(find, rng, method):
    direction = rng.standard_normal(200)
    features = np.sort(rng.uniform(0, 1, 3000))[:, None] * direction
    lists = find(features, method=method, k=6, leaf_size=200)
    assert true_recall(features, lists) >= 0.98


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (40, 39)])
def test_neighbors_stage__takes_as_many_neighbours_as_there_are(find, rng, method, n, k):
    features = rng.standard_normal((n, 3))
    lists = find(features, method=method, k=k)
    assert_exact(features, lists)
    assert lists.summary["recall"] == 1


@pytest.mark.parametrize("method", ["lanczos-bisection", "exact"])
def test_neighbors_stage__gives_the_same_lists_for_any_block_size(find, rng, monkeypatch, method):
    monkeypatch.setattr(PART_SIZE, 4000)
    monkeypatch.setattr("eigenscape.arrays._CHUNK_ROWS", 4096)
    # Blocks of an eighth of the samples and blocks of one tile differ from here on.
    rows = {"exact": 9000, "lanczos-bisection": 70_000}[method]
    features = clustered(rng, rows, width=6)
    options = {"method": method, "k": 4, "leaf_size": 300}
    first = find(features, name="a", memory="200MiB", threads=2, **options)
    second = find(features, name="b", memory="8GiB", threads=1, **options)
    np.testing.assert_array_equal(first.index, second.index)
    np.testing.assert_array_equal(first.distance, second.distance)
    np.testing.assert_array_equal(first.order, second.order)


def test_bisection__order_keeps_neighbours_together(find, rng):
    features = rng.uniform(0, 1, (8000, 2))
    lists = find(features, k=6, leaf_size=64)
    rank = np.empty(8000, int)
    rank[lists.order] = np.arange(8000)
    # In random order the median would be near 8000 * 0.29.
    assert np.median(np.abs(rank[lists.index] - rank[:, None])) < 100


@pytest.mark.parametrize("method", ["exact", "pynndescent"])
def test_neighbors_stage__finds_an_order_without_lists_too(find, rng, method):
    features = rng.uniform(0, 1, (4000, 2))
    lists = find(features, method=method, k=6, leaf_size=64)
    rank = np.empty(4000, int)
    rank[lists.order] = np.arange(4000)
    assert np.median(np.abs(rank[lists.index] - rank[:, None])) < 100


@pytest.fixture
def scene(rng, monkeypatch):
    """9000 samples in five parts, with three runs and several blocks of each step."""
    monkeypatch.setattr(PART_SIZE, 3000)
    monkeypatch.setattr("eigenscape.neighbors.stage.RANK_ROWS", 4000)
    monkeypatch.setattr("eigenscape.neighbors.recall._ROWS", 4096)
    return clustered(rng, 9000)


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize(
    "step", ["_route_block", "_search_part", "_merge_part", "_refine_block", "_write_block"]
)
def test_bisection__goes_on_after_a_kill(find, scene, tmp_path, step, noted):
    options = {"k": 8, "leaf_size": 300, "memory": "200MiB"}
    whole = Frail()
    expected = find(scene, name="whole", executor=whole, **options)
    steps = [name for name, _ in whole.log]
    # In the midst of the step, where it has more than one task.
    tasks = steps.index(step) + (steps.count(step) + 1) // 2
    first, rest = Frail(tasks, noted=noted), Frail()
    with pytest.raises(KilledError):
        find(scene, executor=first, **options)
    lists = find(scene, executor=rest, **options)
    np.testing.assert_array_equal(lists.index, expected.index)
    np.testing.assert_array_equal(lists.distance, expected.distance)
    np.testing.assert_array_equal(lists.order, expected.order)
    assert lists.summary == expected.summary
    assert rest.log == whole.log[tasks - (not noted) :]
    assert not (tmp_path / "run" / "work").exists()
