import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from eigenscape.base.memory import ROW_TILE
from eigenscape.errors import SceneError
from eigenscape.features.kernels import (
    add_moments,
    add_products,
    centre_products,
    difference_scatter,
    noise_fractions,
    orthoprojector,
    principal_components,
    project,
    project_sparse,
    sparse_scatter,
    sparse_sums,
)


@given(bands=st.integers(1, 40), share=st.floats(0.01, 1), seed=st.integers(0, 2**63 - 1))
def test_orthoprojector__has_orthogonal_columns_of_equal_length(bands, share, seed):
    dimension = max(1, int(share * bands))
    basis = orthoprojector(bands, dimension, seed)
    np.testing.assert_allclose(
        basis.T @ basis, np.eye(dimension) * bands / dimension, atol=1e-12 * bands
    )


def test_orthoprojector__keeps_squared_distances_on_average(rng):
    difference = rng.standard_normal(60)
    ratios = [
        np.sum((difference @ orthoprojector(60, 15, seed)) ** 2) / np.sum(difference**2)
        for seed in range(400)
    ]
    # A ratio deviates by about sqrt(2 / 15); the mean of 400 by a twentieth of that.
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)


def test_orthoprojector__depends_on_the_seed_alone():
    np.testing.assert_array_equal(orthoprojector(30, 7, 3), orthoprojector(30, 7, 3))
    assert np.abs(orthoprojector(30, 7, 3) - orthoprojector(30, 7, 4)).max() > 0.1


def test_orthoprojector__favours_no_direction():
    # Haar distributed: every entry is as often positive as negative, the diagonal too.
    signs = np.mean([np.sign(orthoprojector(4, 4, seed)) for seed in range(400)], axis=0)
    assert np.abs(signs).max() < 0.2


@pytest.mark.parametrize("dimension", [0, -1, 11])
def test_orthoprojector__refuses_impossible_dimensions(dimension):
    with pytest.raises(ValueError, match=r"must lie in 1 \.\.\. 10"):
        orthoprojector(10, dimension, 0)


@pytest.mark.parametrize("rows", [1, ROW_TILE - 1, ROW_TILE + 1, 2 * ROW_TILE])
def test_moments__equal_numpy(rng, rows):
    samples = (1e4 + rng.standard_normal((rows, 6))).astype(np.float32)
    shift = samples[:10].mean(axis=0, dtype=np.float64)
    total, scatter, squares = np.zeros(6), np.zeros((6, 6)), np.zeros(6)
    add_moments(samples, shift, total, scatter)
    add_moments(samples, shift, np.zeros(6), squares)
    centred = samples.astype(np.float64) - shift
    np.testing.assert_allclose(total, centred.sum(axis=0), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(scatter, centred.T @ centred, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(squares, np.diag(scatter), rtol=1e-12)


def test_principal_components__equal_sklearn(rng):
    samples = rng.standard_normal((500, 12)) @ rng.standard_normal((12, 12))
    centred = samples - samples.mean(axis=0)
    basis, variance = principal_components(centred.T @ centred / 500, 5)
    peer = PCA(5, svd_solver="full").fit(samples)
    np.testing.assert_allclose(np.abs(peer.components_ @ basis), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(variance, peer.explained_variance_ * 499 / 500, rtol=1e-10)
    assert (basis[np.abs(basis).argmax(axis=0), np.arange(5)] > 0).all()


def test_principal_components__of_a_zero_matrix_are_orthonormal():
    basis, variance = principal_components(np.zeros((4, 4)), 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-14)
    np.testing.assert_array_equal(variance, 0)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("projected", [False, True])
def test_project__equals_numpy(rng, shifted, projected):
    samples = rng.standard_normal((ROW_TILE + 5, 9)).astype(np.float32)
    shift = rng.standard_normal(9).astype(np.float32) if shifted else None
    basis = rng.standard_normal((9, 4)).astype(np.float32) if projected else None
    expected = samples - (0 if shift is None else shift)
    expected = expected if basis is None else expected @ basis
    found = project(samples, shift, basis)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_project__gives_the_same_bits_for_any_block(rng, tiles):
    samples = rng.standard_normal((4 * ROW_TILE + 77, 33)).astype(np.float32)
    basis = orthoprojector(33, 10, 0).astype(np.float32)
    step = tiles * ROW_TILE
    pieces = [project(samples[at : at + step], None, basis) for at in range(0, len(samples), step)]
    np.testing.assert_array_equal(np.concatenate(pieces), project(samples, None, basis))


@pytest.fixture
def counts(rng):
    return rng.poisson(0.3, (300, 12)).astype(np.float32)


def test_sparse_moments__equal_numpy(counts):
    counts[:, 4], counts[:, 5] = 0, np.float32(0.7)
    table, exact = sp.csr_array(counts), counts.astype(np.float64)
    mean = sparse_sums(table) / 300
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-14)
    scatter = sparse_scatter(table, mean)
    np.testing.assert_allclose(scatter / 300, exact.var(axis=0), rtol=1e-12)
    assert (scatter[[4, 5]] == 0).all()
    products = np.zeros((12, 12))
    for half in (table[:100], table[100:]):
        add_products(half.data, half.indices, half.indptr, products)
    centre_products(products, mean, 300)
    np.testing.assert_allclose(products, np.cov(exact.T, bias=True), atol=1e-14)


@pytest.mark.parametrize("shape", [(12,), (12, 5), (12, 1)])
@pytest.mark.parametrize("shifted", [False, True])
def test_project_sparse__equals_project(rng, counts, shape, shifted):
    basis = rng.standard_normal(shape).astype(np.float32)
    shift = rng.random(12).astype(np.float32) if shifted else None
    found = project_sparse(sp.csr_array(counts), shift, basis)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, project(counts, shift, basis), rtol=1e-4, atol=1e-5)


def test_project__of_a_diagonal(rng):
    samples, scale = rng.random((20, 6)).astype(np.float32), np.arange(6, dtype=np.float32)
    expected = project(samples, samples[0], np.diag(scale))
    np.testing.assert_array_equal(project(samples, samples[0], scale), expected)


def test_difference_scatter__equals_numpy(rng):
    samples = rng.standard_normal((6000, 5)).astype(np.float32)
    one, two = rng.integers(0, 6000, (2, 9000))
    differences = samples[one].astype(np.float64) - samples[two]
    found = difference_scatter(samples, one, two)
    np.testing.assert_allclose(found, differences.T @ differences, rtol=1e-12)


def test_noise_fractions__equal_the_generalized_eigenproblem(rng):
    bands = 8
    signal, noise = (A @ A.T for A in rng.standard_normal((2, bands, bands)))
    basis, ratio = noise_fractions(signal + noise, noise, 5)
    values = scipy.linalg.eigh(signal + noise, noise, eigvals_only=True)[::-1]
    np.testing.assert_allclose(ratio, values[:5], rtol=1e-8)
    np.testing.assert_allclose(basis.T @ noise @ basis, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(
        basis.T @ (signal + noise) @ basis, np.diag(ratio), atol=1e-6 * ratio[0]
    )


def test_noise_fractions__do_not_depend_on_the_units_of_the_bands(rng):
    A, B = rng.standard_normal((2, 6, 6))
    units = np.array([1e-6, 1, 1e3, 7, 0.1, 1e5])
    covariance, noise = A @ A.T + B @ B.T, B @ B.T
    basis, ratio = noise_fractions(covariance, noise, 3)
    scaled, same = noise_fractions(
        covariance * np.outer(units, units), noise * np.outer(units, units), 3
    )
    np.testing.assert_allclose(same, ratio, rtol=1e-8)
    np.testing.assert_allclose(np.abs(units[:, None] * scaled), np.abs(basis), rtol=1e-5)


@pytest.mark.parametrize("constant", [0, slice(None)])
def test_noise_fractions__of_bands_without_variance_are_finite(rng, constant):
    A, B = rng.standard_normal((2, 6, 6))
    covariance, noise = A @ A.T + B @ B.T, B @ B.T
    for matrix in (covariance, noise):
        matrix[constant], matrix[:, constant] = 0, 0
    basis, _ = noise_fractions(covariance, noise, 4)
    assert np.isfinite(basis).all()
    np.testing.assert_array_equal(basis[constant], 0)


def test_noise_fractions__without_noise_are_refused(rng):
    A = rng.standard_normal((4, 4))
    with pytest.raises(SceneError, match=r"equal to their neighbours.*\"pca\""):
        noise_fractions(A @ A.T, np.zeros((4, 4)), 2)
