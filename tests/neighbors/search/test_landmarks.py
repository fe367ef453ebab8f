"""Landmarks: which samples they are, and lists among them against all distances."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from eigenscape.errors import JobError
from eigenscape.job.jobfile import parse_job
from eigenscape.neighbors.method import neighbor_method
from eigenscape.neighbors.methods.exact import Exact
from harness import Frail, Harness, KilledError
from lists import as_chords, as_points, find_lists, put_features


@pytest.fixture
def groups(rng):
    """Return 600 samples around 30 centres far apart."""
    centres = rng.uniform(-50, 50, (30, 6))
    return (np.repeat(centres, 20, axis=0) + rng.normal(0, 0.1, (600, 6))).astype(np.float32)


def run(path, features, **options):
    harness = Harness(path, neighbors={"method": "landmarks", **options})
    put_features(harness, features)
    return harness, harness.run("neighbors")


def test_landmarks__lie_where_samples_do(tmp_path, groups):
    harness, summary = run(tmp_path / "a", groups, k=4, landmarks=60)
    landmark = harness["neighbors/landmark"]
    assert summary["landmarks"] == len(landmark) == 60
    assert (np.diff(landmark) > 0).all()
    drawn = np.random.default_rng(0).choice(600, 60, replace=False)
    nearest = [cdist(groups, groups[chosen]).min(axis=1).mean() for chosen in (landmark, drawn)]
    assert nearest[0] < 0.6 * nearest[1]


def test_landmarks__follow_their_seed(tmp_path, groups):
    found = [
        run(tmp_path / str(n), groups, k=4, landmarks=60, seed=seed)[0]["neighbors/landmark"]
        for n, seed in enumerate((1, 1, 2))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


@pytest.mark.parametrize("metric", ["euclidean", "angle"])
@pytest.mark.parametrize("sparse", [False, True])
def test_landmarks__lists_are_the_nearest_landmarks(tmp_path, rng, metric, sparse):
    features = rng.uniform(0, 1, (500, 12)).astype(np.float32)
    features[rng.random(features.shape) < 0.5] = 0
    given = sp.csr_array(features) if sparse else features
    harness, _ = run(tmp_path / "run", given, k=5, landmarks=40, metric=metric)
    landmark, index = harness["neighbors/landmark"], harness["neighbors/index"]
    assert np.isin(index, landmark).all()
    assert (index != np.arange(500)[:, None]).all()
    points = as_points(features, metric)
    away = cdist(points, points[landmark])
    away[landmark, np.arange(40)] = np.inf
    expected = np.sort(away, axis=1)[:, :5]
    found = as_chords(harness["neighbors/distance"], metric)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_landmarks__of_all_samples_are_exact_lists(tmp_path, groups):
    harness, _ = run(tmp_path / "run", groups, k=6, landmarks=600)
    exact = find_lists(tmp_path / "exact", groups, method="exact", k=6)
    np.testing.assert_array_equal(harness["neighbors/landmark"], np.arange(600))
    np.testing.assert_array_equal(harness["neighbors/index"], exact.index)
    np.testing.assert_array_equal(harness["neighbors/distance"], exact.distance)


def test_landmarks__copies_name_whom_they_stand_beside_only_if_it_is_one(tmp_path, rng):
    features = rng.uniform(0, 1, (300, 4)).astype(np.float32)
    features[:20], features[20:40] = features[0], features[20]
    harness, _ = run(tmp_path / "run", features, k=6, landmarks=50)
    landmark, index = harness["neighbors/landmark"], harness["neighbors/index"]
    assert np.isin(index, landmark).all()
    for first in (0, 20):
        same = index[first : first + 20]
        expected = same[0] if first not in landmark else np.append(first, same[0, :-1])
        np.testing.assert_array_equal(same[1:], np.tile(expected, (19, 1)))


def test_landmarks__more_than_there_are_different_samples(tmp_path):
    features = np.repeat(np.arange(40.0), 2)[:, None].astype(np.float32)
    harness, _ = run(tmp_path / "run", features, k=8, landmarks=60)
    assert len(np.unique(harness["neighbors/landmark"])) == 60


def test_landmarks__go_on_after_a_kill(tmp_path, groups, monkeypatch):
    monkeypatch.setattr("eigenscape.neighbors.search.landmarks.TASK_RANKS", 128)
    whole, _ = run(tmp_path / "whole", groups, k=4, landmarks=60)
    log = Frail()
    options = {"neighbors": {"method": "landmarks", "k": 4, "landmarks": 60}}
    count = Harness(tmp_path / "count", **options)
    put_features(count, groups)
    count.run("neighbors", log)
    for left in (len(log.log) - 3, len(log.log) - 1):
        killed = Harness(tmp_path / str(left), **options)
        put_features(killed, groups)
        with pytest.raises(KilledError):
            killed.run("neighbors", Frail(left))
        killed.run("neighbors")
        for name in ("landmark", "index", "distance"):
            np.testing.assert_array_equal(killed[f"neighbors/{name}"], whole[f"neighbors/{name}"])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"graph": {"spatial": {}}}, "[graph.spatial]"),
        ({"graph": {"potential": {"pixels": [1]}}}, "[graph.potential]"),
        ({"graph": {"components": "each"}}, 'graph.components = "each"'),
    ],
)
def test_check_landmarks__says_what_cannot_be(table, words):
    job = parse_job({"scene": {"path": "a"}, "neighbors": {"method": "landmarks"}, **table})
    with pytest.raises(JobError) as caught:
        neighbor_method(job).check_graph(job.graph)
    assert words in str(caught.value)
    Exact().check_graph(job.graph)


def test_options__fewer_landmarks_than_neighbours():
    table = {"scene": {"path": "a"}, "neighbors": {"method": "landmarks", "landmarks": 12}}
    with pytest.raises(JobError, match=r"landmarks = 12.*k = 12.*13 or more"):
        parse_job(table)
