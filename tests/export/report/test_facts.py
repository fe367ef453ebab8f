from types import SimpleNamespace

import numpy as np
import pytest

from eigenscape.applied.ways import ByEigenvectors, ByMachine, ByNeighbors
from eigenscape.export.report.facts.accuracy import (
    accuracy_bars,
    explain_bars,
    interval_note,
    maps_tested,
    measures,
)
from eigenscape.export.report.facts.classes import areas, confusion
from eigenscape.export.report.facts.eigenmaps import eigenvector_note, neighbor_facts
from eigenscape.export.report.facts.headline import applied_lines, headline
from eigenscape.export.report.figures import eigenvalue_chart, largest_gap, residual_chart
from eigenscape.export.report.source import MapClass
from eigenscape.learn.decide.kernels.areas import estimate_areas
from eigenscape.scenes.types import Grid


class Run:
    """A source that knows scores and classes alone."""

    def __init__(self, scores, classes=3, extend=None, learn=None, grid=None):
        self.scores, self.grid, self._learn = scores, grid or Grid(10, 10), learn or {}
        self.reads = self._learn.get("reads", "")
        self.classes = tuple(MapClass(n, f"class {n}", (1, 2, 3), 5) for n in range(1, classes + 1))
        self.score_classes = [one.number for one in self.classes]
        self._extend = extend or {}

    def summary(self, stage):
        return {"extend": self._extend, "learn": self._learn}.get(stage, {})


def bars(**values):
    return [{"key": key, "value": value} for key, value in values.items()]


@pytest.mark.parametrize(
    ("low", "half", "basis"),
    [
        (0.98, "1.0 %", "1,000 pixels tested against exact search"),
        (None, None, "1,000 pixels tested against exact search: every neighbour was found"),
    ],
)
def test_neighbor_facts__have_no_interval_of_no_width(low, half, basis):
    found = {
        "k": 8, "recall": 1.0 if low is None else 0.99, "recall_low": low,
        "recall_high": None if low is None else 1.0, "recall_samples": 1000,
    }  # fmt: skip
    facts = neighbor_facts(
        SimpleNamespace(summary=lambda stage: found, grid=SimpleNamespace(things="pixels"))
    )
    assert (facts["half"], facts["basis"]) == (half, basis)


def test_explain_bars__names_the_difference():
    text = explain_bars(bars(training=1.0, random=0.87, blocked=0.59), "pixels")
    assert "28 points more" in text
    assert "41 points above the test: never quote" in text
    text = explain_bars(bars(random=0.91, blocked=0.90), "pixels")
    assert "differ by 1.0 points only" in text
    assert explain_bars([], "pixels") == ""


def test_interval_note__says_why_means_have_none():
    found = {"level": 0.95, "groups": 40, "resampled": "squares of the scene", "replicates": 1000}
    assert interval_note({"intervals": found}).endswith("again and again (1000 times).")
    reason = "the held-out pixels of class 3 lie in 1 of 40 squares of the scene"
    told = interval_note({"intervals": {**found, "no_means": reason}})
    assert told.endswith(f"Means over the classes have none: {reason}.")


def test_headline__says_what_was_measured():
    held = {"overall_accuracy": 0.589, "protocol": "pixels held out (blocked)"}
    interval = {"level": 0.95, "overall_accuracy": (0.53, 0.64)}
    told = headline(Run({**held, "intervals": interval}))
    assert told["figure"] == "58.9 %"
    assert "squares" in told["meaning"]
    assert "about 59 get the right class (53 to 64 with 95 % confidence)." in told["meaning"]
    fewer = headline(Run({**held, "per_class": [0.6, None, None]}))
    assert fewer["meaning"].endswith("right class. Only 1 of 3 classes tested.")
    applied = Run({**held, "protocol": "the labels of the run's own scene"}, extend={"how": "x"})
    assert "of this scene about 59" in headline(applied)["meaning"]
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


def scored(split, trials, training, shown):
    held = {"overall_accuracy": 0.8, "overall_accuracy_std": 0.1, "trials": trials}
    return {
        "overall_accuracy": 0.8, "protocol": f"pixels held out ({split})",
        "held_out": {split: {**held, "training_pixels": training}},
        "training_pixels": {"samples": shown, "overall_accuracy": 1.0},
    }  # fmt: skip


def test_maps_tested__a_map_of_all_labels_is_not_the_one_that_was_tested():
    run = Run(scored("blocked", 10, 1025, 10_249), learn={"labelled": 10_249})
    told = (
        "The figures are of 10 test maps, each made from about 1,025 labelled pixels; the map shown learned "
        "from all 10,249."
    )
    assert maps_tested(run) == told
    assert headline(run)["meaning"].endswith(f"about 80 get the right class. {told}")
    own, other = accuracy_bars(run)
    assert own["note"] == "the 10,249 pixels that the map shown learned from"
    assert other["learned"] == "10 test maps, 1,025 training pixels each"


def test_maps_tested__of_a_share_a_file_and_a_table():
    shared = Run(scored("random", 1, 300, 300), learn={"labelled": 900})
    assert "of a test map made from about 300 labelled pixels; the map shown learned from 300." in (
        maps_tested(shared)
    )
    file = Run(scored("file", 1, 300, 300), learn={"labelled": 900})
    assert maps_tested(file).startswith("The map shown, which was tested, learned from 300 other")
    table = Run(scored("random", 5, 15, 150), learn={"labelled": 150}, grid=Grid(150, 1))
    assert "5 test models, each made from about 15 labelled samples" in maps_tested(table)
    assert "pixels" not in accuracy_bars(table)[1]["note"]
    # Nothing is held out, or the run was applied to another scene.
    assert maps_tested(Run({})) == ""


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        ("eigenvectors", "The map is made from them."),
        ("graph", "not made from them: tikhonov reads the graph"),
        ("features", "not made from them: tikhonov reads the spectra"),
    ],
)
def test_eigenvector_note__says_what_the_map_follows_from(reads, told):
    learn = {"method": "tikhonov", "reads": reads}
    assert told in eigenvector_note(Run({}, learn=learn))
    assert eigenvector_note(Run({}, learn=learn, classes=0)) == ""
    # A run of an earlier version does not tell.
    assert eigenvector_note(Run({})) == ""


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


@pytest.mark.parametrize("way", [ByEigenvectors, ByMachine, ByNeighbors])
def test_applied_lines__say_how_a_run_was_applied(way):
    summary = {"how": way.name, "samples": 200, "far": 3, "without_class": 1}
    lines = applied_lines(Run({}, extend=summary))
    assert lines[0].endswith(".")
    assert "3 pixels (1.5 %)" in lines[1]
    assert lines[2] == "1 pixel got no class."


def bar(key, value):
    return {"key": key, "value": value}


def test_explain_bars__compares_with_the_test_there_is():
    """Draws that are neither random nor by squares counted as 0."""
    text = explain_bars([bar("training", 0.958), bar("uniform", 0.944)], "pixels")
    assert ", 1 points above the test: never quote" in text
    text = explain_bars([bar("training", 0.90), bar("random", 0.94)], "pixels")
    assert "above the test" not in text


def test_explain_bars__squares_that_score_higher_are_no_good_sign():
    text = explain_bars([bar("random", 0.879), bar("blocked", 0.957)], "pixels")
    assert "Whole squares score 8 points more than random pixels. This is unusual" in text
    assert "as beside them" not in text


def estimated(sample, mapped, size):
    found = estimate_areas(np.array(sample), np.array(mapped))
    scaled = {
        name: [None if one is None else size * one for one in found[pixels]]
        for name, pixels in (("area", "pixels"), ("area_se", "pixels_se"))
    }
    return {**found, **scaled, "mapped": [size * count for count in mapped], "unit": "km2"}


def test_areas__mapped_and_estimated_with_intervals():
    found = areas(Run({"areas": estimated([[18, 2], [6, 24], [1, 3]], [5000, 4000, 100], 1e-3)}, 2))
    assert (found["unit"], found["without"], found["skipped"]) == ("km\u00b2", "0.100", "")
    first, second = found["rows"]
    assert first["class"].name == "class 1"
    assert first["mapped"] == "5.000"
    # (5000 * 18 / 20 + 4000 * 6 / 30 + 100 / 4) / 1000, +- 1.96 standard errors
    assert first["estimates"][0] == ("5.325", "0.892")
    assert [first["estimates"][place] for place in (1, 3)] == [("58.5", "9.8"), ("90.0", "13.5")]
    assert second["estimates"][3][0] == "80.0"
    assert found["accuracy"] == ("84.6", "9.8")


def test_areas__what_is_not_known():
    assert areas(Run({})) is None
    alone = {**estimated([[1, 0], [6, 24]], [5000, 4000], 1e-3), "skipped": "one label"}
    found = areas(Run({"areas": {**alone, "unit": "pixels", "mapped": [5000, 4000, 0]}}, 2))
    assert found["rows"][0]["mapped"] == "5,000"
    assert found["rows"][0]["estimates"][3] == ("100.0", "")
    assert (found["without"], found["accuracy"][1], found["skipped"]) == ("", "", "one label")
    none = {**estimated([[0, 0], [6, 24]], [5000, 4000], 1e-3), "skipped": "no label"}
    assert areas(Run({"areas": none}, 2))["rows"] == []
