import dask.array
import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.cluster._spectral import cluster_qr as reference_qr
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from eigenscape import eigenpairs
from eigenscape.errors import InputError, MissingExtraError
from eigenscape.learn.clustering import embedding as clusters
from eigenscape.learn.clustering.embedding import (
    cluster_qr,
    draw_rows,
    k_means,
    largest_entry,
    nearest_center,
    nearest_with_lead,
    qr_rotation,
    row_normalized,
)
from graphs import planted


def embedding(W, count):
    return eigenpairs(W, count - 1).vectors


def test_row_normalized__length_one_zero_or_nan(rng):
    vectors = rng.normal(size=(50, 4))
    vectors[3], vectors[5, 2] = 0, np.nan
    found = row_normalized(vectors)
    assert not found[3].any()
    assert np.isnan(found[5]).any()
    usual = np.delete(np.arange(50), [3, 5])
    np.testing.assert_allclose(np.linalg.norm(found[usual], axis=1), 1)
    lengths = np.linalg.norm(vectors[usual], axis=1)
    np.testing.assert_allclose(found[usual] * lengths[:, None], vectors[usual])


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_k_means__as_good_as_scikit_learn(scale):
    points, truth = make_blobs(600, 5, centers=6, cluster_std=0.7, random_state=2)
    points = (points * scale).astype(np.float32)
    found = k_means(points, 6, seed=1, starts=2)
    reference = KMeans(6, n_init=10, random_state=0).fit(points)
    assert found.inertia <= 1.01 * reference.inertia_
    assert adjusted_rand_score(reference.labels_, found.clusters) > 0.99
    assert adjusted_rand_score(truth, found.clusters) > 0.99


def test_k_means__same_answer_for_any_chunks(monkeypatch):
    monkeypatch.setattr(clusters, "_KMEANS_ROWS", 128)
    points, _ = make_blobs(200, 3, centers=4, cluster_std=3, random_state=5)
    found = [
        k_means(given, 4, seed=3, starts=1)
        for given in (points, dask.array.from_array(points, (77, 2)))
    ]
    np.testing.assert_array_equal(found[0].clusters, found[1].clusters)
    np.testing.assert_array_equal(found[0].centers, found[1].centers)


def test_k_means__equal_samples_make_one_cluster():
    found = k_means(np.ones((10, 2)), 1)
    assert found.inertia == 0
    np.testing.assert_allclose(found.centers, 1)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_k_means__of_few_distinct_samples(count):
    points = np.repeat(np.eye(3), 50, axis=0)
    found = k_means(points, count)
    assert len(found.centers) == count
    assert found.inertia == pytest.approx(0 if count > 2 else 50)


@pytest.mark.parametrize("count", [0, 11])
def test_k_means__raises_on_impossible_counts(count):
    with pytest.raises(InputError, match="10 samples"):
        k_means(np.ones((10, 2)), count)


def test_k_means__names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask_ml.cluster", None)
    with pytest.raises(MissingExtraError, match="dask-ml"):
        k_means(np.ones((10, 2)), 2)


def test_nearest_center__against_pairwise_distances(rng):
    vectors = rng.normal(size=(300, 4))
    centers, _ = kmeans_plusplus(vectors, 7, random_state=0)
    nearest, squared = nearest_center(vectors, centers)
    every = pairwise_distances(vectors, centers)
    np.testing.assert_array_equal(nearest, every.argmin(axis=1))
    np.testing.assert_allclose(squared, every.min(axis=1) ** 2, atol=1e-12)


def test_cluster_qr__against_scikit_learn(rng):
    W, truth = planted(rng, [40, 60, 50])
    vectors = embedding(W, 3)
    found = cluster_qr(vectors)
    np.testing.assert_array_equal(found, reference_qr(vectors))
    assert adjusted_rand_score(truth, found) > 0.95


def test_cluster_qr__of_drawn_rows_agrees(rng, monkeypatch):
    monkeypatch.setattr(clusters, "ROW_TILE", 50)
    W, truth = planted(rng, [120, 80, 150, 100])
    vectors = embedding(W, 4)
    lazy = dask.array.from_array(vectors, (90, 4))
    found = cluster_qr(lazy, most_rows=60, seed=4)
    assert adjusted_rand_score(truth, found) > 0.95
    np.testing.assert_array_equal(found, cluster_qr(vectors, most_rows=60, seed=4))


def test_draw_rows__by_leverage(rng):
    leverage = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    drawn = np.concatenate([draw_rows(leverage, 1, rng) for _ in range(3000)])
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 3000, leverage / 6, atol=0.03)
    assert draw_rows(leverage, 3, rng).tolist() == [1, 2, 3]


def test_qr_rotation__is_orthogonal_and_undoes_rotations(rng):
    truth = rng.integers(0, 4, 100)
    truth[:4] = range(4)
    indicators = np.eye(4)[truth] / np.sqrt(np.bincount(truth))
    mixed = indicators @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    rotation = qr_rotation(mixed)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-12)
    clusters, lead = largest_entry(mixed.astype(np.float32), rotation)
    assert adjusted_rand_score(truth, clusters) == 1
    np.testing.assert_allclose(lead, 1, atol=1e-5)


def test_largest_entry__lead_over_the_next(monkeypatch):
    monkeypatch.setattr(clusters, "ROW_TILE", 2)
    rows = np.array([[1.0, -4.0, 3.0], [0.0, 0.0, 0.0], [2.0, 2.0, 0.0], [5.0, 0.0, 0.0]])
    found, lead = largest_entry(rows, np.eye(3))
    assert found.tolist() == [1, 0, 0, 0]
    np.testing.assert_allclose(lead, [0.25, 0, 0, 1])
    assert largest_entry(rows[:, :1], np.eye(1))[1].tolist() == [1, 1, 1, 1]


def test_nearest_with_lead__is_the_simplified_silhouette(rng):
    points, centers = rng.normal(size=(200, 3)), rng.normal(size=(5, 3))
    found, lead = nearest_with_lead(points, centers)
    distances = np.sort(pairwise_distances(points, centers), axis=1)
    np.testing.assert_array_equal(found, nearest_center(points, centers)[0])
    np.testing.assert_allclose(lead, 1 - distances[:, 0] / distances[:, 1], atol=1e-5)
    assert nearest_with_lead(points, centers[:1])[1].tolist() == [1] * 200
    # Two centres in one place: no row is nearer to either.
    assert not nearest_with_lead(points, centers[[0, 0]])[1].any()
