from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
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
from eigenscape.learn.decisions import Calibration, probabilities
from eigenscape.learn.labelled import Labelled


def draw(rng, rows=4000, *, factors=(1, 1, 1), even=(0, 0, 0)):
    """Shares, and classes drawn from what a calibration makes of them."""
    scores = rng.dirichlet([1.5, 1, 1], rows).astype(np.float32)
    p = probabilities(scores, Calibration((tuple(factors),), (tuple(even),)))
    classes = (rng.random((rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return Sample(scores, np.minimum(classes, 2), np.zeros(rows, np.intp))


@pytest.mark.parametrize(("factor", "even"), [(0.5, 0), (1, 0.3), (2.5, 0.1)])
def test_fit_calibration__finds_two_numbers_for_all(rng, factor, even):
    sample = draw(rng, 40_000, factors=[factor] * 3, even=[even] * 3)
    found = fit_calibration(sample, 1, by_class=False)
    np.testing.assert_allclose(found.factors, factor, rtol=0.1)
    np.testing.assert_allclose(found.even, even, atol=0.04)


def test_fit_calibration__finds_two_numbers_for_each_called_class(rng):
    sample = draw(rng, 60_000, factors=(0.7, 1.5, 2), even=(0, 0.4, 0.1))
    found = fit_calibration(sample, 1, by_class=True)
    np.testing.assert_allclose(found.factors, [[0.7, 1.5, 2]], rtol=0.2)
    np.testing.assert_allclose(found.even, [[0, 0.4, 0.1]], atol=0.06)


def test_fit_calibration__each_zone_has_its_own(rng):
    near, far = draw(rng, 3000, factors=[3] * 3), draw(rng, 3000, even=[0.6] * 3)
    both = Sample(
        np.concatenate([near.scores, far.scores]),
        np.concatenate([near.classes, far.classes]),
        np.repeat([0, 1], 3000),
    )
    found = fit_calibration(both, 2, by_class=False)
    alone = [fit_calibration(part, 1, by_class=False) for part in (near, far)]
    assert found.factors == tuple(part.factors[0] for part in alone)
    assert found.even == tuple(part.even[0] for part in alone)
    # A zone of few samples says nothing.
    few = Sample(both.scores, both.classes, (np.arange(6000) < 20).astype(np.intp))
    found, whole = (fit_calibration(few, zones, by_class=False) for zones in (2, 1))
    assert found.factors[1] == pytest.approx(whole.factors[0], rel=0.02)


def test_fit_calibration__one_class():
    sample = Sample(np.ones((60, 1), np.float32), np.zeros(60, np.intp), np.zeros(60, np.intp))
    found = fit_calibration(sample, 1, by_class=True)
    assert np.isfinite(found.factors).all()


def test_fit_calibration__takes_classes_that_are_out_of_the_question(rng):
    sample = draw(rng, 500)
    sample.scores[:, 2] = -np.inf
    found = fit_calibration(sample, 1, by_class=True)
    assert np.isfinite(found.factors).all()
    assert np.isfinite(measure(sample, found)["log_loss"])


def test_measure__against_scikit_learn(rng):
    sample = draw(rng)
    calibration = Calibration(((1.7, 1, 0.4),), ((0.1, 0, 0.3),))
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
    for even, kind in (((0.3,) * 3, "for all"), ((0, 0.6, 0.2), "for each class")):
        halves = tuple(draw(rng, 1500, factors=[2] * 3, even=even) for _ in range(2))
        found, report = calibrate(halves, {"random": halves[::-1]})
        assert report["kind"] == kind
        for name in ("expected_calibration_error", "log_loss"):
            assert report["after"]["random"][name] < report["before"]["random"][name]
        assert report["pixels"] == 3000
        assert len(set(found.factors[0])) == (1 if kind == "for all" else 3)


def fits_of(rng, trials, rows=600):
    sample = draw(rng, rows, factors=[3] * 3)
    train = rng.random((trials, rows)) < 0.3
    labelled = Labelled(np.arange(rows), sample.classes, np.arange(1, 4, dtype=np.uint16), train)
    zones = SimpleNamespace(count=1, at_labels=lambda number: sample.zones)
    return SimpleNamespace(at_labels=lambda number: sample.scores), labelled, zones


@pytest.mark.parametrize("trials", [1, 4])
def test_calibrate_fits__halves_share_no_pixel_and_no_fit(rng, monkeypatch, trials):
    source, labelled, zones = fits_of(rng, trials)
    seen = []

    def note(halves, tests, zones):
        seen.extend([halves, tests])
        return Calibration.none(3), {}

    monkeypatch.setattr("eigenscape.learn.calibration.calibrate", note)
    calibrate_fits(source, labelled, zones, {"random": list(range(trials))}, 0)
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
    found, report = calibrate_fits(source, everything, zones, {"file": [0]}, 0)
    assert found == Calibration.none(3)
    assert "held out" in report["skipped"]


def test_calibrate_fits__samples_without_scores_do_not_count(rng):
    source, labelled, zones = fits_of(rng, 2)
    source.at_labels(0)[::7] = np.nan
    found, report = calibrate_fits(source, labelled, zones, {"random": [0, 1]}, 0)
    assert np.isfinite(found.factors).all()
    assert np.isfinite(report["after"]["random"]["log_loss"])
