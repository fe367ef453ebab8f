from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.spectrum.iteration.kernels.filter import (
    FilterPlan,
    NullSpace,
    amplified_counts,
    chebyshev_filter,
    clean_degree,
    degree_for,
    left_by_guards,
    safe_degree,
)
from eigenscape.spectrum.iteration.kernels.ritz import rayleigh_ritz
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator


def laplacian_of(graph):
    return nx.laplacian_matrix(graph).astype(float)


def operator_of(graph, dtype=np.float64):
    return as_operator(laplacian_of(graph), np.ones(len(graph)), dtype)


def chebyshev(degree, x):
    return np.polynomial.chebyshev.Chebyshev.basis(degree)(x)


@given(
    degree=st.integers(1, 60),
    cut=st.floats(0.05, 3),
    low=st.floats(0, 0.04),
    seed=st.integers(0, 99),
)
def test_chebyshev_filter__applies_the_polynomial_to_every_eigenvalue(degree, cut, low, seed):
    rng = np.random.default_rng(seed)
    graph = nx.path_graph(40)
    values, vectors = np.linalg.eigh(laplacian_of(graph).toarray())
    bound = 4.0
    half, centre = (bound - cut) / 2, (bound + cut) / 2
    gain = chebyshev(degree, (values - centre) / half) / chebyshev(degree, (low - centre) / half)
    X = rng.standard_normal((40, WIDTH))
    expected = vectors @ (gain[:, None] * (vectors.T @ X))
    plan = FilterPlan(degree, cut, bound, low)
    found = chebyshev_filter(operator_of(graph), X, np.zeros_like(X), plan)
    np.testing.assert_allclose(found, expected, atol=1e-10 * max(1, np.abs(gain).max()))


def test_chebyshev_filter__treats_columns_alike(rng):
    operator = operator_of(nx.cycle_graph(50))
    X = rng.standard_normal((50, WIDTH))
    plan = FilterPlan(20, 0.5, 4.0, 0.0)
    straight, turned = (
        chebyshev_filter(operator, part.copy(), np.zeros_like(X), plan) for part in (X, X[:, ::-1])
    )
    np.testing.assert_array_equal(straight[:, ::-1], turned)


def test_chebyshev_filter__does_not_overflow_in_single(rng):
    operator = operator_of(nx.path_graph(50), np.float32)
    X = rng.standard_normal((50, WIDTH)).astype(np.float32)
    found = chebyshev_filter(operator, X, np.zeros_like(X), FilterPlan(1000, 0.5, 4.0, 0.0))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 10


@given(
    reduction=st.floats(1, 1e12),
    value=st.floats(0, 0.4),
    cut=st.floats(0.5, 1),
    bound=st.floats(1.5, 9),
)
def test_degree_for__is_the_least_that_suffices(reduction, value, cut, bound):
    degree = degree_for(reduction, value, cut, bound)
    x = 1 + 2 * (cut - value) / (bound - cut)
    gain = [np.cosh(d * np.arccosh(x)) for d in (degree, degree - 1)]
    assert gain[0] >= reduction * (1 - 1e-9)
    assert degree == 0 or gain[1] < reduction * (1 + 1e-9)


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 2.0**23), (np.float64, 1e13)])
def test_safe_degree__keeps_the_ratio_within_the_precision(dtype, most):
    degree = safe_degree(FilterPlan(1, 0.01, 2.0, 0.0), np.dtype(dtype))
    x = 1 + 2 * 0.01 / 1.99
    assert most / 1.3 < np.cosh(degree * np.arccosh(x)) <= 1.01 * most


def test_safe_degree__is_at_least_one():
    assert safe_degree(FilterPlan(1, 1.0, 1.0 + 1e-15, 0.0), np.dtype(np.float32)) == 1


@pytest.mark.parametrize("count", [32, 3200])
@pytest.mark.parametrize(
    ("dtype", "residual"), [("float32", 0), ("float32", 1e-5), ("float64", 1e-9)]
)
def test_clean_degree__keeps_locked_vectors_below_the_columns_at_the_cut(count, dtype, residual):
    plan, kind = FilterPlan(1, 0.4, 2.0, 0.3), np.dtype(dtype)
    values = np.linspace(0.05, 0.3, count)

    def left(degree):
        # Twice the share that is missing in each, amplified once.
        share = np.maximum(residual / (0.4 - values), np.finfo(kind).eps)
        growth = np.arccosh(1 + 2 * (0.4 - values) / 1.6)
        return np.linalg.norm(share**2 * np.exp(degree * growth) / 2)

    degree = clean_degree(plan, kind, values, np.full(count, residual))
    assert left(degree) <= 0.1 < left(degree + 1)
    assert clean_degree(plan, kind, values, np.full(count, 10 * residual + 1e-5)) < degree


@pytest.mark.parametrize("times", [1, 2, 3, 5])
@pytest.mark.parametrize(("dtype", "residual"), [("float32", 1e-5), ("float64", 1e-6)])
def test_amplified_counts__leave_out_what_later_projections_remove(times, dtype, residual):
    kind, count = np.dtype(dtype), 640
    values, residuals = np.linspace(0.01, 0.39, count), np.full(count, residual)
    plan = FilterPlan(1, 0.4, 2.0, 0.3)
    plan = replace(plan, degree=clean_degree(plan, kind, values, residuals), times=times)
    counts = amplified_counts(plan, kind, values, residuals)
    assert len(counts) == times - 1
    assert all(0 < some < count for some in counts[:1])
    # What is in a column of each: the share that a projection leaves, amplified until the next one.
    share = np.maximum(residual / (0.4 - values), np.finfo(kind).eps)
    factor = np.cosh(plan.degree * np.arccosh(1 + 2 * (0.4 - values) / 1.6))
    inside = share.copy()
    for taken in (*counts, count):
        inside *= factor
        assert np.linalg.norm((share * inside)[:taken]) <= 0.1 * (1 + 1e-3)
        inside[:taken] = share[:taken]


@pytest.mark.parametrize("parts", [None, 1, 4])
def test_null_space__projects_every_component_apart(rng, parts):
    null = rng.random(60) + 0.1
    component = None if parts is None else rng.permutation(np.arange(60) % parts).astype(np.int32)
    space = NullSpace(null, component)
    assert space.count == (parts or 1)
    basis = np.stack(
        [space.entries * (space.component == part) for part in range(space.count)], axis=1
    )
    np.testing.assert_allclose(basis.T @ basis, np.eye(space.count), atol=1e-14)
    X = rng.standard_normal((60, WIDTH))
    expected = X - basis @ (basis.T @ X)
    space.remove_from(X)
    np.testing.assert_allclose(X, expected, atol=1e-14)


def test_null_space__of_a_regular_operator_is_empty(rng):
    space = NullSpace(rng.random(60) + 0.1, singular=False)
    assert space.count == 0
    X = rng.standard_normal((60, WIDTH))
    expected = X.copy()
    space.remove_from(X)
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("lacking", [1e-3, 1e-2, 0.1, 0.5])
@pytest.mark.parametrize("degree", [8, 20, 40])
def test_left_by_guards__bounds_what_rests_of_an_error(rng, degree, lacking):
    # The lowest eigenvectors are the first unit vectors; each Ritz vector lacks a share of itself.
    values = np.sort(rng.uniform(0, 2, 400))
    wanted, count = 16, 48
    Y = (
        np.eye(400, count)
        + np.r_[
            np.zeros((count, count)),
            rng.standard_normal((400 - count, count)) * lacking / np.sqrt(400 - count),
        ]
    )

    def ritz(Y):
        rotation = rayleigh_ritz(Y.T @ Y, Y.T @ (values[:, None] * Y))
        return rotation.values, Y @ rotation.C

    def error(X):
        return np.linalg.norm(X[wanted:, :wanted] @ X[:wanted, :wanted].T)

    theta, X = ritz(Y)
    residuals = np.linalg.norm(values[:, None] * X - X * theta, axis=0)
    plan = FilterPlan(degree, values[count], 2.0, 0.0)
    left = left_by_guards(plan, theta[wanted - 1], theta[wanted:], residuals[wanted:])
    stretched = (2 * values - 2 - plan.cut) / (2 - plan.cut)
    p = np.abs(np.polynomial.chebyshev.Chebyshev.basis(degree)(stretched))
    filtered = np.hstack([p[:, None] * X[:, :wanted] / p[wanted - 1], X[:, wanted:]])
    damped = p[count:].max() / p[wanted - 1]
    assert error(ritz(filtered)[1]) <= 2 * (left.max() + damped) * error(X)
