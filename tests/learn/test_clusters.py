import dask.array
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.cluster._spectral import cluster_qr as reference_qr
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances

from eigenscape import eigenpairs
from eigenscape.errors import InputError, MissingExtraError
from eigenscape.learn import clusters
from eigenscape.learn.clusters import (
    cluster_qr,
    draw_rows,
    k_means,
    largest_entry,
    nearest_center,
    qr_rotation,
    recursive_cut,
    row_normalized,
)
from eigenscape.learn.cuts import as_block, sweep_cuts


def planted(rng, sizes, within=0.5, between=0.02):
    """Return a graph of communities and the community of each row, in random order."""
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    chance = np.where(truth[:, None] == truth, within, between)
    edges = np.triu(rng.random(chance.shape) < chance, 1)
    return scipy.sparse.csr_array((edges | edges.T).astype(float)), truth


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
    assert adjusted_rand_score(truth, largest_entry(mixed.astype(np.float32), rotation)) == 1


def test_recursive_cut__finds_communities(rng):
    W, truth = planted(rng, [40, 50, 30, 60])
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 4)
    assert adjusted_rand_score(truth, found) > 0.95
    assert len(prices) == 3


def test_recursive_cut__stops_at_the_limit(rng):
    W, truth = planted(rng, [50, 50, 50], within=0.6, between=0.01)
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 100, limit=0.3)
    assert adjusted_rand_score(truth, found) == 1
    assert (prices < 0.3).all()


def test_recursive_cut__pieces_first_and_down_to_single_rows():
    pieces = [nx.path_graph(2), nx.complete_graph(4), nx.empty_graph(1)]
    graph = nx.disjoint_union_all(pieces)
    W = scipy.sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    blocks = [as_block(W)]
    found, prices = recursive_cut(blocks, W.sum(axis=1), 3)
    assert adjusted_rand_score([0, 0, 1, 1, 1, 1, 2], found) == 1
    assert prices.tolist() == [0, 0]
    assert len(np.unique(recursive_cut(blocks, W.sum(axis=1), 100)[0])) == 7


def test_recursive_cut__keeps_specks_from_using_up_the_count(rng):
    W, truth = planted(rng, [40, 50, 60])
    specks = scipy.sparse.csr_array((5, 5))
    W = scipy.sparse.block_array([[W, None], [None, specks]]).tocsr()
    found, _ = recursive_cut([as_block(W)], W.sum(axis=1), 3, least=10)
    assert adjusted_rand_score(truth, found[:150]) > 0.95
    found, _ = recursive_cut([as_block(W)], W.sum(axis=1), 3)
    assert adjusted_rand_score(truth, found[:150]) == 0


def test_recursive_cut__part_without_thresholds_stays_whole():
    W = scipy.sparse.csr_array(np.ones((6, 6)) - np.eye(6))
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 3, lambda rows: np.zeros(len(rows)))
    assert not found.any()
    assert len(prices) == 0


def test_recursive_cut__takes_the_cheapest_part_by_the_callers_vectors(rng):
    W, _ = planted(rng, [20, 20, 20])
    asked = []

    def by_number(members):
        asked.append(members)
        return members.astype(float)

    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 2, by_number)
    first = sweep_cuts([as_block(W)], W.sum(axis=1), np.arange(60.0)).ncut
    np.testing.assert_array_equal(found == 1, first.inside)
    np.testing.assert_array_equal(asked[0], np.arange(60))
    # Neither of the parts is asked about that are not going to be split.
    assert len(asked) == 1
    assert prices.tolist() == [first.ncut]


def test_recursive_cut__into_one():
    W = scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3))
    found, prices = recursive_cut([as_block(W)], W.sum(axis=1), 1)
    assert not found.any()
    assert len(prices) == 0
