"""Awkward data, for every method."""

import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.errors import InputError
from lists import brute_chords, check_exact, clustered, true_recall

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}
EXACT = ["lanczos-bisection", "exact"]

CASES = [
    *((method, kind) for method in EXACT for kind in KINDS),
    pytest.param("pynndescent", "dense", marks=pytest.mark.slow),
]
"""The library compiles itself first, for sparse rows longer than all of these take."""

every_method = pytest.mark.parametrize(("method", "kind"), CASES)


@every_method
def test_neighbors_stage__takes_many_duplicates(find, rng, method, kind):
    features = rng.standard_normal((3000, 8)).astype(np.float32)
    features[rng.random(3000) < 0.9] = features[0]
    found = find(KINDS[kind](features), method=method, k=10, leaf_size=100, overlap=0.2)
    assert 2600 < found.summary["copies"] < 2750
    assert true_recall(features, found) >= 0.98
    same = np.flatnonzero((features == features[0]).all(axis=1))
    np.testing.assert_array_equal(found.distance[same[1:], 0], 0)
    np.testing.assert_array_equal(found.index[same[1:], 0], same[0])


@every_method
@pytest.mark.parametrize(("value", "metric"), [(3.3, "euclidean"), (0.0, "angle")])
def test_neighbors_stage__takes_samples_that_are_all_equal(find, method, kind, value, metric):
    features = KINDS[kind](np.full((700, 4), value, np.float32))
    found = find(features, method=method, metric=metric, k=6, leaf_size=32)
    np.testing.assert_array_equal(found.distance, 0)
    assert found.summary["copies"] == 693
    assert found.summary["recall"] == 1


@every_method
def test_neighbors_stage__keeps_near_duplicates_under_an_offset(find, rng, method, kind):
    # Squared distances of 1e-4 beside squared norms of 1e9: a product shows none of them.
    features = 1e4 + 10 * clustered(rng, 1500)
    features[750:] = features[:750]
    features[750:, 0] += 1e-2
    found = find(KINDS[kind](features), method=method, k=5, leaf_size=300, overlap=0.2)
    pairs = np.r_[np.arange(750, 1500), np.arange(750)]
    # In single precision the shift is a hundredth give or take a tenth of it.
    assert (found.index[:, 0] == pairs).mean() >= 0.99
    np.testing.assert_allclose(found.distance[:, 0], 1e-2, rtol=0.1)


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    ("kind", "share", "leaf_size"),
    [("dense", 0.5, 200), ("dense", 0.02, 200), ("dense", 0.02, 2000), ("sparse", 0.5, 200)],
)
@pytest.mark.parametrize("method", EXACT)
def test_neighbors_stage__tells_neighbours_apart_in_two_far_clusters(
    find, rng, method, kind, share, leaf_size
):
    features = rng.standard_normal((1200, 3))
    features[rng.random(1200) < share] += 1e5
    features = features.astype(np.float32)
    found = find(KINDS[kind](features), method=method, k=8, leaf_size=leaf_size, overlap=0.2)
    assert true_recall(features, found) >= 0.98


@every_method
def test_neighbors_stage__bears_an_outlier(find, rng, method, kind):
    features = clustered(rng, 1200)
    features[77] = 1e6
    found = find(KINDS[kind](features), method=method, k=8, leaf_size=400, overlap=0.2)
    assert true_recall(features, found) >= 0.97


@pytest.mark.mostly_slow(2)
@every_method
def test_neighbors_stage__finds_a_line_in_many_dimensions(find, rng, method, kind):
    direction = rng.standard_normal(200)
    features = np.sort(rng.uniform(0, 1, 600))[:, None] * direction
    table = KINDS[kind](features.astype(np.float32))
    found = find(table, method=method, k=6, leaf_size=100)
    assert true_recall(features, found) >= 0.98


@every_method
@pytest.mark.parametrize(("n", "k"), [(2, 1), (40, 39)])
def test_neighbors_stage__takes_as_many_neighbours_as_there_are(find, rng, method, kind, n, k):
    features = rng.standard_normal((n, 3)).astype(np.float32)
    found = find(KINDS[kind](features), method=method, k=k)
    check_exact(features, found)
    assert found.summary["recall"] == 1


@every_method
def test_neighbors_stage__takes_two_equal_samples(find, method, kind):
    found = find(KINDS[kind](np.ones((2, 3), np.float32)), method=method, k=1)
    np.testing.assert_array_equal(found.index, [[1], [0]])
    np.testing.assert_array_equal(found.distance, [[0], [0]])


@pytest.mark.parametrize("columns", [1, 500])
@pytest.mark.parametrize(("method", "kind"), [("lanczos-bisection", "sparse"), ("exact", "dense")])
def test_neighbors_stage__takes_one_column_and_many(find, rng, method, kind, columns):
    features = rng.standard_normal((400, columns)).astype(np.float32)
    found = find(KINDS[kind](features), method=method, k=5, leaf_size=500)
    check_exact(features, found)


@pytest.mark.parametrize("method", EXACT)
def test_neighbors_stage__takes_rows_without_entries(find, rng, method):
    features = np.zeros((500, 20), np.float32)
    features[::3, 4] = np.arange(1, 168)
    found = find(sp.csr_array(features), method=method, k=8, leaf_size=64, overlap=0.5)
    check_exact(features, found)


@pytest.mark.parametrize("method", EXACT)
def test_neighbors_stage__takes_a_table_without_entries(find, method):
    table = sp.csr_array((300, 7), dtype=np.float32)
    for metric in ("euclidean", "angle"):
        found = find(table, name=metric, method=method, metric=metric, k=5, leaf_size=32)
        np.testing.assert_array_equal(found.distance, 0)


@pytest.mark.parametrize("scale", [1e-15, 1e15])
@pytest.mark.parametrize(("method", "kind"), [("lanczos-bisection", "dense"), ("exact", "sparse")])
def test_neighbors_stage__takes_units_of_any_size(find, rng, method, kind, scale):
    features = (scale * clustered(rng, 800)).astype(np.float32)
    found = find(KINDS[kind](features), method=method, k=6, leaf_size=100, overlap=0.3)
    limit = brute_chords(features, 6)[:, -1:] * (1 + 1e-5)
    assert (found.distance <= limit).mean() >= 0.97


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [3e17, -1e20, 3e38, np.inf, np.nan])
def test_neighbors_stage__refuses_features_whose_squares_overflow(find, rng, kind, value):
    features = rng.standard_normal((300, 5)).astype(np.float32)
    features[7, 3] = value
    with pytest.raises(InputError) as caught:
        find(KINDS[kind](features), k=4)
    assert caught.value.exit_status == 2
    # The value, the limit, the fix.
    for word in (f"reach {abs(value):.3g}", "5 features up to 2e+17", "scene.nodata"):
        assert word in str(caught.value)


@every_method
def test_neighbors_stage__takes_features_up_to_that(find, rng, method, kind):
    features = clustered(rng, 1200)
    # A power of 2, by which no distance changes but in its exponent.
    large = features * np.float32(2.0 ** np.floor(np.log2(2e17 / np.abs(features).max())))
    options = {"method": method, "k": 8, "leaf_size": 100, "overlap": 0.2}
    found = find(KINDS[kind](large), **options)
    assert found.summary["recall"] >= 0.97
    assert true_recall(large, found) >= 0.97
