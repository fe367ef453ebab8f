import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.decisions import FLOOR, Calibration, choose, decide, probabilities


def shares(seed, rows=40, classes=5):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), rows).astype(np.float32)


@given(seed=st.integers(0, 999), classes=st.integers(1, 6))
def test_decide__class_probability_runner_up_and_entropy(seed, classes):
    scores = shares(seed, classes=classes)
    found = decide(scores, Calibration.none(classes))
    p = np.clip(scores, FLOOR, 1).astype(float)
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(found.classes, scores.argmax(axis=1))
    np.testing.assert_allclose(found.confidence, p.max(axis=1), rtol=1e-5)
    if classes == 1:
        assert (found.runner_up == -1).all()
        assert not found.entropy.any()
        return
    np.testing.assert_array_equal(p[np.arange(40), found.runner_up], np.sort(p, axis=1)[:, -2])
    expected = scipy.stats.entropy(p, axis=1) / np.log(classes)
    np.testing.assert_allclose(found.entropy, expected, rtol=1e-4, atol=1e-6)


@given(seed=st.integers(0, 999))
def test_decide__calibration_never_changes_the_class(seed):
    rng, scores = np.random.default_rng(seed), shares(seed)
    other = Calibration(tuple(rng.uniform(0.2, 3, 5)), tuple(rng.normal(size=5)))
    found = decide(scores, other)
    np.testing.assert_array_equal(found.classes, scores.argmax(axis=1))
    p = probabilities(scores, other)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.confidence, p[np.arange(40), found.classes])
    assert (found.runner_up != found.classes).all()


def test_decide__samples_without_scores_have_no_class():
    scores = np.array([[0.2, 0.8], [np.nan, np.nan], [0.5, np.nan]], np.float32)
    found = decide(scores, Calibration.none(2))
    assert found.classes.tolist() == [1, -1, -1]
    assert found.runner_up.tolist() == [0, -1, -1]
    np.testing.assert_allclose(found.confidence, [0.8, 0, 0])
    assert np.isnan(found.entropy).tolist() == [False, True, True]


def test_choose__a_class_that_is_out_of_the_question():
    scores = np.array([[-np.inf, -3.0, -2.0], [-np.inf, 7.0, 0.0]], np.float32)
    assert choose(scores).tolist() == [2, 1]
    assert np.isfinite(probabilities(scores, Calibration.none(3))).all()


@pytest.mark.parametrize("cut", [1, 17, 39])
def test_decide__same_answer_for_any_block(cut):
    scores, calibration = shares(1), Calibration((0.5,) * 5, (0.1, 0, 0, 0, 0.3))
    whole = decide(scores, calibration)
    parts = [decide(part, calibration) for part in np.split(scores, [cut])]
    for name in ("classes", "confidence", "runner_up", "entropy"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
