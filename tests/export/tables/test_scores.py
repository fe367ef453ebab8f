import csv
from types import SimpleNamespace

import numpy as np
import pytest

from eigenscape.export.tables.scores import write_scores
from eigenscape.learn.decide.kernels.areas import estimate_areas
from eigenscape.learn.decide.kernels.scores import OF_ALL, OF_CLASSES, accuracy
from eigenscape.scenes.types import Legend

CONFUSION = np.array([[8, 2, 0, 0], [1, 7, 1, 1], [0, 0, 0, 0]])


@pytest.fixture
def written(tmp_path):
    """Write scores of three classes; return the rows of every file."""

    def write(**more):
        intervals = {name: [0.25, 0.75] for name in OF_ALL}
        intervals |= {name: [[0.125, 0.5], None, None] for name in OF_CLASSES}
        scores = {
            "protocol": "pixels held out (blocked)", "confusion": CONFUSION.tolist(),
            "intervals": intervals, **accuracy(CONFUSION), **more,
        }  # fmt: skip
        context = SimpleNamespace(workspace=SimpleNamespace(file=lambda name: tmp_path / name))
        legend = Legend({3: "corn", 5: "=oats", 9: ""})
        files = write_scores(context, legend, [3, 5, 9], scores)
        return {
            name: list(csv.reader((tmp_path / file).read_text("utf-8").splitlines()))
            for name, file in files.items()
        }

    return write


def test_write_scores__measures_with_their_intervals(written):
    head, *rows = written()["scores"]
    assert head == ["protocol", "measure", "class", "name", "value", "low", "high"]
    assert [row[1] for row in rows[:5]] == list(OF_ALL)
    assert float(rows[0][4]) == pytest.approx(15 / 20)
    assert rows[0][5:] == ["0.25", "0.75"]
    by_class = {(row[1], row[2]): row for row in rows[5:]}
    assert len(by_class) == 12
    assert by_class["producers_accuracy", "3"][3:] == ["corn", "0.8", "0.125", "0.5"]
    assert by_class["iou", "3"][4] == f"{8 / 11:.6g}"
    # No program takes a name for a formula, and what was not measured is empty.
    assert by_class["f1", "5"][3].lstrip("'") == "=oats"
    assert not by_class["f1", "5"][3].startswith("=")
    assert by_class["producers_accuracy", "9"][4:] == ["", "", ""]


def test_write_scores__confusion_in_counts(written):
    head, *rows = written()["confusion"]
    assert head == ["class", "name", "3", "5", "9", "no class", "all"]
    assert rows[1][2:] == ["1", "7", "1", "1", "10"]
    assert "areas" not in written()


def test_write_scores__areas(written):
    found = estimate_areas(CONFUSION[:2, :2].T, np.array([60, 40]))
    found = {
        key: [*value, None] if isinstance(value, list) else value for key, value in found.items()
    }
    areas = {
        **found, "unit": "km2", "mapped": [6.0, 4.0, 0.0], "area": [5.5, 4.5, None],
        "area_se": [0.5, 0.5, None],
    }  # fmt: skip
    head, *rows = written(areas=areas)["areas"]
    assert head[2:5] == ["mapped (km2)", "area (km2)", "area_se (km2)"]
    assert rows[0][2:5] == ["6", "5.5", "0.5"]
    assert float(rows[0][5]) == pytest.approx(found["proportion"][0], rel=1e-5)
    assert rows[2][3:] == [""] * 8
