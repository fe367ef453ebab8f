import numpy as np
import pytest

from eigenscape.labels.kernels.nearness import REACH, near


@pytest.mark.parametrize(("height", "width"), [(40, 30), (3, 200), (200, 2), (1, 1)])
def test_near__equals_all_distances(rng, height, width):
    train = np.flatnonzero(rng.random(height * width) < 0.01)
    train = train if len(train) else np.array([0])
    pixels = np.arange(height * width)
    row, column = np.divmod(pixels, width)
    away = np.hypot(row[:, None] - row[train], column[:, None] - column[train]).min(axis=1)
    np.testing.assert_array_equal(near(pixels, train, width), away <= REACH)
    some = rng.permutation(pixels)[: height * width // 2]
    np.testing.assert_array_equal(near(some, train, width), away[some] <= REACH)
