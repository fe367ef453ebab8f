from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.spatial import cKDTree

from eigenscape.clusters import Serial
from eigenscape.context import Loop
from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.iteration.kernels.filter import NullSpace
from eigenscape.spectrum.iteration.solvers import precision
from eigenscape.spectrum.kernels import oracles
from eigenscape.spectrum.kernels.balance import Balanced, tie_sweeps
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.ties import Ties, join_components

loop = Loop(Serial())


ROWS = 800
PAIRS = 12


def neighbour_graph():
    points = np.random.default_rng(1).uniform(0, 1, (ROWS, 2))
    distance, index = cKDTree(points).query(points, 9)
    rows = np.repeat(np.arange(ROWS), 8)
    weights = np.exp(-((distance[:, 1:] / distance[:, -1:]) ** 2)).ravel()
    W = scipy.sparse.csr_array((weights, (rows, index[:, 1:].ravel())), (ROWS, ROWS))
    return scipy.sparse.csr_array(W.maximum(W.T))


W = neighbour_graph()
MEMBER = np.random.default_rng(2).choice(ROWS, 90, replace=False)
STARTS = np.array([0, 2, 30, 90])


def make_ties(alpha):
    return Ties(MEMBER, STARTS, np.full(90, np.sqrt(2 * alpha)))


def added_matrix(alpha):
    """alpha V by its definition: all pairs of a cluster, 2 / m each."""
    V = np.zeros((ROWS, ROWS))
    for begin, end in pairwise(STARTS):
        for i in MEMBER[begin:end]:
            for j in MEMBER[begin:end]:
                if i != j:
                    V[i, i] += 2 / (end - begin) * alpha
                    V[i, j] -= 2 / (end - begin) * alpha
    return V


def dense(kind, alpha):
    A = W.astype(np.float32).astype(np.float64).toarray()
    degree = A.sum(axis=1)
    A, half, V = np.diag(degree) - A, 1 / np.sqrt(degree), added_matrix(alpha)
    if kind == "normalized":
        return half[:, None] * A * half + V
    if kind == "random-walk":
        return half[:, None] * (A + V) * half
    return A + V


def quiet(text):
    pass


def test_matrix__of_two_samples_is_that_of_the_literature():
    ties = Ties(np.array([3, 1]), np.array([0, 2]), np.full(2, np.sqrt(2)))
    V = np.zeros((4, 4))
    V[np.ix_([1, 3], [1, 3])] = [[1, -1], [-1, 1]]
    np.testing.assert_allclose(ties.matrix(4).toarray(), V, atol=1e-15)


def test_matrix__is_the_scatter_within_clusters():
    V = make_ties(0.5).matrix(ROWS).toarray()
    np.testing.assert_allclose(V, added_matrix(0.5), atol=1e-14)
    f = np.random.default_rng(3).standard_normal(ROWS)
    parts = np.split(f[MEMBER], STARTS[1:-1])
    assert f @ V @ f == pytest.approx(sum(((part - part.mean()) ** 2).sum() for part in parts))
    values = np.linalg.eigvalsh(V)
    # 0 for the constants of the three clusters and for all other rows.
    assert (np.abs(values) < 1e-12).sum() == ROWS - 90 + 3
    np.testing.assert_allclose(values[ROWS - 90 + 3 :], 1)


@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operator__products_agree_with_the_matrix(make_problem, kind, dtype):
    operator = make_problem(W, kind=kind, dtype=dtype, ties=make_ties(3.0)).operator.open()
    A = dense(kind, 3.0)
    np.testing.assert_allclose(operator.matrix().toarray(), A, atol=1e-5)
    X = np.random.default_rng(4).standard_normal((ROWS, WIDTH)).astype(dtype)
    Z = np.ones_like(X)
    operator.step(X, Z, 2.0, 0.5, 3.0)
    np.testing.assert_allclose(Z, 2 * A @ X + 0.5 * X - 3, atol=1e-4)
    x = X[:, 0].astype(np.float64)
    np.testing.assert_allclose(operator.times(x), A @ x, atol=1e-5)
    assert np.linalg.eigvalsh(A)[-1] <= operator.bound
    assert operator.singular == (kind != "normalized")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_solve__bears_ties_of_any_strength(make_problem, kind):
    products = {}
    for alpha in (1e-3, 1.0, 10.0, 100.0, 1e4, 1e6):
        problem = make_problem(W, kind=kind, ties=make_ties(alpha), name=f"{alpha}")
        solution = solve(problem, PAIRS, 1e-7, loop, quiet)
        assert solution.converged
        nulls = int(kind != "normalized")
        values, vectors = scipy.linalg.eigh(dense(kind, alpha), subset_by_index=[0, PAIRS])
        np.testing.assert_allclose(
            solution.values[:PAIRS], values[nulls : nulls + PAIRS], atol=1e-7
        )
        found = solution.vectors.read(slice(None))[:, :6]
        expected = vectors[:, nulls : nulls + 6]
        assert scipy.linalg.subspace_angles(found, expected).max() < 1e-3
        products[alpha] = solution.products
    assert products[1e6] <= 3 * products[1e-3]


@pytest.mark.parametrize("solver", ["lanczos", "lobpcg", "dense"])
def test_oracles__take_ties_too(make_problem, solver):
    operator = make_problem(W, kind="normalized", ties=make_ties(2.0)).operator.open()
    null = NullSpace(operator.null, singular=False)
    tolerance = () if solver == "dense" else (1e-6,)
    found = getattr(oracles, f"{solver}_pairs")(operator, null, 5, *tolerance)
    np.testing.assert_allclose(
        found[0], np.linalg.eigvalsh(dense("normalized", 2.0))[:5], atol=1e-6
    )
    assert oracles.residual_norms(operator, found).max() < 1e-5


def test_balance__leaves_eigenvectors_as_they_are(make_problem):
    operator = make_problem(W, kind="normalized", ties=make_ties(1e3)).operator.open()
    sweeps = tie_sweeps(operator.ties, 2.0, ROWS)
    assert sweeps == 3
    values, vectors = np.linalg.eigh(operator.matrix().toarray())
    X = np.ascontiguousarray(vectors[:, :WIDTH])
    balanced = Balanced(operator, np.zeros(0, np.int64), values[:WIDTH], sweeps)
    found = X.copy()
    # What is added has no part along the constants.
    noise = np.random.default_rng(5).standard_normal((2, WIDTH))
    found[MEMBER[:2]] += noise - noise.mean(axis=0)
    balanced.balance(found)
    np.testing.assert_allclose(found, X, atol=1e-9)


def test_tie_sweeps__weak_ties_are_left_to_the_filter():
    assert tie_sweeps(make_ties(1.0), 2.0, ROWS) == 0
    assert tie_sweeps(make_ties(50.0), 2.0, ROWS) == 5
    # Of so many members that a filter of seven times the length costs less.
    assert tie_sweeps(make_ties(50.0), 2.0, 70) == 0
    assert tie_sweeps(make_ties(1e9), 2.0, 90) == 2


def test_precision__is_double_for_strong_ties():
    assert precision("chebyshev", 1e-5, make_ties(1.0).most) == "float32"
    assert precision("chebyshev", 1e-5, make_ties(1e4).most) == "float64"


def test_join_components__joins_what_a_cluster_spans():
    component = np.array([0, 0, 1, 2, 3, 3], np.int32)
    ties = Ties(np.array([0, 3, 4, 5]), np.array([0, 2, 4]), np.ones(4))
    joined = join_components(component, ties)
    assert joined[[0, 1, 3]].tolist() == [0, 0, 0]
    assert len({int(joined[0]), int(joined[2]), int(joined[4])}) == 3
    assert joined[4] == joined[5]
    assert joined.max() == 2
