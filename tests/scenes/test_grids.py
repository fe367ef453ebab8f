import numpy as np
import pytest
from rasterio.crs import CRS

from eigenscape.scenes.grids import turns_onto
from eigenscape.scenes.types import Grid


@pytest.mark.parametrize(
    ("west", "x", "turns"),
    [(178, -179, 1), (178, 181, 0), (178, 10, 0), (-180, 180, -1), (-180, -180, 0), (-2, 359, -1)],
)
def test_turns_onto__points(west, x, turns):
    width = 360 if west == -180 else 4
    grid = Grid(2, width, CRS.from_epsg(4326).to_wkt(), (1, 0, west, 0, -1, 1))
    first, last, turn = turns_onto(grid, x, x)
    assert (first, last, turn) == (turns, turns, 360)


def test_turns_onto__spans_other_units_and_other_systems():
    transform = (1.0, 0.0, 178.0, 0.0, -1.0, 1.0)
    left, right = [-180, -np.inf, 0], [180, np.inf, 90]
    first, last, _ = turns_onto(Grid(2, 4, CRS.from_epsg(4326).to_wkt(), transform), left, right)
    assert (first.tolist(), last.tolist()) == ([0, 0, 0], [1, 0, 0])
    assert turns_onto(Grid(2, 4, CRS.from_epsg(4807).to_wkt(), transform), -221, -221)[0] == 1
    assert turns_onto(Grid(2, 4, CRS.from_epsg(32633).to_wkt(), transform), left, right)[2] == 0
