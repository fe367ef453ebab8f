import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.neighbors.kernels.descent import descend
from eigenscape.neighbors.kernels.partition import Leaves, search_part
from lists import chords, clustered, true_recall

pytestmark = pytest.mark.slow  # the library is compiled first

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


def check_descent(features, index, distance):
    """No self, none missing, sorted by (distance, number), squared distances by differences."""
    rows = np.arange(len(features))[:, None]
    assert index.min() >= 0
    assert (index != rows).all()
    assert (np.diff(np.sort(index, axis=1), axis=1) > 0).all()
    squared = ((features[index] - features[:, None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distance, squared, rtol=1e-5)
    steps = np.diff(distance, axis=1)
    assert (steps >= 0).all()
    assert (np.diff(index, axis=1)[steps == 0] > 0).all()


@pytest.mark.exhaustive
@pytest.mark.slow
def test_descend__finds_most_neighbours(rng):
    features = clustered(rng, 1500, 8)
    index, distance = descend(features, 10, 2, "int32")
    assert (index.dtype, distance.dtype) == (np.int32, np.float32)
    check_descent(features, index, distance)
    limit = np.sort(chords(features.astype(np.float64)), axis=1)[:, 9:10]
    assert (np.sqrt(distance) <= limit * (1 + 1e-5)).mean() > 0.97


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (40, 39), (60, 5)])
def test_descend__of_few_rows_is_exact(rng, n, k):
    features = rng.integers(-9, 9, (n, 3)).astype(np.float32)
    index, distance = descend(features, k, 2, "int64")
    assert index.dtype == np.int64
    check_descent(features, index, distance)
    squared = chords(features.astype(np.float64)) ** 2
    np.testing.assert_array_equal(distance, np.sort(squared.round(), axis=1)[:, :k])


class Careless:
    """Finds some neighbours in no order, itself and nothing among them."""

    def __init__(self, rows, *, n_neighbors, random_state, n_jobs):
        assert (random_state, n_jobs) == (0, 1)
        n = rows.shape[0]
        found = np.random.default_rng(3).integers(-1, n, (n, n_neighbors)).astype(np.int32)
        found[: n // 2, 2:] = -1
        self.rows, self.neighbor_graph = rows, (found, np.zeros(found.shape))


@pytest.mark.parametrize("kind", KINDS)
def test_descend__makes_lists_of_whatever_it_is_told(rng, monkeypatch, kind):
    # For sparse rows pynndescent compiles for as long again: a stand-in does.
    monkeypatch.setattr("pynndescent.NNDescent", Careless)
    features = rng.integers(-9, 9, (700, 5)).astype(np.float32)
    index, distance = descend(KINDS[kind](features), 6, 1, "int32")
    check_descent(features, index, distance)
    # Lists that were left short are complete, and then they are exact.
    squared = np.sort(chords(features.astype(np.float64)) ** 2, axis=1)[:, :6]
    np.testing.assert_array_equal(distance[:350], squared[:350].round())


def test_descend__completes_lists_that_it_leaves_short(rng):
    # NN-descent fills lists with equals of the sample, and with nothing.
    features = rng.standard_normal((900, 4)).astype(np.float32)
    features[rng.random(900) < 0.9] = features[0]
    index, distance = descend(features, 8, 2, "int32")
    check_descent(features, index, distance)


def test_descend__takes_more_threads_than_cores(find, rng):
    features = clustered(rng, 300)
    found = find(features, method="pynndescent", k=5, threads=500)
    expected = find(features, method="pynndescent", k=5, threads=1, name="one")
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.distance, expected.distance)


def test_pynndescent__recalls_clustered_data(find, rng):
    features = clustered(rng, 3000)
    found = find(features, method="pynndescent", k=12)
    assert found.summary["parts"] == 1
    assert true_recall(features, found) >= 0.97


@pytest.mark.parametrize("metric", ["euclidean", "angle"])
def test_bisection__may_search_its_parts_by_descent(find, rng, small_blocks, metric):
    features = clustered(rng, 2000)
    found = find(features, searcher="pynndescent", metric=metric, k=8, leaf_size=300)
    assert found.summary["parts"] == 4
    assert true_recall(features, found, metric) >= 0.97


@pytest.mark.parametrize("n", [2, 3, 50])
def test_search_part__by_descent_is_exact_for_few_samples(rng, n):
    features = rng.standard_normal((n, 12)).astype(np.float32)
    numbers = np.sort(rng.choice(10_000, n, replace=False)).astype(np.int32)
    index, distance, place = search_part(
        features, numbers, Leaves(6, 0.1, 32, searcher="pynndescent")
    )
    away = chords(features.astype(np.float64))
    expected = np.argsort(away, axis=1)[:, : min(6, n - 1)]
    np.testing.assert_array_equal(index[:, : n - 1], numbers[expected])
    squared = np.take_along_axis(away, expected, axis=1) ** 2
    np.testing.assert_allclose(distance[:, : n - 1], squared, rtol=1e-5)
    assert (index[:, n - 1 :] == -1).all()
    np.testing.assert_array_equal(np.sort(place), np.arange(n))
