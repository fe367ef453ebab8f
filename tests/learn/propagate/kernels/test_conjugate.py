import networkx as nx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.propagate.kernels.conjugate import System, solve
from eigenscape.learn.propagate.kernels.smoothness import Heat, Marked, Power
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator


def zeros(dtype):
    return lambda rows: np.zeros((rows, WIDTH), dtype)


class Dense:
    def __init__(self, A):
        self.A = A
        self.products = 0

    def apply(self, X, Z):
        self.products += 1
        Z[:] = self.A @ X


def definite(rng, n, condition):
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return Q @ np.diag(np.geomspace(1, condition, n)) @ Q.T


def full_system(A, B, dtype=np.float64):
    inverse = (1 / np.diag(A)).astype(dtype)
    return System(
        Dense(A.astype(dtype)),
        inverse,
        np.arange(len(A)),
        np.repeat(inverse[:, None], WIDTH, axis=1),
        B.astype(dtype),
    )


def weighted_graph(rng, n, decades=3.0):
    graph = nx.random_regular_graph(4, n, seed=int(rng.integers(2**31)))
    for _, _, data in graph.edges(data=True):
        data["weight"] = 10 ** rng.uniform(-decades, 0)
    return graph


def laplacian_of(graph):
    return nx.laplacian_matrix(graph, nodelist=sorted(graph)).astype(float)


@given(n=st.integers(2, 60), logarithm=st.floats(0, 4), seed=st.integers(0, 99))
def test_solve__agrees_with_a_dense_solver(n, logarithm, seed):
    rng = np.random.default_rng(seed)
    A, B = definite(rng, n, 10**logarithm), rng.standard_normal((n, WIDTH))
    X = np.zeros((n, WIDTH))
    solved = solve(full_system(A, B), X, zeros(np.float64), tolerance=1e-11)
    assert solved.residuals.max() <= 1e-11
    np.testing.assert_allclose(X, np.linalg.solve(A, B), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_solve__says_the_true_residuals(rng, dtype, tolerance):
    A, B = definite(rng, 80, 1e3), rng.standard_normal((80, WIDTH))
    X = np.zeros((80, WIDTH), dtype)
    solved = solve(full_system(A, B, dtype), X, zeros(dtype), tolerance=tolerance)
    true = np.linalg.norm(B - A @ X.astype(float), axis=0) / np.linalg.norm(B, axis=0)
    # As far as the products with A, of condition 1000, are rounded.
    np.testing.assert_allclose(solved.residuals, true, atol=300 * np.finfo(dtype).eps)
    assert solved.residuals.max() <= tolerance


def test_solve__is_honest_when_it_is_cut_off(rng):
    A, B = definite(rng, 80, 1e5), rng.standard_normal((80, WIDTH))
    X = np.zeros((80, WIDTH))
    solved = solve(full_system(A, B), X, zeros(np.float64), tolerance=1e-10, most=7)
    assert solved.iterations == 7
    true = np.linalg.norm(B - A @ X, axis=0) / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(solved.residuals, true, rtol=1e-9)
    assert true.max() > 1e-3


def test_solve__ends_where_single_precision_ends(rng):
    A, B = definite(rng, 80, 1e4), rng.standard_normal((80, WIDTH))
    solved = solve(
        full_system(A, B, np.float32), np.zeros((80, WIDTH), np.float32), zeros(np.float32),
        tolerance=1e-12, most=100_000,
    )  # fmt: skip
    assert solved.iterations < 100_000
    assert 1e-12 < solved.residuals.max() < 1e-1


def test_solve__a_column_does_not_depend_on_the_others(rng):
    A, B = definite(rng, 50, 1e3), rng.standard_normal((50, WIDTH))
    # An eigenvector ends after one step, the others go on.
    easy = np.linalg.eigh(A)[1][:, 3]
    together = B.copy()
    together[:, 5], together[:, 9] = easy, 0
    alone = np.zeros_like(B)
    alone[:, 0] = B[:, 0]
    results = []
    for right in (together, alone):
        X = np.zeros((50, WIDTH))
        solve(full_system(A, right), X, zeros(np.float64), tolerance=1e-8)
        results.append(X)
    np.testing.assert_array_equal(results[0][:, 0], results[1][:, 0])
    assert not results[0][:, 9].any()
    assert not results[1][:, 1:].any()


def test_solve__a_good_start_needs_no_iteration(rng):
    A, B = definite(rng, 30, 10), rng.standard_normal((30, WIDTH))
    B[:, 1:] = 0
    X = np.zeros((30, WIDTH))
    assert solve(full_system(A, B), X, zeros(np.float64), tolerance=1e-13).iterations > 0
    system = full_system(A, A @ X)
    assert solve(system, X.copy(), zeros(np.float64), tolerance=1e-1).iterations <= 1


def test_solve__a_start_that_is_no_number_is_none(rng):
    A, B = definite(rng, 30, 10), rng.standard_normal((30, WIDTH))
    X = zeros(np.float64)(30)
    X[4, 2], X[:, 7] = np.nan, np.nan
    found = solve(full_system(A, B), X, zeros(np.float64), tolerance=1e-8)
    assert found.residuals.max() <= 1e-8
    np.testing.assert_allclose(A @ X, B, atol=1e-6)


def test_solve__says_that_a_system_without_numbers_has_no_solution(rng):
    A, B = definite(rng, 30, 10), rng.standard_normal((30, WIDTH))
    B[3, 5] = np.nan
    found = solve(full_system(A, B), zeros(np.float64)(30), zeros(np.float64))
    assert np.isinf(found.residuals[5])
    assert np.isfinite(np.delete(found.residuals, 5)).all()


def test_solve__uses_three_work_arrays(rng):
    A, B = definite(rng, 30, 10), rng.standard_normal((30, WIDTH))
    taken = []

    def allocate(rows):
        taken.append(rows)
        return np.zeros((rows, WIDTH))

    solve(full_system(A, B), np.zeros((30, WIDTH)), allocate)
    assert taken == [30, 30, 30]


def test_solve__preconditioner_helps_where_degrees_spread(rng):
    scale = np.geomspace(1, 30, 60)
    A = np.diag(scale) @ definite(rng, 60, 10) @ np.diag(scale)
    B = rng.standard_normal((60, WIDTH))
    system = full_system(A, B)
    plain = System(system.product, np.ones(60), system.rows, np.ones((60, WIDTH)), system.source)
    counts = [
        solve(each, np.zeros((60, WIDTH)), zeros(np.float64), most=5000).iterations
        for each in (system, plain)
    ]
    assert counts[0] < counts[1] / 3


def test_solve__laplacian_of_several_components(rng):
    graph = nx.disjoint_union(weighted_graph(rng, 40), weighted_graph(rng, 30))
    L = laplacian_of(graph).toarray()
    B = L @ rng.standard_normal((70, WIDTH))
    X = np.zeros_like(B)
    solve(full_system(L, B), X, zeros(np.float64), tolerance=1e-10)
    np.testing.assert_allclose(L @ X, B, atol=1e-8)


@pytest.mark.parametrize("exponent", [1, 2, 3, 4])
def test_power__is_repeated_multiplication(rng, exponent):
    A = laplacian_of(weighted_graph(rng, 30))
    X, Z = rng.standard_normal((30, WIDTH)), np.zeros((30, WIDTH))
    operator = as_operator(A, np.ones(30), np.float64)
    Power(operator, exponent, np.ones((30, WIDTH))).apply(X, Z)
    expected = np.linalg.matrix_power(A.toarray(), exponent) @ X
    np.testing.assert_allclose(Z, expected, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("time", [1e-3, 0.1, 1.0, 3.0, 100.0])
def test_heat__is_the_exponential_function(rng, time, dtype):
    A = laplacian_of(weighted_graph(rng, 40))
    X, Z = rng.standard_normal((40, WIDTH)).astype(dtype), np.ones((40, WIDTH), dtype)
    operator = as_operator(A, np.ones(40), dtype)
    before = X.copy()
    Heat(operator, time, np.ones_like(X)).apply(X, Z)
    np.testing.assert_array_equal(X, before)
    expected = scipy.linalg.expm(-time * A.toarray()) @ X.astype(float)
    np.testing.assert_allclose(Z, expected, atol=300 * np.finfo(dtype).eps)


@pytest.mark.parametrize("reach", [0.01, 1, 50, 1e4])
def test_heat__expansion_has_enough_terms(rng, reach):
    operator = as_operator(laplacian_of(weighted_graph(rng, 20)), np.ones(20), np.float64)
    series = Heat(operator, 2 * reach / operator.bound, np.zeros((20, WIDTH))).coefficients(
        np.float64
    )
    x = np.linspace(-1, 1, 500)
    values = np.polynomial.chebyshev.chebval(x, series)
    np.testing.assert_allclose(values, np.exp(-reach * (x + 1)), atol=1e-13)


def test_marked__changes_rows_alone(rng):
    A = laplacian_of(weighted_graph(rng, 20)).toarray()
    rows = np.array([3, 4, 11])
    keep, added = rng.random((3, WIDTH)), rng.random((3, WIDTH))
    X, Z = rng.standard_normal((20, WIDTH)), np.zeros((20, WIDTH))
    Marked(Dense(A), rows, keep, added).apply(X, Z)
    expected = A @ X
    expected[rows] = keep * expected[rows] + added * X[rows]
    np.testing.assert_allclose(Z, expected)
