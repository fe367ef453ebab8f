import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from eigenscape.learn.decide.kernels.scores import (
    OF_CLASSES,
    accuracy,
    confusion_matrix,
    rates,
    summarize,
)


@given(seed=st.integers(0, 1000), count=st.integers(2, 6), size=st.integers(5, 200))
def test_accuracy__against_scikit_learn(seed, count, size):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(count), rng.integers(0, count, size)])
    predicted = np.where(rng.random(len(truth)) < 0.6, truth, rng.integers(0, count, len(truth)))
    confusion = confusion_matrix(truth, predicted, count)
    np.testing.assert_array_equal(
        confusion[:, :count], metrics.confusion_matrix(truth, predicted, labels=range(count))
    )
    found = accuracy(confusion)
    assert found["overall_accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert found["average_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(truth, predicted)
    )
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(truth, predicted))
    assert found["per_class"] == pytest.approx(
        metrics.recall_score(truth, predicted, average=None, labels=range(count))
    )
    precision = metrics.precision_score(
        truth, predicted, average=None, labels=range(count), zero_division=np.nan
    )
    users = [np.nan if value is None else value for value in found["users_accuracy"]]
    np.testing.assert_allclose(users, precision)
    for name, measure in (("f1", metrics.f1_score), ("iou", metrics.jaccard_score)):
        expected = measure(truth, predicted, average=None, labels=range(count))
        assert found[name] == pytest.approx(expected)
    for name, measure in (("mean_f1", metrics.f1_score), ("mean_iou", metrics.jaccard_score)):
        assert found[name] == pytest.approx(measure(truth, predicted, average="macro"))
    assert found["samples"] == len(truth)


@given(seed=st.integers(0, 1000))
def test_accuracy__counts_what_has_no_class_as_wrong(seed):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(3), rng.integers(0, 3, 50)])
    predicted = np.where(rng.random(len(truth)) < 0.3, -1, truth)
    found = accuracy(confusion_matrix(truth, predicted, 3))
    # To scikit-learn, "nothing" is one more class.
    assert found["overall_accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(truth, predicted))


def test_accuracy__class_without_samples():
    found = accuracy(np.array([[8, 2, 0, 0], [0, 0, 0, 0], [0, 5, 5, 0]]))
    assert found["per_class"] == [0.8, None, 0.5]
    assert found["average_accuracy"] == pytest.approx(0.65)
    assert found["overall_accuracy"] == pytest.approx(13 / 20)


def test_accuracy__of_nothing():
    found = accuracy(np.zeros((2, 3), np.int64))
    assert found["overall_accuracy"] is None
    assert found["per_class"] == [None, None]
    assert found["samples"] == 0


def test_accuracy__everything_right_in_one_class():
    found = accuracy(np.array([[5, 0, 0], [0, 0, 0]]))
    assert found["overall_accuracy"] == 1
    # Agreement by chance is 1 as well, of which nothing is above: 0 / 0, NaN in scikit-learn.
    assert found["kappa"] is None


def test_summarize__kappa_is_of_the_trials_that_have_one():
    one, two = np.array([[5, 0, 0], [0, 0, 0]]), np.array([[4, 1, 0], [1, 3, 0]])
    found = summarize([one, two, two])
    assert found["kappa"] == pytest.approx(accuracy(two)["kappa"])
    assert found["kappa_std"] == 0
    assert (found["trials"], found["kappa_trials"]) == (3, 2)
    alone = summarize([one, one])
    assert (alone["kappa"], alone["kappa_std"], alone["overall_accuracy"]) == (None, None, 1)


def test_summarize__mean_and_standard_deviation_over_trials():
    trials = [np.array([[4, 0, 0], [1, 3, 0]]), np.array([[2, 2, 0], [0, 4, 0]])]
    found = summarize(trials)
    each = [accuracy(trial) for trial in trials]
    for name in ("overall_accuracy", "average_accuracy", "kappa"):
        values = [trial[name] for trial in each]
        assert found[name] == pytest.approx(np.mean(values))
        assert found[f"{name}_std"] == pytest.approx(np.std(values, ddof=1))
    assert found["trials"] == 2
    assert found["per_class"] == [6 / 8, 7 / 8]
    assert found["confusion"] == (trials[0] + trials[1]).tolist()


def test_summarize__measures_of_a_class_are_of_all_counts_together():
    """A class without a call in most draws: a mean of its precision would be of the other draws alone."""
    quiet = np.array([[90, 0, 0], [10, 0, 0]])
    trials = [quiet, quiet, np.array([[88, 2, 0], [9, 1, 0]])]
    found, pooled = summarize(trials), accuracy(np.sum(trials, axis=0))
    assert {name: found[name] for name in OF_CLASSES} == {name: pooled[name] for name in OF_CLASSES}
    recall, precision, f1 = (found[name][1] for name in ("per_class", "users_accuracy", "f1"))
    assert (recall, precision) == (1 / 30, 1 / 3)
    assert f1 == pytest.approx(2 * recall * precision / (recall + precision))


def test_summarize__a_class_that_is_never_called_has_no_precision():
    found = summarize([np.array([[9, 0, 0], [1, 0, 0]])] * 2)
    assert [found[name][1] for name in OF_CLASSES] == [0, None, 0, 0]


def test_summarize__leaves_out_trials_without_test_pixels():
    empty = np.zeros((2, 3), np.int64)
    found = summarize([empty, np.array([[4, 0, 0], [0, 0, 0]]), empty])
    assert (found["trials"], found["overall_accuracy"], found["per_class"]) == (1, 1, [1, None])
    assert found["overall_accuracy_std"] is None


def test_summarize__of_nothing_has_one_entry_for_each_class():
    found = summarize([np.zeros((2, 3), np.int64)])
    assert found["overall_accuracy"] is None
    assert found["per_class"] == [None, None]


def test_rates__of_several_matrices_are_those_of_each(rng):
    matrices = rng.integers(0, 9, (4, 3, 4))
    matrices[2] = 0
    matrices[3, 1] = 0
    found = rates(matrices)
    for place, matrix in enumerate(matrices):
        for name, values in rates(matrix).items():
            np.testing.assert_array_equal(found[name][place], values)


def test_rates__a_class_that_is_called_and_has_no_samples():
    found = accuracy(np.array([[8, 2, 0], [0, 0, 0]]))
    assert [found[name][1] for name in OF_CLASSES] == [None, 0, None, None]
    assert found["mean_f1"] == pytest.approx(16 / 18)
