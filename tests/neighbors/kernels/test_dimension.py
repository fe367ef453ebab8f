import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from eigenscape.base.memory import ROW_TILE
from eigenscape.neighbors.kernels.dimension import SEGMENT_ROWS, intrinsic_dimension, log_sums


def distances(points, k=12):
    return NearestNeighbors(n_neighbors=k).fit(points).kneighbors()[0].astype(np.float32)


def in_space(points, rng, columns=15):
    """Turn points into a space of more dimensions."""
    turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    return points @ turn[: points.shape[1]]


@pytest.mark.parametrize(("dimension", "tolerance"), [(1, 0.02), (2, 0.05), (4, 0.1)])
def test_intrinsic_dimension__of_spheres(rng, dimension, tolerance):
    points = rng.normal(size=(6000, dimension + 1))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = intrinsic_dimension(log_sums(distances(in_space(points, rng))))
    assert found.value == pytest.approx(dimension, rel=tolerance)
    assert found.low < found.value < found.high
    assert found.samples == 6000


def test_intrinsic_dimension__of_a_cube(rng):
    found = intrinsic_dimension(log_sums(distances(in_space(rng.random((6000, 3)), rng))))
    assert found.value == pytest.approx(3, rel=0.07)


def test_intrinsic_dimension__interval_covers_what_is_drawn_from_the_model(rng):
    # T_j / T_k of independent lists, exactly as the model has it: 95 % of intervals hold 5.
    covered = 0
    for _ in range(200):
        ratios = np.sort(rng.random((4096, 9)), axis=1) ** (1 / 5)
        lengths = np.column_stack([ratios, np.ones(4096)])
        found = intrinsic_dimension(log_sums(lengths))
        covered += found.low <= 5 <= found.high
    assert 175 <= covered <= 200


def test_log_sums__by_hand():
    lengths = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 6.0], [1.0, np.inf, np.inf], [0.0, 0.0, 0.0]])
    total = np.log(4) + np.log(2) + np.log(2)
    np.testing.assert_allclose(log_sums(lengths), [[total, 3, 2]])
    np.testing.assert_allclose(log_sums(lengths, 2), [[np.log(2), 1, 1]])
    assert intrinsic_dimension(log_sums(lengths)).value == pytest.approx(3 / total)


def test_log_sums__of_blocks_of_whole_segments_join(rng):
    lengths = np.sort(rng.random((2 * ROW_TILE + 300, 5)), axis=1)
    whole = log_sums(lengths)
    assert len(whole) == -(-len(lengths) // SEGMENT_ROWS)
    cut = 3 * SEGMENT_ROWS
    parts = np.concatenate([log_sums(lengths[:cut]), log_sums(lengths[cut:])])
    np.testing.assert_allclose(parts, whole)


def test_intrinsic_dimension__duplicates_do_not_matter(rng):
    points = rng.normal(size=(4000, 2))
    lengths = distances(points)
    copied = lengths.copy()
    copied[::7, 1:] = lengths[::7, :-1]
    copied[::7, 0] = 0
    found = [intrinsic_dimension(log_sums(each)).value for each in (lengths, copied)]
    assert found[1] == pytest.approx(found[0], rel=0.02)


def test_intrinsic_dimension__of_nothing_and_of_equal_distances():
    nothing = intrinsic_dimension(log_sums(np.zeros((5, 4))))
    assert np.isnan(nothing.value)
    assert nothing.samples == 0
    assert intrinsic_dimension(log_sums(np.ones((5, 4)))).value == np.inf
    one = intrinsic_dimension(log_sums(np.array([[1.0, 2.0]])))
    assert one.value == pytest.approx(1 / np.log(2))
    assert np.isnan(one.low)
