from dataclasses import replace

import numpy as np
import pytest

from eigenscape.learn.decide.kernels.calibrationfit import Calls, Fit, Sample, fit_calibration
from eigenscape.learn.decide.kernels.decisions import Calibration, probabilities

SHARES = (0.4, 0.3, 0.3)


def draw(rng, rows=4000, *, factor=1.0, even=0.0, slope=1.0, offsets=(0, 0, 0), weights=(0.0, 0.0)):
    """Shares, and classes drawn from what a calibration makes of them."""
    scores = rng.dirichlet([1.5, 1, 1], rows).astype(np.float32)
    # No class is called too often, or some are by many fits.
    calls = rng.choice([0.2, 0.5, 0.9], rows) if any(weights) else np.full(rows, 1e-9)
    before = calls * rng.random(rows)
    sample = Sample(scores, np.zeros(rows, np.intp), np.zeros(rows, np.intp), calls, before)
    fit = Fit(Calibration((factor,), (even,), (slope,), (tuple(offsets),)), (weights,), SHARES)
    p = fit.probabilities(sample)
    classes = (rng.random((rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return replace(sample, classes=np.minimum(classes, 2))


def truth(sample, **keys):
    """The probabilities that a sample was drawn from."""
    own = {"factor": 1.0, "even": 0.0, "slope": 1.0, "offsets": (0, 0, 0), **keys}
    own = Calibration((own["factor"],), (own["even"],), (own["slope"],), (tuple(own["offsets"]),))
    return Fit(own, (keys.get("weights", (0.0, 0.0)),), SHARES).probabilities(sample)


@pytest.mark.parametrize(("factor", "even"), [(0.5, 0), (1, 0.3), (2.5, 0.1)])
def test_fit_calibration__finds_temperature_and_equal_shares(rng, factor, even):
    sample = draw(rng, 40_000, factor=factor, even=even)
    found = fit_calibration(sample, 1).calibration
    np.testing.assert_allclose(found.factors, factor, rtol=0.1)
    np.testing.assert_allclose(found.even, even, atol=0.04)
    # Such shares are as often right as they say.
    np.testing.assert_allclose(found.slopes, 1, atol=0.1)
    np.testing.assert_allclose(found.offsets, 0, atol=0.12)


@pytest.mark.parametrize(
    "keys",
    [
        {"offsets": (-0.4, 0.8, 1.5)}, {"slope": 0.5, "offsets": (0.4, 0.4, 0.4)},
        {"weights": (0.5, 0.0)}, {"weights": (0.0, 1.5)}, {"weights": (0.3, 0.6)},
    ],
)  # fmt: skip
def test_fit_calibration__finds_how_often_calls_are_right(rng, keys):
    sample = draw(rng, 40_000, **keys)
    found = fit_calibration(sample, 1).probabilities(sample).max(axis=1)
    away = np.abs(found - truth(sample, **keys).max(axis=1))
    # How many samples a class has is learned, too, and is not quite what it was drawn with.
    assert away.mean() < (0.035 if "weights" in keys else 0.02)
    assert away.max() < 0.15


def test_fit_calibration__a_class_of_few_calls_is_drawn_to_the_others(rng):
    sample = draw(rng, 3000)
    called = sample.scores.argmax(axis=1)
    few = np.flatnonzero(called == 2)[:6]
    kept = np.concatenate([np.flatnonzero(called < 2), few])
    wrong = sample.classes.copy()
    wrong[few] = 0
    rare = replace(sample, classes=wrong)
    rare = Sample(*(values[kept] for values in vars(rare).values()))
    offsets = np.array(fit_calibration(rare, 1).calibration.offsets[0])
    assert -0.7 < offsets[2] < offsets[:2].min()


def test_fit_calibration__each_zone_has_its_own(rng):
    near, far = draw(rng, 3000, factor=3), draw(rng, 3000, even=0.6)
    both = replace(Sample.join([near, far]), zones=np.repeat([0, 1], 3000))
    found = fit_calibration(both, 2)
    alone = [fit_calibration(part, 1) for part in (near, far)]
    for name in ("factors", "even", "slopes"):
        values = tuple(getattr(part.calibration, name)[0] for part in alone)
        np.testing.assert_allclose(getattr(found.calibration, name), values, rtol=1e-6)
    # A zone of few samples says nothing.
    few = replace(both, zones=(np.arange(6000) < 20).astype(np.intp))
    found, whole = (fit_calibration(few, zones).calibration for zones in (2, 1))
    assert found.factors[1] == pytest.approx(whole.factors[0], rel=0.02)


def test_fit_calibration__one_class():
    nothing = np.zeros(60, np.intp)
    sample = Sample(np.ones((60, 1), np.float32), nothing, nothing, np.ones(60), np.ones(60))
    found = fit_calibration(sample, 1)
    assert np.isfinite(found.calibration.offsets).all()
    np.testing.assert_allclose(found.probabilities(sample), 1)


def test_fit_of__is_what_its_samples_have(rng):
    scores = rng.dirichlet([6, 2, 1], 500).astype(np.float32)
    scores[7] = np.nan
    calls = Calls.of(scores)
    classes = rng.integers(0, 3, 500)
    sample = calls.sample(scores, classes, np.zeros(500, np.intp))
    assert len(sample.classes) == 499
    fit = Fit(Calibration((1.3,), (0.1,), (0.6,), ((0.2, -1.0, 0.4),)), ((0.7, 1.2),), SHARES)
    expected = probabilities(sample.scores, fit.of(calls), sample.zones)
    np.testing.assert_allclose(fit.probabilities(sample), expected, atol=1e-5)
    assert fit.taken(1.0) == fit
    none = fit.taken(0.0)
    assert (none.calibration.slopes, none.weights) == ((1.0,), ((0.0, 0.0),))
    odds = [np.log(f.probabilities(sample).max(axis=1)) for f in (none, fit.taken(0.5), fit)]
    assert (np.minimum(odds[0], odds[2]) <= odds[1] + 1e-9).all()
    assert (odds[1] <= np.maximum(odds[0], odds[2]) + 1e-9).all()


def test_calls__shares_and_ranks_of_what_a_fit_calls(rng):
    scores = np.tile(np.float32([0.2, 0.7, 0.1]), (1000, 1))
    scores[:200, 0] = np.linspace(0.8, 3, 200)
    scores[5] = np.nan
    calls = Calls.of(scores)
    np.testing.assert_allclose(calls.shares, np.array([200, 801, 1]) / 1002)
    sample = calls.sample(scores, np.zeros(1000, np.intp), np.zeros(1000, np.intp))
    called = sample.scores.argmax(axis=1)
    np.testing.assert_array_equal(sample.calls, calls.shares[called])
    # All calls of the second class have the same lead; those of the first rise.
    np.testing.assert_allclose(sample.before[called == 1], calls.shares[1])
    first = sample.before[called == 0] / calls.shares[0]
    leads = sample.scores[called == 0].max(axis=1)
    at_least = [(leads >= lead).mean() for lead in leads]
    np.testing.assert_allclose(first, at_least, atol=1 / 32)
    # Of the first class there are twice as many samples as calls, of the second half as many.
    known = sample.overcalled(np.array([400, 400.5, 201.5]) / 1002)
    np.testing.assert_allclose(known[0], np.where(called == 1, np.log(0.5), 0))
    np.testing.assert_allclose(known[1, called == 1], -np.log(3))
    assert (known[1, called == 0] >= -np.log(1.5)).all()


def test_fit_calibration__takes_classes_that_are_out_of_the_question(rng):
    sample = draw(rng, 500)
    sample.scores[:, 2] = -np.inf
    found = fit_calibration(sample, 1)
    assert np.isfinite(found.calibration.offsets).all()
    assert np.isfinite(found.probabilities(sample)).all()
