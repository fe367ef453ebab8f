import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.base.vectors import as_parts
from eigenscape.neighbors.kernels import routing


def test_hash_ties__are_uniform_and_do_not_follow_the_numbers():
    hashes = routing.hash_ties(np.arange(20_000))
    assert hashes.min() >= 0
    assert hashes.max() < 1
    assert np.unique(hashes).size == hashes.size
    counts, _ = np.histogram(hashes, 20, (0, 1))
    assert np.abs(counts - 1000).max() < 150
    assert abs(np.corrcoef(hashes[:-1], hashes[1:])[0, 1]) < 0.03
    assert abs(np.corrcoef(hashes, np.arange(20_000))[0, 1]) < 0.03


def test_hash_ties__take_numbers_beyond_32_bits():
    hashes = routing.hash_ties(np.array([0, 2**32, 2**40]))
    assert np.unique(hashes).size == 3


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_project_rows__equals_numpy(rng, kind):
    features = rng.standard_normal((50, 37)).astype(np.float32)
    features[rng.random((50, 37)) < 0.6] = 0
    direction = rng.standard_normal(37).astype(np.float32)
    parts = features if kind == "dense" else as_parts(sp.csr_array(features))
    expected = features.astype(np.float64) @ direction
    found = routing.project_rows(parts, np.arange(50), direction)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # A row comes out the same beside whatever others.
    some = np.array([7, 3, 7])
    np.testing.assert_array_equal(routing.project_rows(parts, some, direction), found[some])
