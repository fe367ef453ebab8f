from types import SimpleNamespace

import numpy as np
import pytest
from rasterio.crs import CRS

from eigenscape.labels.training import Labelled
from eigenscape.learn.decide.assessment import find_intervals, pixel_area
from eigenscape.learn.decide.kernels import intervals
from eigenscape.learn.decide.kernels.intervals import bootstrap
from eigenscape.scenes.types import Grid

UTM = CRS.from_epsg(32633).to_wkt()
FEET = CRS.from_epsg(2264).to_wkt()


@pytest.mark.parametrize(
    ("grid", "size", "unit"),
    [
        (Grid(9, 9, UTM, (30.0, 0, 0, 0, -30.0, 0)), 0.0009, "km2"),
        (Grid(9, 9, UTM, (3.0, 4.0, 0, 4.0, -3.0, 0)), 25e-6, "km2"),
        (Grid(9, 9, FEET, (10.0, 0, 0, 0, -10.0, 0)), (3.048006096) ** 2 / 1e6, "km2"),
        (Grid(9, 9, CRS.from_epsg(4326).to_wkt(), (1e-4, 0, 0, 0, -1e-4, 0)), 1, "pixels"),
        (Grid(9, 9, CRS.from_epsg(3857).to_wkt(), (30.0, 0, 0, 0, -30.0, 5.6e6)), 1, "pixels"),
        (Grid(9, 9, CRS.from_epsg(4087).to_wkt(), (30.0, 0, 1.4e6, 0, -30.0, 6.7e6)), 1, "pixels"),
        (Grid(9, 9), 1, "pixels"), (Grid(9, 1), 1, "samples"),
    ],
)  # fmt: skip
def test_pixel_area(grid, size, unit):
    found = pixel_area(grid)
    assert found[0] == pytest.approx(size, rel=1e-6)
    assert found[1] == unit


@pytest.fixture
def fitted(rng):
    """Two fits of 600 labelled pixels, on a third each, and their scores."""
    classes, train = rng.integers(0, 3, 600), rng.random((2, 600)) < 0.3
    labelled = Labelled(np.arange(600), classes, np.arange(1, 4, dtype=np.uint16), train)
    scores = rng.random((2, 600, 3), np.float32) + 0.4 * np.eye(3, dtype=np.float32)[classes]
    return SimpleNamespace(called=lambda number: scores[number].argmax(axis=1)), labelled, scores


def test_find_intervals__are_those_of_the_squares_of_the_scene(fitted, monkeypatch):
    monkeypatch.setattr(intervals, "_REPLICATES", 50)
    source, labelled, scores = fitted
    grid = Grid(30, 20)
    keys = {"fits": [0, 1], "test": False, "seed": 3}
    found = find_intervals(source, labelled, np.arange(600), grid, **keys)
    # Twelve squares along the longer side: three pixels each.
    row, column = np.divmod(np.arange(600), 20)
    square = (row // 3) * 7 + column // 3
    trials = [
        (square[held], labelled.classes[held], scores[number].argmax(axis=1)[held])
        for number, held in enumerate(~labelled.train)
    ]
    expected = bootstrap(trials, 70, 3, np.random.default_rng([3, 5]))
    assert {key: found[key] for key in expected} == expected
    assert found["resampled"] == "squares of the scene"
    assert found["groups"] == 70


def test_find_intervals__of_a_table_says_so(fitted, monkeypatch):
    monkeypatch.setattr(intervals, "_REPLICATES", 50)
    source, labelled, _ = fitted
    found = find_intervals(source, labelled, np.arange(600), Grid(600, 1), [0], test=False, seed=3)
    assert "a table has no squares" in found["resampled"]
    assert found["groups"] > 200
    low, high = found["overall_accuracy"]
    assert low < high


@pytest.mark.parametrize(
    ("grid", "reason"),
    [
        (Grid(30, 20), "all 70 squares of the scene score alike, so the spread of others is not known"),
        (Grid(30_000, 20), "it takes two or more squares of the scene with held-out pixels"),
    ],
)  # fmt: skip
def test_find_intervals__of_no_spread_say_why_there_are_none(fitted, grid, reason):
    _, labelled, _ = fitted
    source = SimpleNamespace(called=lambda number: labelled.classes)
    found = find_intervals(source, labelled, np.arange(600), grid, [0, 1], test=False, seed=3)
    assert (found["overall_accuracy"], found["skipped"]) == (None, reason)


def test_find_intervals__means_with_a_class_of_one_square_say_why_there_are_none(fitted):
    source, labelled, _ = fitted
    labelled.classes[labelled.classes == 2] = 0
    labelled.classes[0], labelled.train[:, 0] = 2, False
    found = find_intervals(
        source, labelled, np.arange(600), Grid(30, 20), [0, 1], test=False, seed=3
    )
    assert found["overall_accuracy"] is not None
    assert found["mean_iou"] is None
    assert found["no_means"] == "the held-out pixels of class 3 lie in 1 of 70 squares of the scene"


def test_find_intervals__nothing_is_held_out(fitted):
    source, labelled, _ = fitted
    labelled.train[:] = True
    found = find_intervals(source, labelled, np.arange(600), Grid(30, 20), [0], test=False, seed=3)
    assert found["skipped"] == "no pixel is held out"
