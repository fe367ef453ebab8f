import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.memory import ROW_TILE
from eigenscape.learn.classify.kernels.centroid import angle_scores, class_sums, unit_means


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
    return rng.normal(size=(200, 5)).astype(np.float32), rng.integers(0, 4, 200)


def test_class_sums__against_loops(data):
    coordinates, classes = data
    found = class_sums(coordinates, classes, 6)
    expected = [coordinates[classes == number].astype(float).sum(axis=0) for number in range(6)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_class_sums__of_blocks_add_up(data):
    coordinates, classes = data
    parts = sum(
        class_sums(coordinates[here], classes[here], 4)
        for here in (slice(0, 71), slice(71, 71), slice(71, 200))
    )
    np.testing.assert_allclose(parts, class_sums(coordinates, classes, 4), rtol=1e-6, atol=1e-6)


def test_unit_means__length_one_or_zero():
    sums = np.array([[[3.0, 4.0], [0.0, 0.0]]])
    np.testing.assert_allclose(unit_means(sums), [[[0.6, 0.8], [0, 0]]])


def test_angle_scores__against_arccos(data):
    coordinates, classes = data
    means = unit_means(class_sums(coordinates, classes, 4))
    scores = angle_scores(coordinates, means)
    np.testing.assert_allclose(scores, (1 + np.cos(angles(coordinates, means))) / 2, atol=1e-6)
    assert scores.dtype == np.float32


@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 100))
def test_angle_scores__depend_on_directions_only(scale, seed):
    rng = np.random.default_rng(seed)
    coordinates = rng.normal(size=(30, 3)).astype(np.float32)
    means = unit_means(rng.normal(size=(4, 3)))
    lengths = np.float32(scale) * rng.uniform(0.5, 2, (30, 1)).astype(np.float32)
    again = angle_scores(coordinates * lengths, means)
    np.testing.assert_allclose(again, angle_scores(coordinates, means), atol=1e-5)


def test_angle_scores__on_a_mean_and_on_the_border():
    means = np.array([[1, 0], [0, 1]], np.float32)
    scores = angle_scores(np.array([[2, 0], [0, 3], [1, 1], [0, 0]], np.float32), means)
    border = (1 + np.sqrt(0.5)) / 2
    expected = [[1, 0.5], [0.5, 1], [border, border], [0.5, 0.5]]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_angle_scores__class_without_training_is_never_called(rng):
    coordinates = rng.normal(size=(50, 3)).astype(np.float32)
    means = unit_means(rng.normal(size=(3, 3)))
    means[1] = 0
    scores = angle_scores(coordinates, means)
    assert (scores[:, 1] == -np.inf).all()
    assert np.isfinite(scores[:, [0, 2]]).all()


def test_angle_scores__without_coordinates_there_are_none():
    coordinates = np.array([[np.nan, 1], [1, 0], [0, np.nan], [np.nan, np.nan]], np.float32)
    scores = angle_scores(coordinates, np.array([[1, 0], [0, 0]], np.float32))
    assert np.isnan(scores).all(axis=1).tolist() == [True, False, True, True]
    assert scores[1].tolist() == [1, -np.inf]


def test_angle_scores__same_answer_for_any_block(rng):
    coordinates = rng.normal(size=(2 * ROW_TILE + 100, 6)).astype(np.float32)
    means = unit_means(rng.normal(size=(5, 6)))
    whole = angle_scores(coordinates, means)
    for cut in (ROW_TILE, 2 * ROW_TILE):
        parts = [angle_scores(part, means) for part in np.split(coordinates, [cut])]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
