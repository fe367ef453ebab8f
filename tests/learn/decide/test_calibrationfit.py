from dataclasses import replace

import numpy as np
import pytest

from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.calibrationfit import Fit, Sample, fit_calibration, rarity_of
from eigenscape.learn.kernels.decisions import Calibration, probabilities


def draw(rng, rows=4000, *, factor=1.0, even=0.0, slope=1.0, offsets=(0, 0, 0), weight=0.0):
    """Shares, and classes drawn from what a calibration makes of them."""
    scores = rng.dirichlet([1.5, 1, 1], rows).astype(np.float32)
    rarity = -rng.choice([0.0, 0.5, 2.0], rows) if weight else np.zeros(rows)
    sample = Sample(scores, np.zeros(rows, np.intp), np.zeros(rows, np.intp), rarity)
    fit = Fit(Calibration((factor,), (even,), (slope,), (tuple(offsets),)), (weight,))
    p = fit.probabilities(sample)
    classes = (rng.random((rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return replace(sample, classes=np.minimum(classes, 2))


def truth(sample, **keys):
    """The probabilities that a sample was drawn from."""
    own = {"factor": 1.0, "even": 0.0, "slope": 1.0, "offsets": (0, 0, 0), **keys}
    own = Calibration((own["factor"],), (own["even"],), (own["slope"],), (tuple(own["offsets"]),))
    return Fit(own, (keys.get("weight", 0.0),)).probabilities(sample)


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
    [{"offsets": (-0.4, 0.8, 1.5)}, {"slope": 0.5, "offsets": (0.4, 0.4, 0.4)}, {"weight": 0.5}],
)
def test_fit_calibration__finds_how_often_calls_are_right(rng, keys):
    sample = draw(rng, 40_000, **keys)
    found = fit_calibration(sample, 1).probabilities(sample).max(axis=1)
    away = np.abs(found - truth(sample, **keys).max(axis=1))
    assert away.mean() < 0.02
    assert away.max() < 0.15


def test_fit_calibration__a_class_of_few_calls_is_drawn_to_the_others(rng):
    sample = draw(rng, 3000)
    called = sample.scores.argmax(axis=1)
    few = np.flatnonzero(called == 2)[:6]
    kept = np.concatenate([np.flatnonzero(called < 2), few])
    wrong = sample.classes.copy()
    wrong[few] = 0
    rare = Sample(*(values[kept] for values in (sample.scores, wrong, sample.zones, sample.rarity)))
    offsets = np.array(fit_calibration(rare, 1).calibration.offsets[0])
    assert -0.7 < offsets[2] < offsets[:2].min()


def test_fit_calibration__each_zone_has_its_own(rng):
    near, far = draw(rng, 3000, factor=3), draw(rng, 3000, even=0.6)
    both = replace(Sample.join([near, far]), zones=np.repeat([0, 1], 3000))
    found = fit_calibration(both, 2)
    alone = [fit_calibration(part, 1) for part in (near, far)]
    for name in vars(found.calibration):
        values = tuple(getattr(part.calibration, name)[0] for part in alone)
        assert getattr(found.calibration, name) == values
    # A zone of few samples says nothing.
    few = replace(both, zones=(np.arange(6000) < 20).astype(np.intp))
    found, whole = (fit_calibration(few, zones).calibration for zones in (2, 1))
    assert found.factors[1] == pytest.approx(whole.factors[0], rel=0.02)


def test_fit_calibration__one_class():
    sample = Sample(*(make((60, 1)[:size]) for make, size in _ONE))
    found = fit_calibration(sample, 1)
    assert np.isfinite(found.calibration.offsets).all()
    np.testing.assert_allclose(found.probabilities(sample), 1)


_ONE = (
    (lambda shape: np.ones(shape, np.float32), 2), (lambda shape: np.zeros(shape, np.intp), 1),
    (lambda shape: np.zeros(shape, np.intp), 1), (np.zeros, 1),
)  # fmt: skip


def test_fit_of__is_what_its_samples_have(rng):
    sample = draw(rng, 500, weight=0.7)
    fit = Fit(Calibration((1.3,), (0.1,), (0.6,), ((0.2, -1.0, 0.4),)), (0.7,))
    rarity = np.array([0.0, -1.5, -0.2])
    own = replace(sample, rarity=rarity[sample.scores.argmax(axis=1)])
    expected = probabilities(sample.scores, fit.of(rarity), sample.zones)
    np.testing.assert_allclose(fit.probabilities(own), expected, atol=1e-5)
    assert fit.taken(1.0) == fit
    none = fit.taken(0.0)
    assert (none.calibration.slopes, none.weights) == ((1.0,), (0.0,))
    odds = [np.log(f.probabilities(own).max(axis=1)) for f in (none, fit.taken(0.5), fit)]
    assert (np.minimum(odds[0], odds[2]) <= odds[1] + 1e-9).all()
    assert (odds[1] <= np.maximum(odds[0], odds[2]) + 1e-9).all()


def test_rarity_of__classes_that_are_called_too_often(rng):
    classes = np.repeat([0, 1, 2], [600, 300, 100])
    train = np.zeros((1, 1000), bool)
    train[0, ::10] = True
    labelled = Labelled(np.arange(1000), classes, np.arange(1, 4, dtype=np.uint16), train)
    scores = np.tile(np.float32([0.2, 0.7, 0.1]), (1000, 1))
    scores[:200, 0] = 0.9
    scores[5] = np.nan
    found = rarity_of(labelled, 0, scores)
    # 30 of 100 training samples, 800 of 999 calls.
    assert found[1] == pytest.approx(np.log((31 / 103) / (801 / 1002)))
    assert found[0] == found[2] == 0


def test_fit_calibration__takes_classes_that_are_out_of_the_question(rng):
    sample = draw(rng, 500)
    sample.scores[:, 2] = -np.inf
    found = fit_calibration(sample, 1)
    assert np.isfinite(found.calibration.offsets).all()
    assert np.isfinite(found.probabilities(sample)).all()
