import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from eigenscape.learn.classify import supportvectors
from eigenscape.scenes.types import Grid
from inputs.training import GRID, learn_stripes


@pytest.fixture
def learn(tmp_path, rng):
    return learn_stripes(tmp_path, rng, "svm")


def test_svm__equals_scikit_learn_on_scaled_features(learn):
    harness, summary = learn(cost=10.0, rbf_gamma=0.5)
    known = np.flatnonzero(learn.given)
    oracle = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=0.5 / 5, break_ties=True))
    expected = oracle.fit(learn.features[known], learn.given[known]).predict(learn.features)
    assert (harness["labels/class"] == expected).mean() > 0.995
    assert summary["scores"]["held_out"]["blocked"]["overall_accuracy"] > 0.6


def test_svm__parameters_are_searched_for_in_squares_and_in_tables(learn):
    for name, grid in {"image": GRID, "table": Grid(GRID.size, 1)}.items():
        harness, summary = learn(name, grid)
        right = harness["labels/class"] == 10 * (learn.classes + 1)
        assert right.mean() > 0.8
        assert summary["scores"]["held_out"]["random"]["overall_accuracy"] > 0.7


def test_svm__of_many_training_samples_some_of_each_class(learn, monkeypatch):
    monkeypatch.setattr(supportvectors, "MOST_TRAINED", 30)
    monkeypatch.setattr(supportvectors, "_MOST_SEARCHED", 20)
    harness, _ = learn()
    assert (harness["labels/class"] == 10 * (learn.classes + 1)).mean() > 0.7


def test_svm__a_draw_of_one_class_calls_that_class(learn):
    labels = np.zeros(GRID.size, np.uint16)
    labels[[3, 4]] = 10
    harness, _ = learn(labels=labels)
    assert (harness["labels/class"] == 10).all()
