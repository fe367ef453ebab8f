from typing import get_args

import pytest

from eigenscape.applied.model import How
from eigenscape.export.report.facts import (
    applied_lines,
    confusion,
    explain_bars,
    headline,
    measures,
)
from eigenscape.export.report.figures import eigenvalue_chart, largest_gap, residual_chart
from eigenscape.export.report.source import MapClass
from eigenscape.scenes.types import Grid


class Run:
    """A source that knows scores and classes alone."""

    def __init__(self, scores, classes=3, extend=None):
        self.scores, self.grid = scores, Grid(10, 10)
        self.classes = tuple(MapClass(n, f"class {n}", (1, 2, 3), 5) for n in range(1, classes + 1))
        self.score_classes = [one.number for one in self.classes]
        self._extend = extend or {}

    def summary(self, stage):
        return self._extend if stage == "extend" else {}


def bars(**values):
    return [{"key": key, "value": value} for key, value in values.items()]


def test_explain_bars__names_the_difference():
    text = explain_bars(bars(training=1.0, random=0.87, blocked=0.59), "pixels")
    assert "28 points more" in text
    assert "41 points above the test: never quote" in text
    text = explain_bars(bars(random=0.91, blocked=0.90), "pixels")
    assert "differ by 1.0 points only" in text
    assert explain_bars([], "pixels") == ""


def test_headline__says_what_was_measured():
    held = {"overall_accuracy": 0.589, "protocol": "pixels held out (blocked)"}
    interval = {"level": 0.95, "overall_accuracy": (0.53, 0.64)}
    told = headline(Run({**held, "intervals": interval}))
    assert told["figure"] == "58.9 %"
    assert "squares" in told["meaning"]
    assert "about 59 get the right class (53 to 64 with 95 % confidence)." in told["meaning"]
    applied = Run({**held, "protocol": "the labels of the run's own scene"}, extend={"how": "x"})
    assert "not learned from" not in headline(applied)["meaning"]
    assert "this very scene" in headline(applied)["meaning"]
    none = Run({**held, "overall_accuracy": None, "protocol": "no pixel is held out"})
    assert "not known" in headline(none)["meaning"]
    assert headline(Run({}, classes=0))["label"] == "No class map"


def test_headline__of_another_scene_counts_what_is_left_out():
    scores = {"overall_accuracy": 0.5, "protocol": "the labels of this scene", "left_out": 0}
    applied = {"how": "eigenvectors"}
    told = headline(Run(scores, extend=applied))
    assert told["meaning"] == "Of 100 labelled pixels of this scene about 50 get the right class."
    told = headline(Run({**scores, "left_out": 1662}, extend=applied))
    assert (
        "that the run was not trained on, about 50 get the right class. 1,662 more"
        in (told["meaning"])
    )
    assert "If the run has learned from this very scene" in told["meaning"]
    none = Run({**scores, "left_out": 9, "overall_accuracy": None, "samples": 0}, extend=applied)
    told = headline(none)
    assert told["label"] == "accuracy not measured: the labels of this scene"
    assert "so the accuracy on others is not known" in told["meaning"]
    assert measures(none) == []


def test_confusion__keeps_the_classes_with_most_labels():
    count = 70
    counts = [[0] * (count + 1) for _ in range(count)]
    for place in range(count):
        counts[place][place] = place + 1
    counts[69][0] = 30
    found = confusion(Run({"confusion": counts}, classes=count))
    assert len(found["rows"]) == len(found["columns"]) == 60
    assert found["left_out"] == 10
    assert found["columns"][0].number == 11
    # What is called a class that is left out is in no column.
    assert found["rows"][-1]["cells"][-1]["share"] == "70"
    assert not found["mistakes"]


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.1], [0.0, 0.0, 0.0], [0.0, 0.1, 0.9]])
def test_charts__of_few_values(values):
    chart = eigenvalue_chart(values, 1)
    assert chart.count("<circle") == len(values)
    assert "nan" not in chart
    assert "nan" not in residual_chart([0.0] * len(values), 1e-5)
    gap = largest_gap(values, 1)
    assert gap is None or gap[0] >= 1


@pytest.mark.parametrize("how", get_args(How))
def test_applied_lines__say_how_a_run_was_applied(how):
    summary = {"how": how, "samples": 200, "far": 3, "without_class": 1}
    lines = applied_lines(Run({}, extend=summary))
    assert lines[0].endswith(".")
    assert "3 pixels (1.5 %)" in lines[1]
    assert lines[2] == "1 pixels got no class."
