import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.centroid import class_sums, nearest_class, smallest_angle, unit_means
from eigenscape.memory import ROW_TILE


def angles(coordinates, means):
    """Return the angle of every sample to every mean, one by one."""
    found = np.full((len(coordinates), len(means)), np.inf)
    for i, x in enumerate(coordinates.astype(float)):
        for j, m in enumerate(means.astype(float)):
            if m.any() and x.any():
                found[i, j] = np.arccos(
                    np.clip(x @ m / np.linalg.norm(x) / np.linalg.norm(m), -1, 1)
                )
    return found


@pytest.fixture
def data(rng):
    coordinates = rng.normal(size=(200, 5)).astype(np.float32)
    return coordinates, rng.integers(0, 4, 200), rng.random((3, 200)) < 0.4


def test_class_sums__against_loops(data):
    coordinates, classes, train = data
    found = class_sums(coordinates, classes, train, 6)
    assert found.shape == (3, 6, 5)
    for fit in range(3):
        for number in range(6):
            chosen = train[fit] & (classes == number)
            np.testing.assert_allclose(
                found[fit, number],
                coordinates[chosen].astype(float).sum(axis=0),
                rtol=1e-6,
                atol=1e-6,
            )


def test_class_sums__of_blocks_add_up(data):
    coordinates, classes, train = data
    whole = class_sums(coordinates, classes, train, 4)
    parts = sum(
        class_sums(coordinates[here], classes[here], train[:, here], 4)
        for here in (slice(0, 71), slice(71, 71), slice(71, 200))
    )
    np.testing.assert_allclose(parts, whole, rtol=1e-6, atol=1e-6)


def test_unit_means__length_one_or_zero():
    sums = np.array([[[3.0, 4.0], [0.0, 0.0]]])
    np.testing.assert_allclose(unit_means(sums), [[[0.6, 0.8], [0, 0]]])


def test_smallest_angle__against_arccos(data):
    coordinates, classes, train = data
    means = unit_means(class_sums(coordinates, classes, train, 4))[0]
    expected = angles(coordinates, means)
    called, clear = smallest_angle(coordinates, means)
    np.testing.assert_array_equal(called, expected.argmin(axis=1))
    a, b = np.sort(expected, axis=1)[:, :2].T
    np.testing.assert_allclose(clear, (b - a) / (b + a), atol=1e-4)
    assert clear.dtype == np.float32


@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 100))
def test_smallest_angle__depends_on_directions_only(scale, seed):
    rng = np.random.default_rng(seed)
    coordinates = rng.normal(size=(30, 3)).astype(np.float32)
    means = unit_means(rng.normal(size=(4, 3)))
    lengths = np.float32(scale) * rng.uniform(0.5, 2, (30, 1)).astype(np.float32)
    called, clear = smallest_angle(coordinates, means)
    again, clear_again = smallest_angle(coordinates * lengths, means)
    np.testing.assert_array_equal(again, called)
    np.testing.assert_allclose(clear_again, clear, atol=1e-3)


def test_smallest_angle__on_a_mean_and_on_the_border():
    means = np.array([[1, 0], [0, 1]], np.float32)
    called, clear = smallest_angle(np.array([[2, 0], [0, 3], [1, 1]], np.float32), means)
    assert called[:2].tolist() == [0, 1]
    np.testing.assert_allclose(clear, [1, 1, 0], atol=1e-6)


def test_smallest_angle__class_without_training_is_never_called(rng):
    coordinates = rng.normal(size=(50, 3)).astype(np.float32)
    means = unit_means(rng.normal(size=(3, 3)))
    means[1] = 0
    called, clear = smallest_angle(coordinates, means)
    assert set(called) == {0, 2}
    assert np.isfinite(clear).all()
    means[0] = 0
    called, clear = smallest_angle(coordinates, means)
    assert set(called) == {2}
    assert (clear == 1).all()


def test_smallest_angle__without_coordinates_there_is_no_class():
    coordinates = np.array([[np.nan, 1], [1, 0], [0, np.nan], [np.nan, np.nan]], np.float32)
    called, clear = smallest_angle(coordinates, np.array([[1, 0], [0, 1]], np.float32))
    assert called.tolist() == [-1, 0, -1, -1]
    np.testing.assert_allclose(clear, [0, 1, 0, 0], atol=1e-6)


def test_smallest_angle__zero_vector_is_unclear():
    called, clear = smallest_angle(
        np.zeros((1, 2), np.float32), np.array([[1, 0], [0, 1]], np.float32)
    )
    assert called[0] in (0, 1)
    assert clear.tolist() == [0]


def test_nearest_class__fits_do_not_mix(data):
    coordinates, classes, train = data
    means = unit_means(class_sums(coordinates, classes, train, 4))
    coordinates[3] = np.nan
    called = nearest_class(coordinates, means)
    assert called.shape == (3, 200)
    for fit in range(3):
        np.testing.assert_array_equal(called[fit], smallest_angle(coordinates, means[fit])[0])
    assert (called[:, 3] == -1).all()


def test_nearest_class__same_answer_for_any_block(rng):
    rows = 2 * ROW_TILE + 100
    coordinates = rng.normal(size=(rows, 6)).astype(np.float32)
    means = unit_means(rng.normal(size=(2, 5, 6)))
    whole = nearest_class(coordinates, means)
    for cut in (ROW_TILE, 2 * ROW_TILE):
        parts = [nearest_class(part, means) for part in (coordinates[:cut], coordinates[cut:])]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    clear = smallest_angle(coordinates, means[0])[1]
    parts = [smallest_angle(part, means[0])[1] for part in np.split(coordinates, [ROW_TILE])]
    np.testing.assert_array_equal(np.concatenate(parts), clear)


def test_nearest_class__of_nothing():
    means = np.ones((2, 3, 4), np.float32)
    assert nearest_class(np.zeros((0, 4), np.float32), means).shape == (2, 0)
