from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.calibration import (
    BINS,
    STEPS,
    calibrate,
    calibrate_fits,
    calibration_error,
    measure,
)
from eigenscape.learn.decide.kernels.calibrationfit import Fit, Sample, fit_calibration
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities
from eigenscape.learn.decide.sampling import Sampling


def draw(rng, rows=4000, *, factor=1.0, offsets=(0, 0, 0)):
    """Shares, and classes drawn from what a calibration makes of them."""
    scores = rng.dirichlet([1.5, 1, 1], rows).astype(np.float32)
    p = probabilities(scores, Calibration((factor,), (0.0,), (1.0,), (tuple(offsets),)))
    classes = (rng.random((rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    # As if the fit had called each class once: nothing too often.
    few = np.full(rows, 1e-9)
    return Sample(scores, np.minimum(classes, 2), np.zeros(rows, np.intp), few, few)


def plain(calibration):
    """A fit for which nothing is called too often."""
    return Fit(calibration, ((0.0, 0.0),), (1 / 3,) * 3)


def test_measure__against_scikit_learn(rng):
    sample = draw(rng)
    calibration = Calibration((1.7,), (0.1,), (0.8,), ((0.3, 0, -0.4),))
    found = measure(sample, plain(calibration))
    p = probabilities(sample.scores, calibration)
    assert found["log_loss"] == pytest.approx(log_loss(sample.classes, p), rel=1e-5)
    right = p.argmax(axis=1) == sample.classes
    of_calls = log_loss(right, p.max(axis=1))
    assert found["log_loss_of_calls"] == pytest.approx(of_calls, rel=1e-5)
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


def test_calibrate__each_half_is_measured_with_the_other(rng):
    keys = {"factor": 2.0, "offsets": (0, -0.6, 0.5)}
    halves = tuple(draw(rng, 1500, **keys) for _ in range(2))
    found, report = calibrate(halves, {"random": halves[::-1]})
    for name in ("expected_calibration_error", "log_loss"):
        assert report["after"]["random"][name] < report["before"]["random"][name]
    assert report["pixels"] == 3000
    crossed = {}
    for step in STEPS:
        fits = [fit_calibration(half, 1).taken(step) for half in halves]
        losses = [
            measure(half, fit)["log_loss_of_calls"]
            for half, fit in zip(halves[::-1], fits, strict=True)
        ]
        crossed[step] = np.mean(losses)
    assert report["after"]["random"]["log_loss_of_calls"] == pytest.approx(min(crossed.values()))
    assert report["step"] == min(STEPS, key=lambda step: crossed[step])
    assert found == fit_calibration(Sample.join(halves), 1).taken(report["step"])


def fits_of(rng, trials, rows=600):
    sample = draw(rng, rows, factor=3)
    train = rng.random((trials, rows)) < 0.3
    labelled = Labelled(np.arange(rows), sample.classes, np.arange(1, 4, dtype=np.uint16), train)
    zones = SimpleNamespace(count=1, at_labels=lambda number: sample.zones)
    return SimpleNamespace(at_labels=lambda number, rows: sample.scores[rows]), labelled, zones


@pytest.mark.parametrize("trials", [1, 4])
def test_calibrate_fits__halves_share_no_pixel_and_no_fit(rng, monkeypatch, trials):
    source, labelled, zones = fits_of(rng, trials)
    seen = []

    def note(halves, tests, zones):
        seen.extend([halves, tests])
        return plain(Calibration.none(3)), {}

    monkeypatch.setattr("eigenscape.learn.decide.calibration.calibrate", note)
    calibrate_fits(source, Sampling(labelled, {"random": list(range(trials))}, 0), zones)
    halves, tests = seen
    for test, half in zip(tests["random"], halves[::-1], strict=True):
        np.testing.assert_array_equal(test.scores, half.scores)
    rows = [{tuple(row) for row in half.scores.tolist()} for half in halves]
    assert not rows[0] & rows[1]
    held = [~labelled.train[number] for number in range(trials)]
    for last, half in enumerate(halves):
        expected = sum(int(h.sum()) for h in (held[last::2] if trials > 1 else held))
        assert 0.3 * expected < len(half.classes) < 0.7 * expected


def test_calibrate_fits__says_that_nothing_is_held_out(rng):
    source, labelled, zones = fits_of(rng, 1)
    everything = Labelled(
        labelled.sample, labelled.classes, labelled.numbers, np.ones_like(labelled.train)
    )
    found, report = calibrate_fits(source, Sampling(everything, {"file": [0]}, 0), zones)
    assert found == Calibration.none(3)
    assert "held out" in report["skipped"]


def test_calibrate_fits__samples_without_scores_do_not_count(rng):
    source, labelled, zones = fits_of(rng, 2)
    scores = source.at_labels(0, slice(None))
    scores[::7] = np.nan
    found, report = calibrate_fits(source, Sampling(labelled, {"random": [0, 1]}, 0), zones)
    assert np.isfinite(found.offsets).all()
    assert np.isfinite(report["after"]["random"]["log_loss"])


def test_calibrate_fits__a_class_that_one_fit_calls_too_often(rng):
    """Two kinds of fits: those that call one class of all, and good ones. The calls tell them apart."""
    rows, trials = 3000, 10
    classes = rng.choice(3, rows, p=[0.2, 0.3, 0.5])
    train = rng.random((trials, rows)) < 0.1
    labelled = Labelled(np.arange(rows), classes, np.arange(1, 4, dtype=np.uint16), train)
    scores = rng.dirichlet([1, 1, 1], (trials, rows)).astype(np.float32) / 4
    for trial in range(trials):
        called = classes if trial % 4 > 1 else np.full(rows, trial % 3)
        scores[trial, np.arange(rows), called] += np.float32(0.75)
    source = SimpleNamespace(at_labels=lambda number, rows: scores[number][rows])
    zones = SimpleNamespace(count=1, at_labels=lambda number: np.zeros(rows, np.intp))
    found, report = calibrate_fits(
        source, Sampling(labelled, {"random": list(range(trials))}, 0), zones
    )
    assert report["before"]["random"]["expected_calibration_error"] > 0.2
    assert report["after"]["random"]["expected_calibration_error"] < 0.08
    # The first fit calls nothing but the first class, which a fifth of the samples have.
    assert probabilities(scores[0], found).max(axis=1).mean() < 0.42
