from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from eigenscape.spectrum.kernels import products as kernels
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Operator, RowBlock

DTYPES = [(np.float32, 1e-5), (np.float64, 1e-13)]


def symmetric(rng, n, density=0.2):
    S = scipy.sparse.random_array((n, n), density=density, rng=rng, dtype=np.float64)
    return scipy.sparse.csr_array(S + S.T)


def operator_of(S, diagonal, dtype, count=1):
    cuts = np.linspace(0, S.shape[0], count + 1).astype(int)
    blocks = [
        RowBlock(
            int(first), part.indptr.astype(np.int64), part.indices.astype(np.int32),
            part.data.astype(dtype),
        )
        for first, part in ((i, S[i:j]) for i, j in pairwise(cuts))
    ]  # fmt: skip
    return Operator(blocks, diagonal.astype(dtype), np.ones(len(diagonal)), False, 1.0)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("count", [1, 3, 50])
def test_filter_step__equals_the_product_of_scipy(rng, dtype, tolerance, count):
    n = 50
    S, diagonal = symmetric(rng, n), rng.random(n)
    X, Z = rng.standard_normal((2, n, WIDTH)).astype(dtype)
    expected = 0.7 * (diagonal[:, None] * X - S @ X) - 1.3 * X - 0.4 * Z
    kept = X.copy()
    operator_of(S, diagonal, dtype, count).step(X, Z, 0.7, -1.3, 0.4)
    np.testing.assert_allclose(Z, expected, atol=10 * tolerance)
    np.testing.assert_array_equal(X, kept)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_filter_step__passes_over_empty_rows_and_blocks(rng, dtype, tolerance):
    n = 30
    kept = (np.arange(n) >= 11) & (np.arange(n) % 3 > 0)
    keep = scipy.sparse.diags_array(kept.astype(float))
    S = scipy.sparse.csr_array(keep @ symmetric(rng, n, 0.3) @ keep)
    S.eliminate_zeros()
    diagonal = rng.random(n)
    # The first block has no entry at all, the last ends with an empty row.
    operator = operator_of(S, diagonal, dtype, 3)
    assert len(operator.blocks[0].data) == 0
    X = rng.standard_normal((n, WIDTH)).astype(dtype)
    Z = np.zeros_like(X)
    operator.step(X, Z, 1.0, 0.0, 0.0)
    np.testing.assert_allclose(Z, diagonal[:, None] * X - S @ X, atol=10 * tolerance)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 64])
def test_filter_step__adds_rows_of_any_length(rng, length):
    # Rows are fetched eight entries ahead: none may be missed or counted twice at the ends.
    n = 65
    S = np.zeros((n, n))
    S[:length, n - length :] = rng.random((length, length))
    S = scipy.sparse.csr_array(S)
    X = rng.standard_normal((n, WIDTH))
    Z = np.zeros_like(X)
    operator_of(S, np.zeros(n), np.float64).step(X, Z, -1.0, 0.0, 0.0)
    np.testing.assert_allclose(Z, S @ X, atol=1e-13)


def test_filter_step__reads_every_column_by_itself(rng):
    n = 40
    operator = operator_of(symmetric(rng, n), rng.random(n), np.float32)
    X = rng.standard_normal((n, WIDTH)).astype(np.float32)
    Z = np.zeros((2, n, WIDTH), np.float32)
    operator.step(X, Z[0], 0.3, 0.2, 0.0)
    operator.step(X[:, ::-1].copy(), Z[1], 0.3, 0.2, 0.0)
    np.testing.assert_array_equal(Z[0], Z[1][:, ::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiply__is_in_double_whatever_is_stored(rng, dtype):
    n = 60
    S, diagonal = symmetric(rng, n), rng.random(n)
    operator = operator_of(S, diagonal, dtype, 3)
    x = rng.standard_normal(n)
    image = operator.times(x)
    assert image.dtype == np.float64
    np.testing.assert_allclose(image, operator.matrix() @ x, atol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_null_kernels__project_every_component_apart(rng, dtype, tolerance):
    n, pieces = 90, 4
    null = rng.random(n) + 0.1
    component = rng.permutation(np.arange(n) % pieces).astype(np.int32)
    basis = null[:, None] * (component[:, None] == np.arange(pieces))
    basis /= np.linalg.norm(basis, axis=0)
    X = rng.standard_normal((n, WIDTH)).astype(dtype)
    expected = X - basis @ (basis.T @ X)
    shares = np.zeros((pieces, WIDTH))
    kernels.sum_null(null, component.astype(np.int64), X, shares)
    shares /= np.bincount(component, null * null, pieces)[:, None]
    kernels.subtract_null(null, component, shares, X)
    np.testing.assert_allclose(X, expected, atol=10 * tolerance)
    np.testing.assert_allclose(basis.T @ X, 0, atol=10 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residual_squares__sums_in_double(rng, dtype):
    X, image = rng.standard_normal((2, 70, WIDTH)).astype(dtype)
    values = rng.random(WIDTH)
    squares = kernels.residual_squares(X, image, values)
    expected = ((image.astype(np.float64) - values * X) ** 2).sum(axis=0)
    np.testing.assert_allclose(squares, expected, rtol=1e-12)


def balance(operator, rows, shift, X):
    for block in operator.blocks:
        inside = rows[(rows >= block.first) & (rows < block.first + len(block.indptr) - 1)]
        kernels.balance_rows(
            block.indptr, block.indices, block.data, operator.diagonal, block.first, inside,
            shift, X,
        )  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("coupled", [False, True])
def test_balance_rows__solves_for_them(rng, dtype, tolerance, coupled):
    n, rows = 60, np.arange(0, 60, 4)
    S = symmetric(rng, n).tolil()
    if not coupled:
        S[np.ix_(rows, rows)] = 0
    S = scipy.sparse.csr_array(S)
    diagonal = rng.random(n)
    diagonal[rows] += 40
    shift = np.linspace(0, 0.5, WIDTH).astype(dtype)
    X = rng.standard_normal((n, WIDTH)).astype(dtype)
    before = X.copy()
    operator = operator_of(S, diagonal, dtype, 3)
    # One after the other: at once where no row hears of another, in a few sweeps else.
    for _ in range(20 if coupled else 1):
        balance(operator, rows, shift, X)
    A = np.diag(diagonal) - S.toarray()
    others = np.setdiff1d(np.arange(n), rows)
    for column in range(WIDTH):
        shifted = A - shift[column] * np.eye(n)
        expected = np.linalg.solve(
            shifted[np.ix_(rows, rows)], -shifted[np.ix_(rows, others)] @ before[others, column]
        )
        np.testing.assert_allclose(X[rows, column], expected, atol=tolerance)
    np.testing.assert_array_equal(X[others], before[others])


def test_scale_entries__scales_both_sides(rng):
    S = scipy.sparse.csr_array(scipy.sparse.random_array((9, 9), density=0.5, rng=rng))
    scale, scaled = rng.random(9), np.empty(S.nnz)
    kernels.scale_entries(0, S.indptr, S.indices, S.data, scale, scaled)
    expected = np.diag(scale) @ S.toarray() @ np.diag(scale)
    np.testing.assert_allclose(
        scipy.sparse.csr_array((scaled, S.indices, S.indptr), S.shape).toarray(), expected
    )
