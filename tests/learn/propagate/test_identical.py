import numpy as np
import pytest

import eigenscape
from eigenscape.labels.training import Labelled
from eigenscape.learn.propagate.identical import Identical

METHODS = [
    {"method": "interpolated"},
    {"method": "interpolated", "prior": "uniform"},
    {"method": "tikhonov"},
    {"method": "tikhonov", "power": 2, "gamma": 1e-3},
    {"method": "tikhonov", "kernel": "heat", "gamma": 1e-2},
    {"method": "geodesic-nn"},
    {"method": "poisson"},
    {"method": "poisson", "prior": "uniform"},
]


@pytest.fixture
def table():
    """Forty groups of about 15 identical samples and 100 others; labels of which a fifth are wrong."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 40, 600)
    X = np.vstack([rng.normal(size=(40, 4))[group], rng.normal(size=(100, 4))]).astype(np.float32)
    labels = 1 + ((X[:, 0] > 0) ^ (rng.random(700) < 0.2))
    labels[rng.random(700) < 0.7] = 0
    return X, labels, group


def classes(folder, X, labels, method, *, threads=2, **tables):
    job = eigenscape.job_for(
        X, labels, directory=folder, features={"method": "none"}, spectrum={"dimension": 4},
        neighbors={"method": "exact"}, learn={"trials": 2, **method}, limits={"threads": threads},
        output={"formats": []}, **tables,
    )  # fmt: skip
    return eigenscape.open_run(eigenscape.run(job))["class"].values.ravel()


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("method", METHODS[::-1], ids=str)
def test_identical__the_order_of_the_samples_does_not_matter(tmp_path, table, method):
    X, labels, group = table
    expected = classes(tmp_path / "as-they-are", X, labels, method)
    for number in np.unique(group):
        assert len(set(expected[:600][group == number])) == 1
    order = np.random.default_rng(0).permutation(len(X))
    found = classes(tmp_path / "another", X[order], labels[order], method, threads=1)
    np.testing.assert_array_equal(found, expected[order])


@pytest.mark.parametrize("method", ["interpolated", "tikhonov", "geodesic-nn", "poisson"])
def test_identical__blocks_do_not_matter(tmp_path, table, method, monkeypatch):
    X, labels, _ = table
    expected = classes(tmp_path / "whole", X, labels, {"method": method})
    for module in ("learn.propagate.fields", "learn.propagate.kernels.columnlabels"):
        monkeypatch.setattr(f"eigenscape.{module}.ROW_TILE", 32)
    found = classes(tmp_path / "tiles", X, labels, {"method": method}, threads=1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("wrong", [0, 30])
@pytest.mark.parametrize("method", ["interpolated", "tikhonov", "geodesic-nn", "poisson"])
def test_identical__one_wrong_label_of_many_does_not_decide(tmp_path, rng, method, wrong):
    X = np.vstack([np.zeros((60, 4)), rng.normal(size=(60, 4)), rng.normal(size=(60, 4)) + 6])
    labels = np.zeros(180, int)
    labels[1:20], labels[140:150], labels[wrong] = 1, 2, 2
    found = classes(tmp_path, X.astype(np.float32), labels, {"method": method, "train": "all"})
    assert set(found[:60]) == {1}
    assert (found[60:120] == 1).mean() > 0.9


def test_identical__pixels_with_edges_to_their_neighbours_keep_their_labels(tmp_path, rng):
    image = rng.normal(size=(12, 12, 4)).astype(np.float32)
    image[:, :8] = 0
    labels = np.zeros((12, 12), int)
    labels[:, :4], labels[4:8, 4:8], labels[:4, 8:] = 1, 2, 2
    labels[0, 0] = 2
    found = classes(
        tmp_path, image, labels, {"method": "interpolated", "train": "all"}, graph={"spatial": {}}
    )
    # The first pixel represents 96, of whose labels 47 are of class 1 and 17 of class 2.
    assert found[0] == 1
    given = labels.ravel()
    np.testing.assert_array_equal(found[1:][given[1:] > 0], given[1:][given[1:] > 0])


def test_identical__sources_of_pixels_with_edges_to_their_neighbours_count_once(
    tmp_path, rng, monkeypatch
):
    image = rng.normal(size=(12, 12, 4)).astype(np.float32)
    image[:, :8] = 0
    labels = np.zeros((12, 12), int)
    labels[:, :2], labels[4:8, 4:8], labels[:4, 8:] = 1, 2, 2
    tables = {"method": {"method": "poisson", "train": "all"}, "graph": {"spatial": {}}}
    found = classes(tmp_path / "pooled", image, labels, **tables)
    monkeypatch.setattr("eigenscape.learn.methods.poisson.Poisson.pools", False)
    np.testing.assert_array_equal(classes(tmp_path / "own", image, labels, **tables), found)


def test_pool__counts_training_labels_alone(tmp_path):
    for name, values in {
        "member": [1, 2, 4, 5, 6, 9], "group": [0, 0, 0, 1, 1, 0], "representative": [1, 2, 5],
    }.items():  # fmt: skip
        np.save(tmp_path / f"{name}.npy", values)
    identical = Identical(tmp_path, same_edges=True)
    sample = np.array([0, 2, 4, 6, 9])
    train = np.array([[1, 1, 1, 0, 1], [1, 0, 0, 1, 0]], bool)
    labelled = Labelled(sample, np.array([0, 0, 1, 1, 1]), np.array([3, 4], np.uint16), train)
    pool = identical.pool(sample)
    np.testing.assert_array_equal(pool.representative, [1, 2, 5])
    np.testing.assert_array_equal(pool.moved, [False, True, True, True, True])
    mean, number = pool.means(labelled, 0)
    np.testing.assert_allclose(mean, [[1 / 3, 2 / 3], [1 / 3, 2 / 3], [np.nan, np.nan]])
    np.testing.assert_allclose(number, [1.5, 1.5, 0])
    mean, number = pool.means(labelled, 1)
    np.testing.assert_allclose(mean, [[np.nan, np.nan], [np.nan, np.nan], [0, 1]])
    np.testing.assert_allclose(number, [0, 0, 1])
    for samples, first in zip(*identical.stand_ins(), strict=True):
        assert first == (5 if samples in (5, 6) else 1)
