import numpy as np
import pytest
import scipy.sparse as sp

from eigenscape.neighbors.kernels.directions import leading_vector, principal_direction

KINDS = {"dense": np.asarray, "sparse": sp.csr_array}


def stretched(rng, rows, width, offset=100):
    points = offset + rng.standard_normal((rows, width)) * np.geomspace(9, 1, width)
    return (points @ np.linalg.qr(rng.standard_normal((width, width)))[0]).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "width"), [(5, 3), (500, 30), (20_000, 4), (300, 200), (100, 1)])
def test_principal_direction__agrees_with_the_svd(rng, kind, rows, width):
    # Of sparse rows the mean is never taken off, so that an offset costs digits.
    points = stretched(rng, rows, width, offset=100 if kind == "dense" else 1)
    found = principal_direction(KINDS[kind](points))
    kept = points[:: -(-rows // 1024)].astype(np.float64)
    kept -= kept.mean(axis=0)
    _, lengths, right = np.linalg.svd(kept, full_matrices=False)
    along = np.linalg.norm(kept @ found)
    # The rows vary as much as along the best, within what 12 Lanczos steps can tell.
    assert along > 0.995 * lengths[0]
    if len(lengths) == 1 or lengths[1] < 0.7 * lengths[0]:
        assert abs(found @ right[0]) > 0.999
    assert found.dtype == np.float32
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)
    assert found[np.abs(found).argmax()] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_principal_direction__of_one_dimensional_data_is_exact(rng, kind):
    direction = rng.standard_normal(200)
    direction *= np.sign(direction[np.abs(direction).argmax()]) / np.linalg.norm(direction)
    points = (rng.standard_normal((1000, 1)) * direction).astype(np.float32)
    np.testing.assert_allclose(principal_direction(KINDS[kind](points)), direction, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", [0, 3])
@pytest.mark.parametrize("value", [7.5, 7.3, 0])
@pytest.mark.parametrize("rows", [1, 2, 10, 3000])
def test_principal_direction__of_equal_rows_is_a_direction(kind, turn, value, rows):
    found = principal_direction(KINDS[kind](np.full((rows, 3), value, np.float32)), turn)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)
    if kind == "dense":
        np.testing.assert_array_equal(found, [1, 0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_principal_direction__of_a_turn_is_drawn_with_the_covariance(rng, kind):
    points = stretched(rng, 1000, 6, offset=0)
    rows = KINDS[kind](points)
    drawn = np.array([principal_direction(rows, turn) for turn in range(1, 401)])
    np.testing.assert_array_equal(drawn[0], principal_direction(rows, 1))
    assert np.abs(drawn[0] - drawn[1]).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-6)
    # Mean outer product: the axes are those of the data, the long ones more often.
    _, _, right = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    spread = ((drawn @ right.T) ** 2).mean(axis=0)
    assert (np.diff(spread) < 0).all()
    assert 0.4 < spread[0] < 0.9


def test_leading_vector__equals_eigh(rng):
    A = rng.standard_normal((30, 30))
    A = A @ np.diag(np.geomspace(1, 1e-3, 30)) @ A.T
    found = leading_vector(A.__matmul__, np.ones(30), 30)
    expected = np.linalg.eigh(A)[1][:, -1]
    assert abs(found @ expected) == pytest.approx(1, abs=1e-10)


def test_leading_vector__stops_where_the_krylov_space_ends():
    A = np.diag([3.0, 2.0, 0.0, 0.0])
    found = leading_vector(A.__matmul__, np.array([1.0, 1.0, 0.0, 0.0]), 4)
    np.testing.assert_allclose(np.abs(found), [1, 0, 0, 0], atol=1e-12)
