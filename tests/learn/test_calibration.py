from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from eigenscape.learn.calibration import (
    BINS,
    Sample,
    calibrate,
    calibrate_fits,
    calibration_error,
    fit_calibration,
    measure,
)
from eigenscape.learn.decisions import Calibration, evidence, probabilities
from eigenscape.learn.labelled import Labelled


def draw(rng, rows=4000, *, factor=1.0, shifts=(0, 0, 0)):
    """Shares, and classes drawn from what a calibration makes of them."""
    scores = rng.dirichlet([1.5, 1, 1], rows).astype(np.float32)
    p = probabilities(scores, Calibration((factor,) * 3, tuple(map(float, shifts))))
    classes = (rng.random((rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return Sample(scores, np.minimum(classes, 2))


@pytest.mark.parametrize("factor", [0.5, 1, 2.5])
def test_fit_calibration__finds_the_temperature(rng, factor):
    found = fit_calibration(draw(rng, 20_000, factor=factor), vector=False)
    np.testing.assert_allclose(found.factors, factor, rtol=0.05)
    assert found.shifts == (0, 0, 0)


def test_fit_calibration__finds_factors_and_shifts(rng):
    found = fit_calibration(draw(rng, 20_000, factor=1.5, shifts=(0.8, 0, -0.8)), vector=True)
    np.testing.assert_allclose(found.factors, 1.5, atol=0.2)
    np.testing.assert_allclose(np.diff(found.shifts), [-0.8, -0.8], atol=0.2)


def test_fit_calibration__two_classes_equal_logistic_regression(rng):
    p = rng.uniform(0.05, 0.95, 3000)
    classes = (rng.random(3000) < p**2 / (p**2 + (1 - p) ** 2)).astype(np.intp)
    sample = Sample(np.column_stack([1 - p, p]).astype(np.float32), classes)
    odds = np.diff(evidence(sample.scores), axis=1)
    model = LogisticRegression(C=np.inf, fit_intercept=False).fit(odds, classes)
    found = fit_calibration(sample, vector=False)
    assert found.factors[0] == pytest.approx(model.coef_[0, 0], rel=2e-2)


def test_measure__against_scikit_learn(rng):
    sample, calibration = draw(rng), Calibration((1.7, 1, 0.4), (0.1, 0, 0.3))
    found = measure(sample, calibration)
    p = probabilities(sample.scores, calibration)
    assert found["log_loss"] == pytest.approx(log_loss(sample.classes, p), rel=1e-5)
    brier = ((p - np.eye(3)[sample.classes]) ** 2).sum(axis=1).mean()
    assert found["brier"] == pytest.approx(brier, rel=1e-5)


def test_calibration_error__against_scikit_learn(rng):
    confidence = rng.uniform(0.2, 1, 5000)
    right = rng.random(5000) < confidence**2
    share, mean = calibration_curve(right, confidence, n_bins=BINS)
    counts = np.histogram(confidence, np.linspace(0, 1, BINS + 1))[0]
    expected = np.abs(share - mean) @ counts[counts > 0] / 5000
    assert calibration_error(confidence, right) == pytest.approx(expected)
    assert calibration_error(np.ones(4), np.ones(4, bool)) == 0
    assert calibration_error(np.ones(4), np.zeros(4, bool)) == 1


def test_calibrate__takes_what_is_better_on_the_other_half(rng):
    for shifts, kind in (((0, 0, 0), "temperature"), ((2, 0, -2), "vector")):
        halves = tuple(draw(rng, 1500, factor=2, shifts=shifts) for _ in range(2))
        found, report = calibrate(halves, {"random": halves[::-1]})
        assert report["kind"] == kind
        for name in ("expected_calibration_error", "log_loss"):
            assert report["after"]["random"][name] < report["before"]["random"][name]
        assert report["pixels"] == 3000
        assert len(set(found.factors)) == (1 if kind == "temperature" else 3)


def fits_of(rng, trials, rows=600):
    sample = draw(rng, rows, factor=3)
    train = rng.random((trials, rows)) < 0.3
    labelled = Labelled(np.arange(rows), sample.classes, np.arange(1, 4, dtype=np.uint16), train)
    return SimpleNamespace(at_labels=lambda number: sample.scores), labelled


@pytest.mark.parametrize("trials", [1, 4])
def test_calibrate_fits__halves_share_no_pixel_and_no_fit(rng, monkeypatch, trials):
    source, labelled = fits_of(rng, trials)
    seen = []

    def note(halves, tests):
        seen.extend([halves, tests])
        return Calibration.none(3), {}

    monkeypatch.setattr("eigenscape.learn.calibration.calibrate", note)
    calibrate_fits(source, labelled, {"random": list(range(trials))}, 0)
    halves, tests = seen
    assert tests == {"random": halves[::-1]}
    rows = [{tuple(row) for row in half.scores.tolist()} for half in halves]
    assert not rows[0] & rows[1]
    held = [~labelled.train[number] for number in range(trials)]
    for last, half in enumerate(halves):
        expected = sum(int(h.sum()) for h in (held[last::2] if trials > 1 else held))
        assert 0.3 * expected < len(half.classes) < 0.7 * expected


def test_calibrate_fits__says_that_nothing_is_held_out(rng):
    source, labelled = fits_of(rng, 1)
    everything = Labelled(
        labelled.sample, labelled.classes, labelled.numbers, np.ones_like(labelled.train)
    )
    found, report = calibrate_fits(source, everything, {"file": [0]}, 0)
    assert found == Calibration.none(3)
    assert "held out" in report["skipped"]


def test_calibrate_fits__samples_without_scores_do_not_count(rng):
    source, labelled = fits_of(rng, 2)
    source.at_labels(0)[::7] = np.nan
    found, report = calibrate_fits(source, labelled, {"random": [0, 1]}, 0)
    assert np.isfinite(found.factors).all()
    assert np.isfinite(report["after"]["random"]["log_loss"])
