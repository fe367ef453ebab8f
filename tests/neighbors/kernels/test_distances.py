import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.base.vectors import as_parts
from eigenscape.neighbors.kernels.distances import projected, squared
from eigenscape.neighbors.kernels.lists import squared_pairs


def all_pairs(parts, n):
    lists = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    return squared_pairs(parts, np.arange(n), lists)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_squared__sparse_rows_equal_dense_ones(rng, share):
    # Rows without entries, with all, and with entries in other columns than their neighbours'.
    points = rng.integers(-9, 9, (40, 23)) * (rng.random((40, 23)) < share)
    points = points.astype(np.float32)
    points[3] = 0
    dense, sparse = all_pairs(points, 40), all_pairs(as_parts(sp.csr_array(points)), 40)
    expected = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(sparse, expected)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_squared__loses_nothing_to_cancellation(rng, kind):
    points = np.full((3, 70), 1e4, np.float32)
    points[1, 0] += np.float32(0.01)
    points[2] += rng.standard_normal(70).astype(np.float32)
    parts = points if kind == "dense" else as_parts(sp.csr_array(points))
    found = all_pairs(parts, 3)
    wide = points.astype(np.float64)
    expected = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diagonal(found), 0)


def test_distances__exist_in_compiled_code_only():
    with pytest.raises(NotImplementedError, match=r"squared\(\) exists in compiled code only"):
        squared(np.ones((2, 2)), 0, np.ones((2, 2)), 1)
    with pytest.raises(NotImplementedError, match=r"projected\(\) exists in compiled code only"):
        projected(np.ones((2, 2)), 0, np.ones(2))
