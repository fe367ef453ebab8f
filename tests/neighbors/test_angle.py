"""Angles between vectors, as distances."""

import numpy as np
import pytest
import scipy.sparse as sp

from harness import Harness, Notes
from lists import assert_same, check_exact, clustered, put_features, true_recall, words

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["lanczos-bisection", "exact"])
def test_angle__zeros_are_at_a_right_angle_to_all_but_zeros(find, rng, kind, method):
    features = rng.standard_normal((150, 4))
    features[[5, 120]] = 0
    found = find(KINDS[kind](features), method=method, metric="angle", k=149)
    check_exact(features, found, "angle")
    for zero, other in ((5, 120), (120, 5)):
        assert found.index[zero, 0] == other
        assert found.distance[zero, 0] == 0
        np.testing.assert_allclose(found.distance[zero, 1:], np.pi / 2, rtol=1e-6)
    places = found.index[0] == 120
    np.testing.assert_allclose(found.distance[0][places], np.pi / 2, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [0, 2, 40])
def test_angle__zeros_are_told(tmp_path, rng, kind, zeros):
    features = rng.standard_normal((200, 4))
    features[3 : 3 + zeros] = 0
    for metric in ("angle", "euclidean"):
        harness = Harness(tmp_path / metric, neighbors={"metric": metric, "k": 8})
        put_features(harness, KINDS[kind](features))
        reporter = Notes()
        harness.run("neighbors", reporter=reporter)
        told = [note for note in reporter.notes if "only zeros as features" in note]
        assert len(told) == (metric == "angle" and zeros > 0)
        assert all(note.startswith(f"{zeros} of 200 samples") for note in told)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["lanczos-bisection", "radius"])
def test_angle__does_not_know_the_length_of_vectors(find, rng, kind, method):
    features = clustered(rng, 1000)
    options = {"method": method, "metric": "angle", "k": 8, "leaf_size": 200}
    options |= {"radius": 0.3} if method == "radius" else {}
    first = find(KINDS[kind](features), name="first", **options)
    # Powers of 2 change no digit.
    powers = np.ldexp(1.0, rng.integers(-60, 60, (1000, 1)))
    assert_same(first, find(KINDS[kind](features * powers), name="powers", **options))


@pytest.mark.parametrize("kind", KINDS)
def test_angle__is_the_same_for_other_lengths_up_to_rounding(find, rng, kind):
    features = clustered(rng, 1000)
    lengths = np.exp(3 * rng.standard_normal((1000, 1)))
    options = {"method": "exact", "metric": "angle", "k": 8}
    one = find(KINDS[kind](features), name="one", **options)
    other = find(KINDS[kind](features * lengths), name="other", **options)
    np.testing.assert_allclose(one.distance, other.distance, rtol=1e-5, atol=1e-6)
    assert (one.index != other.index).mean() < 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["lanczos-bisection", "exact"])
def test_angle__bears_very_short_and_very_long_vectors(find, rng, kind, method):
    features = rng.standard_normal((800, 5))
    lengths = np.array([1e-40, 1e-30, 1e-3, 1.0, 1e30])[rng.integers(0, 5, (800, 1))]
    table = KINDS[kind]((features * lengths).astype(np.float32))
    found = find(table, method=method, metric="angle", k=6)
    check_exact(table, found, "angle")


def test_angle__sparse_entries_that_vanish_beside_others_do_no_harm(find, rng):
    features = words(rng, 600).toarray()
    features[3, :3] = 1e-30, 1e30, 1e-20
    features[[8, 9]] = 0
    table = sp.csr_array(features)
    check_exact(table, find(table, metric="angle", k=6), "angle")


@pytest.mark.parametrize("kind", KINDS)
def test_angle__bisection_recalls_text(find, rng, kind):
    # Words of twelve topics, each with its own frequencies.
    topics = rng.dirichlet(np.full(100, 0.05), 12)
    counts = np.stack([rng.multinomial(60, topics[topic]) for topic in rng.integers(0, 12, 2000)])
    table = KINDS[kind](counts.astype(np.float32))
    found = find(table, metric="angle", k=8, leaf_size=300)
    assert true_recall(table, found, "angle") > 0.9


def test_angle__keeps_digits_that_a_cosine_loses(find, rng):
    turn = np.sort(rng.uniform(0, 1e-4, 400))
    features = np.column_stack([np.ones(400), turn]).astype(np.float32)
    found = find(features, method="exact", metric="angle", k=5)
    wide = np.arctan(features[:, 1].astype(np.float64))
    expected = np.sort(np.abs(wide[:, None] - wide), axis=1)[:, 1:6]
    np.testing.assert_allclose(found.distance, expected, atol=2e-7)
