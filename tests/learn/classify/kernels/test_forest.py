import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from eigenscape.learn.classify.kernels import forest
from eigenscape.learn.classify.kernels.forest import grow, shares_of_votes
from inputs.training import groups


@pytest.mark.parametrize(
    ("thresholds", "grower"), [("best", RandomForestClassifier), ("random", ExtraTreesClassifier)]
)
def test_shares__are_the_votes_of_the_same_trees_in_scikit_learn(rng, thresholds, grower):
    rows, of = groups(rng, 4)
    new, _ = groups(rng, 4)
    found = grow(rows, of, 5, thresholds, np.random.default_rng(3))
    seed = int(np.random.default_rng(3).integers(2**31))
    oracle = grower(5, random_state=seed).fit(rows, of)
    # Leaves hold one class each, so that probabilities are votes.
    for some in (rows, new):
        np.testing.assert_allclose(
            shares_of_votes(found, some, 4), oracle.predict_proba(some), atol=1e-6
        )


@pytest.mark.parametrize("thresholds", ["best", "random"])
def test_grow__leaves_warnings_of_other_threads_alone(rng, monkeypatch, thresholds):
    rows, of = groups(rng, 3)
    monkeypatch.setattr(warnings, "resetwarnings", lambda: pytest.fail("filters are those of all"))
    assert len(grow(rows, of, 6, thresholds, rng).roots) == 6


@pytest.mark.parametrize("thresholds", ["best", "random"])
def test_shares__about_as_accurate_as_a_whole_forest_of_scikit_learn(rng, thresholds):
    rows, of = groups(rng, 5, rows=200)
    new, expected = rows[500:], of[500:]
    called = shares_of_votes(grow(rows[:500], of[:500], 60, thresholds, rng), new, 5).argmax(axis=1)
    oracle = RandomForestClassifier(60, random_state=0).fit(rows[:500], of[:500])
    assert (called == expected).mean() > oracle.score(new, expected) - 0.05


@pytest.mark.parametrize("tile", [2**21, 50])
def test_shares__sparse_rows_are_what_they_are_dense(rng, monkeypatch, tile):
    monkeypatch.setattr(forest, "_TILE_ENTRIES", tile)
    rows, of = groups(rng, 3, columns=40)
    words = scipy.sparse.csr_array(np.maximum(rows, 0))
    words.indices, words.indptr = words.indices.astype(np.int64), words.indptr.astype(np.int64)
    dense, sparse = (
        grow(given, of, 12, "best", np.random.default_rng(0)) for given in (words.toarray(), words)
    )
    np.testing.assert_array_equal(
        shares_of_votes(sparse, words, 3), shares_of_votes(sparse, words.toarray(), 3)
    )
    called = [shares_of_votes(dense, words.toarray(), 3), shares_of_votes(sparse, words, 3)]
    assert (called[0].argmax(axis=1) == called[1].argmax(axis=1)).mean() > 0.95


@given(cut=st.integers(1, 1199), trees=st.integers(1, 12))
def test_shares__any_blocks_the_same_bits(cut, trees):
    rng = np.random.default_rng(1)
    rows, of = groups(rng, 4, rows=300)
    found = grow(rows[:100], of[:100], trees, "random", rng)
    parts = [shares_of_votes(found, part, 4) for part in (rows[:cut], rows[cut:])]
    whole = shares_of_votes(found, rows, 4)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_allclose(whole.sum(axis=1), 1, atol=1e-6)


def test_grow__a_value_at_a_threshold_goes_where_scikit_learn_sends_it():
    # Thresholds lie between, in double: the single nearest to one can be the larger of its neighbours.
    low = np.float32(4)
    rows = np.array([[low], [np.nextafter(low, np.float32(5))]], np.float32)
    found = grow(rows, np.array([0, 1]), 20, "random", np.random.default_rng(0))
    np.testing.assert_array_equal(shares_of_votes(found, rows, 2), np.eye(2, dtype=np.float32))


def test_grow__one_class_is_called_everywhere(rng):
    rows, _ = groups(rng, 2)
    found = grow(rows, np.full(len(rows), 2), 3, "best", rng)
    np.testing.assert_array_equal(shares_of_votes(found, rows, 4)[:, 2], 1)
