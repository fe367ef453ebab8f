from pathlib import Path

import numpy as np
import pytest

from eigenscape.spectrum.iteration.vectors import Vectors
from eigenscape.spectrum.kernels.gather import WIDTH


@pytest.fixture
def vectors(tmp_path):
    files = tuple(str(tmp_path / f"x-{group}") for group in range(3))
    return Vectors(files, 50, "float32").create()


def test_vectors__are_read_as_they_were_written(vectors, rng):
    assert (vectors.groups, vectors.columns) == (3, 3 * WIDTH)
    np.testing.assert_array_equal(vectors.read(slice(None)), np.zeros((50, 96)))
    values = rng.standard_normal((50, 96)).astype(np.float32)
    vectors.write(slice(0, 20), values[:20])
    vectors.write(slice(20, 50), values[20:])
    np.testing.assert_array_equal(vectors.read(slice(None)), values)
    np.testing.assert_array_equal(vectors.read(slice(7, 31)), values[7:31])
    assert vectors.read(slice(7, 31)).dtype == np.float64
    np.testing.assert_array_equal(vectors.attach(1), values[:, WIDTH : 2 * WIDTH])
    assert not vectors.attach(1).flags.writeable


def test_vectors__are_cut_and_joined_by_groups(vectors, rng):
    values = rng.standard_normal((50, 96)).astype(np.float32)
    vectors.write(slice(None), values)
    joined = vectors[2:] + vectors[:1]
    assert joined.columns == 64
    expected = np.hstack([values[:, 64:], values[:, :32]])
    np.testing.assert_array_equal(joined.read(slice(None)), expected)
    assert vectors[:0].columns == 0
    assert vectors[:0].read(slice(0, 5)).shape == (5, 0)


def test_create__keeps_what_is_there(vectors):
    vectors.attach(0, "r+")[:] = 3
    again = vectors.create()
    np.testing.assert_array_equal(again.attach(0), 3)


def test_remove__deletes_the_files_if_there_are_any(vectors):
    vectors.remove()
    assert not any(Path(file).exists() for file in vectors.files)
    vectors.remove()
