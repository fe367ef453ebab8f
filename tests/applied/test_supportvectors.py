import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from eigenscape.applied import supportvectors
from eigenscape.applied.supportvectors import (
    ScaledMachine,
    choose_machine,
    distributions,
    draw_labels,
)
from eigenscape.learn.classify.kernels.supportvectors import Scaling
from eigenscape.learn.decide.kernels.decisions import decide


def blobs(classes, spread=6.0):
    X, y = make_blobs(500, 6, centers=classes, cluster_std=spread, random_state=1)
    return X.astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_machine__decides_as_the_library_does_in_any_block(tmp_path, classes):
    X, y = blobs(classes)
    fitted = ScaledMachine.fit(X[:300], y[:300], 10.0, 1.0)
    scaling = Scaling.of(X[:300])
    reference = SVC(C=10.0, gamma=1 / 6).fit(scaling(X[:300]), y[:300])
    expected = reference.decision_function(scaling(X[300:]))
    found = fitted.scores(X[300:], classes)
    if classes == 2:
        np.testing.assert_array_equal(found.argmax(axis=1), expected > 0)
    else:
        np.testing.assert_allclose(found * (classes - 1), expected, atol=1e-4)
    fitted.save(tmp_path / "machine.npz")
    again = ScaledMachine.load(tmp_path / "machine.npz")
    one_by_one = [again.scores(X[row : row + 1], classes) for row in range(300, 500)]
    np.testing.assert_array_equal(np.concatenate(one_by_one), found)


def test_machine__a_class_that_it_has_not_seen_wins_nothing():
    X, y = blobs(3)
    known = y != 1
    scores = ScaledMachine.fit(X[known], y[known], 1.0, 1.0).scores(X, 4)
    assert not scores[:, [1, 3]].any()
    assert (scores.argmax(axis=1)[known] == y[known]).mean() > 0.8


def test_choose_machine__takes_what_holds_on_other_squares(rng, monkeypatch):
    monkeypatch.setattr(supportvectors, "_SEARCHED", 200)
    X, y = blobs(3, 3.0)
    square = np.arange(500) // 25
    # Vectors that tell squares apart, not classes: they are right where pixels are drawn one by one.
    own = rng.standard_normal((20, 6))[square] + 1e-3 * rng.standard_normal((500, 6))
    order = np.argsort(y + 3 * rng.random(500))
    X, y = X[order], y[order]
    found = choose_machine({"squares": own.astype(np.float32), "bands": X}, y, square, 3)
    assert found.vectors == "bands"
    assert found.accuracy > 0.9
    assert (found.machine.scores(X, 3).argmax(axis=1) == y).mean() > 0.95


@pytest.mark.parametrize(("classes", "spread"), [(2, 8.0), (4, 6.0)])
def test_choose_machine__probabilities_are_the_share_that_is_right(classes, spread):
    X, y = make_blobs(6000, 6, centers=classes, cluster_std=spread, random_state=1)
    X, square = X.astype(np.float32), np.arange(1000) // 25
    chosen = choose_machine({"bands": X[:1000]}, y[:1000], square, classes)
    found = decide(chosen.machine.scores(X[1000:], classes), chosen.calibration)
    right = (found.classes == y[1000:]).mean()
    assert 0.6 < right < 0.9
    assert abs(found.confidence.mean() - right) < 0.04


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.1, 0.2, 0.7)])
def test_distributions__follow_a_prior(shares):
    classes, wanted = len(shares), np.array(shares)
    X, y = make_blobs(9000, 6, centers=classes, cluster_std=8.0, random_state=1)
    X, square = X.astype(np.float32), np.arange(1000) // 25
    factors = wanted / (np.bincount(y[:1000]) / 1000)
    chosen = choose_machine({"bands": X[:1000]}, y[:1000], square, classes, factors)
    # Labels have the classes alike, the others as the prior says.
    rows = 1000 + np.flatnonzero(np.random.default_rng(0).random(8000) < wanted[y[1000:]])
    scores = chosen.machine.scores(X[rows], classes)

    def measure(factors):
        p = distributions(scores, chosen.calibration, factors)
        return (p.argmax(axis=1) == y[rows]).mean(), p.max(axis=1).mean()

    (before, _), (right, confidence) = measure(None), measure(factors)
    assert right > before + 0.03
    assert abs(confidence - right) < 0.04


def test_choose_machine__accuracy_is_that_under_the_prior():
    X, y = blobs(3)
    square, factors = np.arange(500) // 25, np.array([1e6, 1.0, 1.0])
    found = choose_machine({"bands": X}, y, square, 3, factors)
    assert found.accuracy == pytest.approx((y == 0).mean(), abs=0.01)


def test_choose_machine__one_square_leaves_nothing_to_choose_by():
    X, y = blobs(2)
    found = choose_machine({"bands": X}, y, np.zeros(500, np.int64), 2)
    assert found.accuracy is None
    expected = ScaledMachine.fit(X, y, 10.0, 1.0)
    np.testing.assert_array_equal(found.machine.scores(X, 2), expected.scores(X, 2))
    assert (found.machine.scores(X, 2).argmax(axis=1) == y).mean() > 0.9


def test_draw_labels__a_share_of_every_class(monkeypatch):
    monkeypatch.setattr(supportvectors, "MOST_LABELS", 100)
    classes = np.repeat([0, 1, 2], [3, 397, 600])
    drawn = draw_labels(classes)
    np.testing.assert_array_equal(np.bincount(classes[drawn]), [1, 40, 60])
    np.testing.assert_array_equal(draw_labels(classes[:90]), np.arange(90))
