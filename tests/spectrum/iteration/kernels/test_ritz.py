import numpy as np
import pytest
import scipy.linalg

from eigenscape.spectrum.iteration.kernels.ritz import rank, rayleigh_ritz


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
    assert rank(rotation.values) == 12
    np.testing.assert_allclose(rotation.values, expected, rtol=1e-8)
    X = Y @ rotation.C
    np.testing.assert_allclose(X.T @ X, np.eye(12), atol=1e-9)
    np.testing.assert_allclose(X.T @ A @ X, np.diag(expected), atol=1e-7)


def test_rayleigh_ritz__equals_scipy(rng, A):
    Y = rng.standard_normal((80, 20))
    G, H = Y.T @ Y, Y.T @ A @ Y
    expected = scipy.linalg.eigh(H, G, eigvals_only=True)
    np.testing.assert_allclose(rayleigh_ritz(G, H).values, expected, atol=1e-11)


def test_rayleigh_ritz__says_which_columns_carry_no_direction(rng, A):
    Y = rng.standard_normal((80, 4))
    Y[:, 1] = Y[:, 0] - Y[:, 3]
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y)
    assert rank(rotation.values) == 3
    assert np.isinf(rotation.values[3])
    assert not rotation.C[:, 3].any()
    X = (Y @ rotation.C)[:, :3]
    np.testing.assert_allclose(X.T @ X, np.eye(3), atol=1e-7)
