import numpy as np

from eigenscape.learn.decide.kernels import intervals
from eigenscape.learn.decide.kernels.intervals import bootstrap
from eigenscape.learn.decide.kernels.scores import (
    MEANS,
    OF_ALL,
    OF_CLASSES,
    accuracy,
    confusion_matrix,
    summarize,
)


def draw_calls(rng, groups=30, each=40, right=0.7, classes=3, alike=False):
    """Samples of groups; those of a group are all right or all wrong if they are alike."""
    group = np.repeat(np.arange(groups), each)
    truth = rng.integers(0, classes, len(group))
    good = (rng.random(groups) < right)[group] if alike else rng.random(len(group)) < right
    called = np.where(good, truth, (truth + 1) % classes)
    called[::17] = -1
    return group, truth, called


def test_bootstrap__against_the_obvious_resampling(rng, monkeypatch):
    """The same draws, each of which is a list of samples that is scored like any other."""
    monkeypatch.setattr(intervals, "_REPLICATES", 60)
    group, truth, called = draw_calls(rng, groups=8, each=9)
    trials = rng.integers(0, 2, len(group))
    each = [tuple(part[trials == trial] for part in (group, truth, called)) for trial in (0, 1)]
    found = bootstrap(each, 9, 3, np.random.default_rng(4))
    draws, values = np.random.default_rng(4), {name: [] for name in (*OF_ALL, *OF_CLASSES)}
    for _ in range(60):
        rows = np.concatenate([np.flatnonzero(group == g) for g in draws.integers(8, size=8)])
        parts = [rows[trials[rows] == trial] for trial in (0, 1)]
        scored = summarize([confusion_matrix(truth[own], called[own], 3) for own in parts])
        for name, column in values.items():
            column.append(np.array(scored[name], float))
    for name, column in values.items():
        low_high = np.nanquantile(column, [0.025, 0.975], axis=0)
        np.testing.assert_allclose(np.array(found[name]), low_high.T, rtol=1e-12)


def test_bootstrap__covers_the_truth_of_samples_that_are_alike(monkeypatch):
    """Squares whose pixels are alike tell as much as squares, not as pixels: wide intervals hold."""
    monkeypatch.setattr(intervals, "_REPLICATES", 200)
    inside = {"groups": 0, "samples": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        group, truth, called = draw_calls(rng, groups=40, each=10, alike=True)
        called = np.where(called < 0, truth, called)
        for name, units in (("groups", group), ("samples", np.arange(len(group)))):
            found = bootstrap([(units, truth, called)], len(group), 3, rng)
            low, high = found["overall_accuracy"]
            inside[name] += low <= 0.7 + 0.3 / 17 <= high
    # 95 % of many groups, somewhat less of forty.
    assert inside["groups"] >= 30
    assert inside["samples"] <= inside["groups"] - 8


def test_bootstrap__what_one_group_holds_has_no_interval(rng):
    group, truth, called = draw_calls(rng)
    truth[truth == 2] = 0
    truth[:3] = 2
    found = bootstrap([(group, truth, called)], 30, 4, rng)
    assert found["per_class"][2:] == [None, None]
    low, high = found["per_class"][0]
    share = accuracy(confusion_matrix(truth, called, 4))["per_class"][0]
    assert low < share < high
    alone = bootstrap([(np.zeros(9, int), truth[:9], called[:9])], 1, 4, rng)
    assert alone["groups"] == 1
    assert alone["overall_accuracy"] is None
    assert alone["f1"] == [None] * 4


def test_bootstrap__means_are_of_draws_that_hold_all_classes(rng):
    """Draws without a class have other means: of a class that is never found, higher ones."""
    group = np.repeat(np.arange(40), 10)
    truth = np.where(group < 3, 2, np.arange(400) % 2)
    called = np.where(rng.random(400) < 0.9, truth, (truth + 1) % 2)
    called[truth == 2] = 0
    found = bootstrap([(group, truth, called)], 40, 3, rng)
    assert found["class_groups"] == [37, 37, 3]
    low, high = found["average_accuracy"]
    assert low < accuracy(confusion_matrix(truth, called, 3))["average_accuracy"] < high < 2 / 3
    assert found["mean_iou"][1] < 2 / 3
    # Of draws that lack a class in one trial of two, the other trial counts.
    other = truth != 2
    both = [(group, truth, called), (group[other], truth[other], called[other])]
    assert bootstrap(both, 40, 3, rng)["average_accuracy"][1] < 1


def test_bootstrap__means_with_a_class_of_one_group_have_no_interval(rng):
    group, truth, called = draw_calls(rng)
    truth[:3] = 3
    found = bootstrap([(group, truth, called)], 30, 4, rng)
    assert {name: found[name] for name in MEANS} == dict.fromkeys(MEANS)
    assert found["overall_accuracy"] is not None
    assert found["kappa"] is not None


def test_bootstrap__means_that_few_draws_measure_have_no_interval(rng):
    truth = np.arange(120) % 60
    group = np.arange(120)
    called = np.where(rng.random(120) < 0.5, truth, 0)
    found = bootstrap([(group, truth, called)], 120, 60, rng)
    assert min(found["class_groups"]) == 2
    assert found["mean_f1"] is None
    assert found["overall_accuracy"] is not None


def test_bootstrap__many_classes(rng):
    classes = 500
    truth = np.arange(2 * classes) % classes
    called = np.where(truth < 3, -1, truth)
    found = bootstrap([(truth % 7, truth, called)], 7, classes, rng)
    low, high = found["overall_accuracy"]
    assert 0 < low < high < 1
    assert found["per_class"][0] is None


def test_bootstrap__groups_without_a_mistake_have_no_interval(rng):
    """An interval from 1 to 1 would say that no other group has one either."""
    group, truth, _ = draw_calls(rng, groups=4)
    called = np.where(truth == 2, (group + truth) % 3, truth)
    found = bootstrap([(group, truth, called)], 4, 3, rng)
    assert found["per_class"][:2] == [None, None]
    assert found["per_class"][2] is not None
    found = bootstrap([(group, truth, truth)], 4, 3, rng)
    assert {name: found[name] for name in OF_ALL} == dict.fromkeys(OF_ALL)
    assert found["iou"] == [None] * 3


def test_bootstrap__kappa_of_one_class_has_no_interval(monkeypatch):
    monkeypatch.setattr(intervals, "_REPLICATES", 20)
    group, same = np.arange(12) // 3, np.zeros(12, int)
    called = np.where(np.arange(12) < 2, -1, same)
    found = bootstrap([(group, same, called)], 4, 2, np.random.default_rng(0))
    assert found["kappa"] is None
    assert found["overall_accuracy"] is not None
