import numpy as np
import pytest

from eigenscape.learn.classify import forests
from eigenscape.scenes.types import Grid
from inputs.training import GRID, learn_stripes


@pytest.fixture
def learn(tmp_path, rng):
    return learn_stripes(tmp_path, rng, "random-forest")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("thresholds", ["best", "random"])
@pytest.mark.parametrize("grid", [GRID, Grid(GRID.size, 1)])
def test_forests__call_the_classes_of_an_image_and_of_a_table(learn, thresholds, grid):
    harness, summary = learn(grid=grid, thresholds=thresholds)
    assert (harness["labels/class"] == 10 * (learn.classes + 1)).mean() > 0.8
    known = learn.given > 0
    assert (harness["labels/class"][known] == learn.given[known]).mean() > 0.98
    for held in summary["scores"]["held_out"].values():
        assert held["overall_accuracy"] > 0.6


@pytest.mark.slow
def test_forests__the_same_map_whatever_the_blocks_and_again(learn, monkeypatch):
    first, summary = learn("first")
    monkeypatch.setattr("eigenscape.base.memory.CHUNK_ROWS", 64)
    again, repeated = learn("again")
    for name in ("labels/class", "labels/confidence"):
        np.testing.assert_array_equal(first[name], again[name])
    assert summary["scores"] == repeated["scores"]
    other, _ = learn("other", seed=1)
    assert (first["labels/confidence"] != other["labels/confidence"]).any()


def test_forests__smoothing_reads_the_forest_of_every_draw(learn):
    harness, summary = learn("smooth", trees=10, smoothing=1.0)
    assert {"unsmoothed"} <= summary["scores"].keys()
    assert (harness["labels/class"] == 10 * (learn.classes + 1)).mean() > 0.7


@pytest.mark.slow
def test_forests__of_many_training_samples_some_of_each_class(learn, monkeypatch):
    monkeypatch.setattr(forests, "MOST_TRAINED", 30)
    harness, _ = learn()
    assert (harness["labels/class"] == 10 * (learn.classes + 1)).mean() > 0.6


@pytest.mark.slow
def test_forests__a_draw_of_one_class_calls_that_class(learn):
    labels = np.zeros(GRID.size, np.uint16)
    labels[[3, 4]] = 10
    harness, _ = learn(labels=labels)
    assert (harness["labels/class"] == 10).all()
