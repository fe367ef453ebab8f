import numpy as np

from eigenscape.applied.shares import FAR, neighbor_shares, trust

STARTS = np.array([0, 2, 4, 5, 5])
INDEX = np.array([0, 1, 1, 2, 3])
DISTANCE = np.array([1.0, 2.0, 0.0, 3.0, 6.0], np.float32)


def test_neighbor_shares__are_the_harmonic_extension():
    classes = np.array([0, 1, 2, -1], np.int32)
    sure = np.array([0.8, 1.0, 0.7, 0.0], np.float32)
    p = np.array([[0.8, 0.1, 0.1], [0, 1, 0], [0.15, 0.15, 0.7]])
    weights = np.array([3, 1, 2, 2, 5], np.float32)
    twins = np.array([-1, 1, -1, -1])
    found = neighbor_shares((STARTS, INDEX, DISTANCE), weights, twins, classes, sure, 3)
    np.testing.assert_allclose(found[0], (3 * p[0] + p[1]) / 4, atol=1e-6)
    np.testing.assert_allclose(found[1], p[1], atol=1e-6)  # its twin's
    assert np.isnan(found[2:]).all()  # a neighbour without a class, no neighbour


def test_neighbor_shares__of_a_block_none_of_whose_neighbours_has_a_class():
    classes, sure = np.full(4, -1, np.int32), np.zeros(4, np.float32)
    weights, twins = np.ones(5, np.float32), np.array([-1, 1, -1, -1])
    found = neighbor_shares((STARTS, INDEX, DISTANCE), weights, twins, classes, sure, 3)
    assert found.shape == (4, 3)
    assert np.isnan(found).all()


def test_trust__falls_with_the_square_of_the_distance():
    scale = np.array([1.0, 1.0, 1.0, 1.5], np.float32)
    found = trust((STARTS, INDEX, DISTANCE), scale)
    np.testing.assert_allclose(found, [1, (FAR / 3) ** 2, (FAR / 4) ** 2, 0])
