"""Tests of the filter on what Ritz vectors lack."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from eigenscape.spectrum.iteration.kernels.corrections import filter_corrections
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan, chebyshev_filter
from eigenscape.spectrum.kernels.gather import CONVERTS_HALVES, WIDTH
from eigenscape.spectrum.kernels.operator import RowBlock, as_operator

pytestmark = pytest.mark.skipif(
    not CONVERTS_HALVES, reason="this processor has no conversions of half precision"
)

ROWS = 400


@pytest.fixture(scope="module")
def ring():
    """Return the Laplacian of a ring with chords, and its eigenpairs."""
    near = [scipy.sparse.eye_array(ROWS, k=k) for k in (1, 2, 3, ROWS - 1, ROWS - 2, ROWS - 3)]
    W = sum(near) + sum(near).T
    L = scipy.sparse.diags_array(np.ones(ROWS)) - W / W.sum(axis=0)[0]
    return scipy.sparse.csr_array(L), *np.linalg.eigh(L.toarray())


def halves():
    return np.zeros((ROWS, WIDTH), np.uint16)


def corrected(L, X, values, plan, dtype):
    result = np.full((ROWS, WIDTH), np.nan, dtype)
    operator = as_operator(L, np.ones(ROWS), dtype)
    residuals = norms(L, X, values)
    filter_corrections(operator, X.astype(dtype), values, residuals, plan, halves, result)
    return result


def norms(L, X, values):
    known = np.isfinite(values)
    found = np.linalg.norm(L @ X - X * np.where(known, values, 0), axis=0)
    return np.where(known, found, np.inf)


def nearly(V, noise, seed):
    """Return the Ritz vectors of a space near that of the lowest vectors, and the distance."""
    rng = np.random.default_rng(seed)
    near = V[:, 1 : WIDTH + 1] + noise / np.sqrt(ROWS) * rng.standard_normal((ROWS, WIDTH))
    return np.ascontiguousarray(np.linalg.qr(near)[0])


def ritz(L, X):
    values, C = np.linalg.eigh(X.T @ (L @ X))
    return values, np.ascontiguousarray(X @ C)


@settings(max_examples=20, deadline=None)
@given(
    degree=st.integers(1, 30), noise=st.sampled_from([1e-1, 1e-3, 1e-6]), seed=st.integers(0, 99)
)
def test_filter_corrections__errs_by_a_share_of_what_is_lacking(ring, degree, noise, seed):
    L, _, V = ring
    values, X = ritz(L, nearly(V, noise, seed))
    plan = FilterPlan(degree, 1.2 * float(values[-1]), 2.0, 0.0)
    found = corrected(L, X, values, plan, np.float64)
    exact = chebyshev_filter(as_operator(L, np.ones(ROWS), np.float64), X.copy(), 0 * X, plan)
    factor = (exact * X).sum(axis=0) / (X * X).sum(axis=0)
    # p(theta) itself, by which every column is divided, differs from that by what is lacking.
    lacking = np.linalg.norm(exact / factor - X, axis=0).max()
    scaled = exact * ((found * exact).sum(axis=0) / (exact * exact).sum(axis=0))
    # What is wrong along the lowest vectors is told apart by a Rayleigh-Ritz step; the rest stays.
    low = V[:, : WIDTH + 1]
    wrong = found - scaled
    wrong -= low @ (low.T @ wrong)
    assert np.linalg.norm(wrong, axis=0).max() <= 5e-3 * max(lacking, noise)


def test_filter_corrections__brings_residuals_down_beyond_half_precision(ring):
    L, _, V = ring
    values, X = ritz(L, nearly(V, 1e-2, 0))
    for _ in range(4):
        plan = FilterPlan(25, 1.1 * float(values[-1]), 2.0, 0.0)
        values, X = ritz(L, np.linalg.qr(corrected(L, X, values, plan, np.float64))[0])
    inner = slice(0, 12)
    assert norms(L, X, values)[inner].max() < 1e-9


def test_filter_corrections__is_the_same_for_any_blocks(ring):
    L, _, V = ring
    values, X = ritz(L, nearly(V, 1e-2, 3))
    plan = FilterPlan(9, 1.1 * float(values[-1]), 2.0, 0.0)
    whole = as_operator(L, np.ones(ROWS), np.float32)
    block = whole.blocks[0]
    cut = block.indptr[150]
    parts = [
        RowBlock(0, block.indptr[:151], block.indices[:cut], block.data[:cut]),
        RowBlock(150, block.indptr[150:] - cut, block.indices[cut:], block.data[cut:]),
    ]
    results = []
    for blocks in (whole.blocks, parts):
        operator = type(whole)(blocks, whole.diagonal, whole.null, True, 2.0)
        results.append(np.zeros((ROWS, WIDTH), np.float32))
        filter_corrections(
            operator, X.astype(np.float32), values, norms(L, X, values), plan, halves, results[-1]
        )
    np.testing.assert_array_equal(*results)


def test_filter_corrections__keeps_columns_without_a_direction_finite(ring):
    L, _, V = ring
    values, X = ritz(L, nearly(V, 1e-2, 5))
    values[-2:] = np.inf
    X[:, -1] = np.random.default_rng(0).standard_normal(ROWS)
    X[:, -2] = V[:, 0]
    found = corrected(L, X, values, FilterPlan(12, float(values[-3]), 2.0, 0.0), np.float32)
    assert np.isfinite(found).all()
