import math

import numpy as np
import pytest

from eigenscape.neighbors.kernels.metrics import chord_of, lengths


def test_lengths__are_roots():
    found = lengths(np.array([0, 4, 2], np.float32), "euclidean")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.sqrt(np.array([0, 4, 2], np.float32)))


def test_lengths__are_angles_to_the_last_digit():
    angles = np.array([0, 1e-6, 1e-3, 0.5, math.pi / 2, 3, math.pi])
    squared = ((2 * np.sin(angles / 2)) ** 2).astype(np.float32)
    found = lengths(squared, "angle")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:-1], angles[:-1], rtol=1e-5)
    # A cosine in single precision knows no angle below 2e-4.
    assert np.arccos(np.float32(1) - squared[1] / 2) == 0


def test_lengths__of_opposite_vectors_are_pi_in_spite_of_rounding():
    squared = np.array([4, np.nextafter(np.float32(4), np.float32(5))])
    np.testing.assert_array_equal(lengths(squared, "angle"), np.float32(math.pi))


@pytest.mark.parametrize("radius", [1e-9, 0.1, 1.0, 3.0])
def test_chord_of__is_the_inverse_of_lengths(radius):
    assert chord_of(radius, "euclidean") == radius
    chord = np.array([chord_of(radius, "angle")], np.float32)
    assert lengths(chord**2, "angle")[0] == pytest.approx(radius, rel=1e-6)


def test_chord_of__a_half_turn_leaves_nobody_out():
    assert chord_of(math.pi, "angle") > 2.001
    assert chord_of(math.pi, "euclidean") == math.pi
