"""Exact lists: against scikit-learn, and what the balls around tiles let pass over."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from eigenscape.neighbors.search import exhaustive
from lists import as_chords, as_points, check_exact, clustered, words

TILE = 64


@pytest.fixture
def looked_at(monkeypatch):
    """Count the tiles that blocks of queries are compared with; tiles and blocks are small."""
    seen = []

    def count(push):
        def counted(left, queries, right, numbers, *lists):
            seen.append((int(queries[0]), int(numbers[0])))
            return push(left, queries, right, numbers, *lists)

        return counted

    monkeypatch.setattr(exhaustive, "TILE_ROWS", TILE)
    monkeypatch.setattr(exhaustive, "QUERY_ROWS", TILE // 4)
    monkeypatch.setattr(exhaustive, "push_tile", count(exhaustive.push_tile))
    return seen


def share_of_tiles(seen, n):
    assert len(set(seen)) == len(seen)
    return len(seen) / (-(-n // TILE) * -(-n // (TILE // 4)))


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    ("kind", "metric"), [("dense", "euclidean"), ("sparse", "euclidean"), ("sparse", "angle")]
)
def test_exact__equals_sklearn(find, rng, kind, metric):
    n = 2500  # two tiles
    # One vector in a thousand is 0, and has no angle that scikit-learn knows.
    features = words(rng, n, 200, 0.2) if kind == "sparse" else clustered(rng, n)
    assert np.linalg.norm(as_points(features), axis=1).min() > 0
    found = find(features, method="exact", metric=metric, k=10)
    peer = NearestNeighbors(
        n_neighbors=10, algorithm="brute", metric="cosine" if metric == "angle" else "euclidean"
    ).fit(features.astype(np.float64))
    expected, index = peer.kneighbors()
    if metric == "angle":
        expected = np.sqrt(2 * expected)  # of 1 - cosine, the chord
    np.testing.assert_allclose(as_chords(found.distance, metric), expected, rtol=1e-5, atol=1e-6)
    # Up to distances that agree to the last digits of single precision.
    assert (found.index != index).mean() < 2e-3
    assert found.summary["recall"] == 1


def test_exact__lists_of_equal_distances_go_by_number(find):
    features = np.stack(np.meshgrid(np.arange(20), np.arange(20)), -1).reshape(-1, 2)
    found = find(features, method="exact", k=7)
    check_exact(features, found)
    ties = np.diff(found.distance, axis=1) == 0
    assert ties.mean() > 0.5
    assert (np.diff(found.index, axis=1)[ties] > 0).all()


def test_exact__equally_near_samples_do_not_depend_on_the_order_by_place(find, rng):
    features = rng.integers(0, 5, (1500, 4)).astype(np.float32)
    one, other = (find(features, method="exact", k=6, leaf_size=size) for size in (32, 200))
    np.testing.assert_array_equal(one.distance, other.distance)
    np.testing.assert_array_equal(one.index, other.index)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_exact__passes_over_most_tiles_of_a_plane(find, rng, looked_at, kind):
    n = 2000 if kind == "dense" else 1200
    features = rng.uniform(0, 1, (n, 2)).astype(np.float32)
    features = sp.csr_array(features) if kind == "sparse" else features
    found = find(features, method="exact", k=8, leaf_size=64)
    check_exact(features, found)
    assert share_of_tiles(looked_at, n) < 0.6


@pytest.mark.slow
def test_exact__passes_over_tiles_on_a_plane_in_many_dimensions(find, rng, looked_at):
    features = rng.uniform(0, 1, (2500, 2)) @ rng.standard_normal((2, 100))
    found = find(features, method="exact", k=8, leaf_size=64)
    check_exact(features, found)
    assert share_of_tiles(looked_at, 2500) < 0.5


@pytest.mark.slow
def test_exact__passes_over_other_clusters(find, rng, looked_at):
    centres = 30 * rng.standard_normal((20, 12))
    features = centres[rng.integers(0, 20, 2500)] + rng.standard_normal((2500, 12))
    found = find(features, method="exact", k=8, leaf_size=64)
    check_exact(features, found)
    assert share_of_tiles(looked_at, 2500) < 0.5


def test_exact__passes_over_nothing_where_all_tiles_overlap(find, rng, looked_at):
    features = rng.standard_normal((1500, 40))
    found = find(features, method="exact", k=8, leaf_size=64)
    check_exact(features, found)
    assert share_of_tiles(looked_at, 1500) == 1


def test_exact__passes_over_tiles_by_angle(find, rng, looked_at):
    # Directions on a circle, in three dimensions and of any length.
    turn = rng.uniform(0, 2 * np.pi, 2500)
    features = np.column_stack([np.cos(turn), np.sin(turn), 0 * turn])
    features *= np.exp(rng.standard_normal((2500, 1)))
    found = find(features, method="exact", metric="angle", k=8, leaf_size=64)
    check_exact(features, found, "angle")
    assert share_of_tiles(looked_at, 2500) < 0.2


@pytest.mark.slow
def test_exact__bounds_hold_under_an_offset(find, rng, looked_at):
    # Neighbours at 1e-2 beside norms of 1e3: their products differ by less than rounding.
    features = np.full((1000, 3), 1e3, np.float32)
    features[:, 0] += rng.uniform(0, 4, 1000)
    for table in (features, sp.csr_array(features)):
        looked_at.clear()
        found = find(table, name=type(table).__name__, method="exact", k=6, leaf_size=64)
        check_exact(table, found)
        dense = isinstance(table, np.ndarray)
        # Bounds of sparse rows come from norms, and say little here; they must not say too much.
        assert (share_of_tiles(looked_at, 1000) < 0.4) == dense
