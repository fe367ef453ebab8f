from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.decide.kernels.decisions import (
    FLOOR,
    Calibration,
    choose,
    decide,
    evened,
    evidence,
    keep_class,
    lead_of,
    probabilities,
    rank,
)


def shares(seed, rows=40, classes=5):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), rows).astype(np.float32)


@given(seed=st.integers(0, 999), classes=st.integers(1, 6))
def test_decide__class_probability_runner_up_and_entropy(seed, classes):
    scores = shares(seed, classes=classes)
    found = decide(scores, Calibration.none(classes))
    p = (scores + np.sqrt(scores.astype(float) ** 2 + 4 * FLOOR**2)) / 2
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


def some_calibration(rng, classes, zones=1):
    values = {"factors": rng.uniform(0.05, 20, zones), "even": rng.uniform(0, 0.95, zones)}
    values |= {"slopes": rng.uniform(0.02, 4, zones), "offsets": rng.normal(0, 3, (zones, classes))}
    leads = -np.sort(-rng.normal(0, 3, (classes, 9)), axis=1)
    values |= {"excess": rng.uniform(0, 4, zones), "overcalls": rng.uniform(0.1, 9, classes)}
    values["leads"] = leads
    calibration = Calibration.from_json({name: own.tolist() for name, own in values.items()})
    assert Calibration.from_json(calibration.to_json()) == calibration
    return calibration


@given(
    seed=st.integers(0, 999), classes=st.integers(1, 60), scale=st.sampled_from([1e-3, 1, 1e3]),
    about=st.sampled_from([-5.0, 0.0, 0.02, 1.0, 7.0]),
)  # fmt: skip
def test_decide__the_called_class_has_the_largest_probability(seed, classes, scale, about):
    rng = np.random.default_rng(seed)
    scores = (scale * (about + rng.standard_normal((50, classes)))).astype(np.float32)
    # Neighbouring numbers of single precision, and exact ties.
    scores[0] = np.float32(scale * 0.7)
    scores[0, -1] = np.nextafter(scores[0, -1], np.float32(np.inf))
    scores[1] = 0
    calibration = some_calibration(rng, classes, zones=2)
    zones = rng.integers(0, 2, 50)
    for used, where in ((calibration, zones), (Calibration.none(classes), None)):
        p = probabilities(scores, used, where)
        np.testing.assert_array_equal(p.argmax(axis=1), scores.argmax(axis=1))
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
        found = decide(scores, used, where)
        np.testing.assert_array_equal(found.classes, scores.argmax(axis=1))
        assert (found.confidence >= 1 / classes).all()
        assert (found.runner_up != found.classes).all()
    for zone in (0, 1):
        names = ("factors", "even", "slopes", "offsets", "excess")
        of_zone = {name: (getattr(calibration, name)[zone],) for name in names}
        own = replace(calibration, **of_zone)
        expected = probabilities(scores, own)[zones == zone]
        np.testing.assert_array_equal(
            probabilities(scores, calibration, zones)[zones == zone], expected
        )
    # Without zones a sample is taken for one of the last: far from everything.
    np.testing.assert_array_equal(probabilities(scores, calibration), probabilities(scores, own))


def test_probabilities__log_odds_of_the_called_class():
    scores = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]], np.float32)
    own = Calibration((1.0,), (0.0,), (0.5,), ((1.0, 0.0, -0.3),))
    q = probabilities(scores, Calibration.none(3)).astype(float)
    p = probabilities(scores, own).astype(float)
    for row, called, offset in ((0, 0, 1.0), (1, 2, -0.3)):
        odds = 0.5 * np.log(q[row, called] / (1 - q[row, called])) + offset
        assert p[row, called] == pytest.approx(1 / (1 + np.exp(-odds)), rel=1e-5)
        others = np.delete(np.arange(3), called)
        ratio = q[row, others[0]] / q[row, others[1]]
        assert p[row, others[0]] / p[row, others[1]] == pytest.approx(ratio, rel=1e-5)
    # Hardly ever right: no other class gets more, and the called one 1 / classes at least.
    for offset in (-0.5, -1, -3, -60):
        rare = Calibration((1.0,), (0.0,), (1.0,), ((offset,) * 3,))
        p = probabilities(scores, rare)
        assert (p.argmax(axis=1) == [0, 2]).all()
        assert (p.max(axis=1) >= np.float32(1 / 3)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    # As sure as numbers go: nothing is left for the others, which is no division by 0.
    assert np.isfinite(probabilities(10 * np.eye(3, dtype=np.float32), some_sure())).all()


def test_probabilities__a_class_that_is_called_too_often():
    scores = np.array([[0.9, 0.1], [0.7, 0.3], [0.55, 0.45], [0.2, 0.8]], np.float32)
    called = choose(scores)
    leads = lead_of(scores, called)
    # Of ten calls of the first class three have at least the lead of the second row.
    table = ((5.0, 3.0, float(leads[1]), 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.0), (2.0, 1.0))
    own = replace(
        Calibration.none(2), excess=(1.5,), overcalls=(4.0, 0.0), leads=(table[0], table[1])
    )
    plain, found = (probabilities(scores, one).astype(float) for one in (Calibration.none(2), own))
    np.testing.assert_array_equal(found[3], plain[3])
    odds = np.log(plain[1, 0] / plain[1, 1]) - 1.5 * np.log1p(4 * 0.2)
    assert found[1, 0] == pytest.approx(max(0.5, 1 / (1 + np.exp(-odds))), rel=1e-5)
    assert plain[0, 0] > found[0, 0] > found[1, 0] >= found[2, 0] >= 0.5


def test_rank__is_the_share_of_calls_with_at_least_a_lead(rng):
    called = rng.integers(-1, 3, 999)
    leads = np.round(rng.normal(0, 1, 999), 1).astype(np.float32)
    table = []
    for number in range(3):
        own = -np.sort(-leads[called == number])
        table.append([own[0], *own])
    found = rank(called, leads, table)
    for place in range(999):
        own = leads[called == called[place]]
        expected = np.mean(own >= leads[place]) if called[place] >= 0 else 0
        assert found[place] == pytest.approx(expected, abs=1e-6)


def some_sure():
    return Calibration((100.0,), (0.0,), (4.0,), ((6.0,) * 3,))


def test_evidence__keeps_the_order_of_scores_and_their_differences_above_1():
    scores = np.array([[3.5, 3.2, -4, 0], [1, 0.7, -6.5, -2.5]], np.float32)
    logs = evidence(scores)
    np.testing.assert_allclose(logs[0], logs[1], atol=1e-5)
    assert (np.diff(logs[0, [2, 3, 1, 0]]) > 0).all()
    np.testing.assert_allclose(
        evidence(np.array([[0.3, 0.7]], np.float32)), np.log([[0.3, 0.7]]), atol=2e-3
    )


def test_evened__calls_the_same_classes_without_a_lead():
    scores = np.array([[0.1, 0.9, 0], [-5, -7, -9], [2, 2, 2], [np.nan] * 3], np.float32)
    found = evened(scores)
    np.testing.assert_array_equal(choose(found), choose(scores))
    np.testing.assert_allclose(found[:3], 1 / 3, rtol=2e-3)


def test_keep_class__lifts_what_ties():
    values = np.array([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [np.nan] * 3], np.float32)
    found = keep_class(values.copy(), np.array([1, 2, -1]))
    assert found[0].argmax() == 1
    np.testing.assert_allclose(found, values, rtol=1e-6)


def test_decide__samples_without_scores_have_no_class():
    scores = np.array([[0.2, 0.8], [np.nan, np.nan], [0.5, np.nan]], np.float32)
    found = decide(scores, Calibration.none(2))
    assert found.classes.tolist() == [1, -1, -1]
    assert found.runner_up.tolist() == [0, -1, -1]
    np.testing.assert_allclose(found.confidence, [0.8, 0, 0], atol=1e-3)
    assert np.isnan(found.entropy).tolist() == [False, True, True]


def test_choose__a_class_that_is_out_of_the_question():
    scores = np.array([[-np.inf, -3.0, -2.0], [-np.inf, 7.0, 0.0]], np.float32)
    assert choose(scores).tolist() == [2, 1]
    assert np.isfinite(probabilities(scores, Calibration.none(3))).all()


@pytest.mark.parametrize("cut", [1, 17, 39])
def test_decide__same_answer_for_any_block(cut):
    scores = shares(1)
    calibration = Calibration((0.5,), (0.1,), (0.7,), ((0.5, 0, -2, 0, 0.1),))
    whole = decide(scores, calibration)
    parts = [decide(part, calibration) for part in np.split(scores, [cut])]
    for name in ("classes", "confidence", "runner_up", "entropy"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
