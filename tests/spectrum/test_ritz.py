import numpy as np
import pytest
import scipy.linalg

from eigenscape.spectrum import ritz
from eigenscape.spectrum.ritz import rayleigh_ritz


@pytest.fixture
def A(rng):
    A = rng.standard_normal((80, 80))
    return A + A.T


@pytest.mark.parametrize("spread", [1, 1e-6, 1e-12])
def test_rayleigh_ritz__equals_eigh_of_the_pencil(rng, A, spread):
    # Lengths of columns do not matter, however different.
    Y = rng.standard_normal((80, 12)) * np.geomspace(1, spread, 12)
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y)
    Q, _ = np.linalg.qr(Y)
    expected = np.linalg.eigvalsh(Q.T @ A @ Q)
    assert rotation.rank == 12
    np.testing.assert_allclose(rotation.values, expected, rtol=1e-8)
    X = Y @ rotation.C
    np.testing.assert_allclose(X.T @ X, np.eye(12), atol=1e-9)
    np.testing.assert_allclose(X.T @ A @ X, np.diag(expected), atol=1e-7)


def test_rayleigh_ritz__equals_scipy(rng, A):
    Y = rng.standard_normal((80, 20))
    G, H = Y.T @ Y, Y.T @ A @ Y
    expected = scipy.linalg.eigh(H, G, eigvals_only=True)
    np.testing.assert_allclose(rayleigh_ritz(G, H).values, expected, atol=1e-11)


@pytest.mark.parametrize("share", [0, 1e-6, 1])
def test_rayleigh_ritz__stays_orthogonal_to_what_is_locked(rng, A, share):
    values, vectors = np.linalg.eigh(A)
    V, locked = vectors[:, :5], values[:5]
    Y = rng.standard_normal((80, 10))
    Y -= (1 - share) * V @ (V.T @ Y)
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y, V.T @ Y, locked)
    assert rotation.C.shape == (15, 10)
    X = np.hstack([V, Y]) @ rotation.C
    np.testing.assert_allclose(V.T @ X, 0, atol=1e-12)
    np.testing.assert_allclose(X.T @ X, np.eye(10), atol=1e-12)
    Q, _ = np.linalg.qr(Y - V @ (V.T @ Y))
    np.testing.assert_allclose(rotation.values, np.linalg.eigvalsh(Q.T @ A @ Q), atol=1e-11)


def test_rayleigh_ritz__finds_nothing_in_what_is_locked(rng, A):
    values, vectors = np.linalg.eigh(A)
    V, locked = vectors[:, :6], values[:6]
    Y = rng.standard_normal((80, 4))
    Y[:, 1] = V @ rng.standard_normal(6)
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y, V.T @ Y, locked)
    assert rotation.rank == 3
    X = (np.hstack([V, Y]) @ rotation.C)[:, :3]
    np.testing.assert_allclose(V.T @ X, 0, atol=1e-7)
    np.testing.assert_allclose(X.T @ X, np.eye(3), atol=1e-7)


def test_rayleigh_ritz__drops_directions_that_are_not_there(rng):
    A = np.diag(np.arange(30.0))
    Y = rng.standard_normal((30, 6))
    Y[:, 4], Y[:, 5] = Y[:, 0] - 2 * Y[:, 1], 0
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y)
    assert rotation.rank == 4
    Q, _ = np.linalg.qr(Y[:, :4])
    np.testing.assert_allclose(rotation.values[:4], np.linalg.eigvalsh(Q.T @ A @ Q), rtol=1e-9)
    assert np.isinf(rotation.values[4:]).all()
    X = Y @ rotation.C
    np.testing.assert_allclose(X.T @ X, np.diag([1.0] * 4 + [0] * 2), atol=1e-9)


@pytest.mark.parametrize(("distance", "rank"), [(1e-3, 12), (8e-6, 12), (1e-9, 11), (0, 11)])
def test_rayleigh_ritz__sorts_out_nearly_dependent_columns(rng, A, distance, rank):
    Y = np.linalg.qr(rng.standard_normal((80, 13)))[0]
    Y[:, 7] = Y[:, 2] + distance * Y[:, 12]
    Y = Y[:, :12]
    G, H = Y.T @ Y, Y.T @ A @ Y
    assert (ritz._whiten_by_cholesky(G.copy(), H.copy()) is None) == (distance < 1e-5)
    rotation = rayleigh_ritz(G, H)
    assert rotation.rank == rank
    assert (np.diff(rotation.values[:rank]) >= 0).all()
    assert np.isinf(rotation.values[rank:]).all()
    np.testing.assert_array_equal(rotation.C[:, rank:], 0)
    X = (Y @ rotation.C)[:, :rank]
    np.testing.assert_allclose(X.T @ X, np.eye(rank), atol=1e-4)
    Q, _ = np.linalg.qr(Y if rank == 12 else np.delete(Y, 7, axis=1))
    np.testing.assert_allclose(rotation.values[:rank], np.linalg.eigvalsh(Q.T @ A @ Q), atol=1e-3)


def test_rayleigh_ritz__of_zeros_has_no_rank():
    rotation = rayleigh_ritz(np.zeros((4, 4)), np.zeros((4, 4)))
    assert rotation.rank == 0
    np.testing.assert_array_equal(rotation.C, np.zeros((4, 4)))
