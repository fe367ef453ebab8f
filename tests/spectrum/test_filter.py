from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.spectrum import kernels
from eigenscape.spectrum.filter import (
    NullSpace,
    chebyshev_filter,
    degree_for,
    rayleigh_ritz,
    safe_degree,
)
from eigenscape.spectrum.operator import Operator, RowBlock, as_operator, upper_bound


def laplacian_of(graph):
    return nx.laplacian_matrix(graph).astype(float)


def operator_of(graph, dtype=np.float64):
    return as_operator(laplacian_of(graph), np.ones(len(graph)), dtype)


def chebyshev(degree, x):
    return np.polynomial.chebyshev.Chebyshev.basis(degree)(x)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("count", [1, 3])
def test_filter_step__equals_the_dense_product(rng, dtype, tolerance, count):
    n = 50
    S = scipy.sparse.random_array((n, n), density=0.2, rng=rng, dtype=np.float64)
    S = scipy.sparse.csr_array(S + S.T)
    diagonal = rng.random(n)
    X, Z = rng.standard_normal((2, n, kernels.WIDTH)).astype(dtype)
    a, b, c = 0.7, -1.3, 0.4
    expected = a * (diagonal[:, None] * X - S @ X) + b * X - c * Z
    cuts = np.linspace(0, n, count + 1).astype(int)
    blocks = [
        RowBlock(int(first), part.indptr.astype(np.int64), part.indices, part.data.astype(dtype))
        for first, part in ((i, S[i:j]) for i, j in pairwise(cuts))
    ]
    operator = Operator(blocks, diagonal.astype(dtype), np.ones(n), 1.0)
    expected_image = diagonal[:, None] * X - S @ X
    np.testing.assert_allclose(operator.times(X), expected_image, atol=10 * tolerance)
    operator.step(X, Z, a, b, c)
    np.testing.assert_allclose(Z, expected, atol=10 * tolerance)
    np.testing.assert_allclose(
        operator.matrix().toarray(), np.diag(diagonal) - S.toarray(), atol=1e-6
    )


def test_filter_step__passes_the_dot_test(rng):
    operator = operator_of(nx.random_regular_graph(4, 60, seed=1))
    X, Y = rng.standard_normal((2, 60, kernels.WIDTH))
    np.testing.assert_allclose(Y.T @ operator.times(X), operator.times(Y).T @ X, atol=1e-11)


def test_scale_entries__scales_both_sides(rng):
    S = scipy.sparse.csr_array(scipy.sparse.random_array((9, 9), density=0.5, rng=rng))
    scale, scaled = rng.random(9), np.empty(S.nnz)
    kernels.scale_entries(0, S.indptr, S.indices, S.data, scale, scaled)
    expected = np.diag(scale) @ S.toarray() @ np.diag(scale)
    np.testing.assert_allclose(
        scipy.sparse.csr_array((scaled, S.indices, S.indptr), S.shape).toarray(), expected
    )


@given(
    degree=st.integers(1, 60),
    cut=st.floats(0.05, 3),
    low=st.floats(0, 0.04),
    seed=st.integers(0, 99),
)
def test_chebyshev_filter__applies_the_polynomial_to_every_eigenvalue(degree, cut, low, seed):
    rng = np.random.default_rng(seed)
    graph = nx.path_graph(40)
    operator = operator_of(graph)
    values, vectors = np.linalg.eigh(laplacian_of(graph).toarray())
    bound = 4.0
    half, centre = (bound - cut) / 2, (bound + cut) / 2
    gain = chebyshev(degree, (values - centre) / half) / chebyshev(degree, (low - centre) / half)
    X = rng.standard_normal((40, kernels.WIDTH))
    expected = vectors @ (gain[:, None] * (vectors.T @ X))
    found = chebyshev_filter(operator, X.copy(), degree, cut, bound, low)
    np.testing.assert_allclose(found, expected, atol=1e-10 * max(1, np.abs(gain).max()))


def test_chebyshev_filter__treats_columns_alike(rng):
    operator = operator_of(nx.cycle_graph(50))
    X = rng.standard_normal((50, kernels.WIDTH))
    turned = chebyshev_filter(operator, X[:, ::-1].copy(), 20, 0.5, 4.0)
    np.testing.assert_array_equal(
        chebyshev_filter(operator, X.copy(), 20, 0.5, 4.0)[:, ::-1], turned
    )


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


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e7), (np.float64, 1e13)])
def test_safe_degree__keeps_the_ratio_within_the_precision(dtype, most):
    degree = safe_degree(0.01, 2.0, np.dtype(dtype))
    x = 1 + 2 * 0.01 / 1.99
    assert most / 1.3 < np.cosh(degree * np.arccosh(x)) <= most
    assert safe_degree(1.0, 1.0 + 1e-15, np.dtype(dtype)) == 1


def test_rayleigh_ritz__equals_eigh_in_the_subspace(rng):
    A = rng.standard_normal((80, 80))
    A = A + A.T
    Y = rng.standard_normal((80, 12)) * np.geomspace(1, 1e-6, 12)
    rotation = rayleigh_ritz(Y.T @ Y, Y.T @ A @ Y)
    Q, _ = np.linalg.qr(Y)
    expected = np.linalg.eigvalsh(Q.T @ A @ Q)
    assert rotation.rank == 12
    np.testing.assert_allclose(rotation.values, expected, rtol=1e-8)
    X = Y @ rotation.C
    np.testing.assert_allclose(X.T @ X, np.eye(12), atol=1e-9)
    np.testing.assert_allclose(X.T @ A @ X, np.diag(expected), atol=1e-7)


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
    X = rng.standard_normal((60, 3))
    expected = X - basis @ (basis.T @ X)
    space.remove_from(X)
    np.testing.assert_allclose(X, expected, atol=1e-14)


def weighted(graph, seed, spread):
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(np.exp(spread * rng.standard_normal()))
    return graph


@pytest.mark.parametrize("normalized", [False, True])
@given(n=st.integers(3, 150), spread=st.floats(0, 4), seed=st.integers(0, 999))
def test_upper_bound__bounds_the_spectrum(normalized, n, spread, seed):
    graph = weighted(nx.gnp_random_graph(n, min(1, 4 / n), seed=seed), seed, spread)
    nx.add_path(graph, range(n), weight=1e-3)
    L = nx.laplacian_matrix(graph).astype(float)
    if normalized:
        scale = scipy.sparse.diags_array(1 / np.sqrt(L.diagonal()))
        L = scale @ L @ scale
    operator = as_operator(L, np.ones(n), np.float64)
    largest = np.linalg.eigvalsh(L.toarray())[-1]
    assert largest <= upper_bound(operator) * (1 + 1e-12)
    assert upper_bound(operator) <= operator.bound


@pytest.mark.parametrize(
    "graph", [nx.star_graph(999), nx.barbell_graph(30, 900)], ids=["star", "barbell"]
)
def test_upper_bound__sees_a_lone_large_eigenvalue(graph):
    largest = np.linalg.eigvalsh(laplacian_of(graph).toarray())[-1]
    found = upper_bound(operator_of(graph))
    assert largest * (1 - 1e-12) <= found < 1.5 * largest
