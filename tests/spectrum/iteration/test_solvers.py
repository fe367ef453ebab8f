import sys
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from eigenscape.clusters import Serial
from eigenscape.context import Loop
from eigenscape.errors import MissingExtraError
from eigenscape.job.options import Solver
from eigenscape.spectrum.iteration.kernels.columns import column_count
from eigenscape.spectrum.iteration.solvers import WHOLE, choose_solver, find_pairs, precision
from eigenscape.spectrum.iteration.state import Solution
from eigenscape.spectrum.kernels import oracles
from eigenscape.spectrum.kernels.operator import as_operator

loop = Loop(Serial())


PAIRS = 12


def quiet(text):
    pass


def weights(seed=0):
    graph = nx.random_geometric_graph(400, 0.09, seed=seed)
    nx.add_path(graph, range(400))
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.2, 1))
    return nx.adjacency_matrix(graph).astype(float)


def values_of(problem):
    return np.linalg.eigvalsh(problem.operator.open().matrix().toarray())


def test_whole__are_the_solvers_of_jobs_that_do_not_iterate():
    assert {"auto", "chebyshev", *WHOLE} == {*get_args(Solver)}
    assert [name for name, solver in WHOLE.items() if solver.extra] == ["lobpcg"]


@pytest.mark.parametrize("solver", WHOLE)
def test_whole__find_the_same_pairs_in_double(make_problem, solver):
    problem = make_problem(weights(), kind="normalized")
    found = find_pairs(problem, solver, PAIRS, 1e-8, loop, quiet)
    np.testing.assert_allclose(found.values[:PAIRS], values_of(problem)[1 : PAIRS + 1], atol=1e-9)
    assert found.converged
    assert precision(solver, 1e-2) == "float64"
    # More rows, vectors or entries take no less.
    bytes_of, least = WHOLE[solver].bytes, WHOLE[solver].bytes(10_000, 20, 1e5)
    assert bytes_of(20_000, 20, 1e5) > least
    assert bytes_of(10_000, 40, 1e5) > least
    assert bytes_of(10_000, 20, 2e5) >= least


@pytest.mark.parametrize(
    ("solver", "pairs", "rows", "expected", "reason"),
    [
        ("chebyshev", 55, 1500, "dense", "1500 samples are few"),
        ("chebyshev", 55, 1501, "chebyshev", "at most 128 columns in groups of 32"),
        ("chebyshev", 900, 2000, "dense", "900 eigenvectors of 2000 samples are many"),
        ("chebyshev", 900, 10_000, "chebyshev", "at most 1216 columns"),
        ("chebyshev", 4000, 60_000, "chebyshev", "4608 columns, 2048 at a time"),
        ("lanczos", 55, 100, "lanczos", "as asked for"),
        ("lobpcg", 55, 10**7, "lobpcg", "as asked for"),
        ("dense", 55, 5000, "dense", "as asked for"),
    ],
)
def test_choose_solver__says_what_will_run(solver, pairs, rows, expected, reason):
    chosen, why = choose_solver(solver, pairs, rows)
    assert chosen == expected
    assert reason in why


@pytest.mark.parametrize("pairs", [55, 400, 1000])
def test_choose_solver__leaves_rows_enough_for_the_columns(pairs):
    # The iteration needs three rows for each column.
    rows = 3 * column_count(pairs)
    assert choose_solver("chebyshev", pairs, max(1501, rows))[0] == "chebyshev"
    assert choose_solver("chebyshev", pairs, rows - 1)[0] == "dense"


def test_precision__is_single_where_that_suffices():
    assert precision("chebyshev", 1e-6) == "float32"
    assert precision("chebyshev", 9e-7) == "float64"
    assert precision("dense", 1e-2) == precision("lobpcg", 1e-5) == "float64"


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("pieces", [1, 2])
def test_find_pairs__is_the_same_by_every_solver(make_problem, kind, pieces):
    pytest.importorskip("pyamg")
    W = weights()
    component = None
    if pieces == 2:
        W = W.tolil()
        W[:150, 150:] = 0
        W[150:, :150] = 0
        W = W.tocsr()
        count, component = connected_components(W)
        assert count == 2
    results = {}
    for solver in ("chebyshev", "lanczos", "lobpcg", "dense"):
        problem = make_problem(W, kind=kind, component=component, name=solver)
        # LOBPCG gives up below this.
        tolerance = 1e-5 if solver == "lobpcg" else 1e-7
        solution = find_pairs(problem, solver, PAIRS, tolerance, loop, quiet)
        assert solution.converged
        assert solution.residuals[:PAIRS].max() <= tolerance
        X = solution.vectors.read(slice(None))[:, :PAIRS]
        np.testing.assert_allclose(X.T @ X, np.eye(PAIRS), atol=1e-6)
        A = problem.operator.open().matrix()
        norms = np.linalg.norm(A @ X - X * solution.values[:PAIRS], axis=0)
        np.testing.assert_allclose(norms, solution.residuals[:PAIRS], atol=1e-12)
        results[solver] = solution.values[:PAIRS]
    expected = values_of(problem)[pieces : pieces + PAIRS]
    for solver, values in results.items():
        np.testing.assert_allclose(values, expected, atol=1e-8, err_msg=solver)


@pytest.mark.parametrize("solver", ["lanczos", "lobpcg", "dense", "chebyshev"])
def test_find_pairs__knows_potentials(make_problem, solver):
    if solver == "lobpcg":
        pytest.importorskip("pyamg")
    problem = make_problem(weights(), kind="normalized", potential=np.arange(400) / 400)
    solution = find_pairs(problem, solver, PAIRS, 1e-5, loop, quiet)
    np.testing.assert_allclose(solution.values[:PAIRS], values_of(problem)[:PAIRS], atol=1e-8)


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("pairs", [5, 12, 45])
def test_lanczos_pairs__skips_no_copy(make_problem, kind, pairs):
    """Forty equal rings: Lanczos from one vector finds some of the forty copies of each eigenvalue."""
    W = nx.adjacency_matrix(nx.disjoint_union_all([nx.cycle_graph(30)] * 40)).astype(float)
    V = np.tile(np.arange(30) == 0, 40).astype(float)
    problem = make_problem(W, kind=kind, potential=V)
    found = find_pairs(problem, "lanczos", pairs, 1e-8, loop, quiet)
    np.testing.assert_allclose(found.values[:pairs], values_of(problem)[:pairs], atol=1e-9)
    assert found.converged


@pytest.mark.parametrize("solver", ["lanczos", "shift-invert", "dense"])
def test_find_pairs__finds_all_that_there_are(make_problem, solver):
    for n in (2, 3, 5):
        W = nx.adjacency_matrix(nx.path_graph(n)).astype(float)
        problem = make_problem(W, name=f"path of {n}")
        found = find_pairs(problem, solver, n - 1, 1e-8, loop, quiet)
        np.testing.assert_allclose(found.values[: n - 1], values_of(problem)[1:], atol=1e-12)
        assert found.converged


def test_find_pairs__names_the_extra_that_lobpcg_needs(make_problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyamg", None)
    problem = make_problem(weights())
    with pytest.raises(MissingExtraError, match="amg") as raised:
        find_pairs(problem, "lobpcg", PAIRS, 1e-7, loop, quiet)
    assert "lobpcg" in str(raised.value)
    assert "eigenscape[amg]" in str(raised.value)


def test_count_below__counts_what_lapack_finds(rng):
    for n in (1, 2, 30):
        A = rng.standard_normal((n, n))
        A = A + A.T
        operator = as_operator(A, np.ones(n), np.float64, singular=False)
        values = np.linalg.eigvalsh(A)
        between = (values[1:] + values[:-1]) / 2
        assert [oracles.count_below(operator, value) for value in between] == [*range(1, n)]
        assert oracles.count_below(operator, values[0] - 1) == 0
        assert oracles.count_below(operator, values[-1] + 1) == n


def test_count_below__counts_multiplicities():
    L = nx.laplacian_matrix(nx.star_graph(40)).astype(float)
    operator = as_operator(L, np.ones(41), np.float64)
    assert [oracles.count_below(operator, value) for value in (0.5, 1.5, 100)] == [1, 40, 41]


def missing_one(problem, pairs, which):
    """Return what a solve would that did not see one of the lowest eigenvectors."""
    values, vectors = oracles.dense_pairs(problem.operator.open(), problem.null_space(), 32)
    if which is not None:
        values = np.append(np.delete(values, which), 10.0)
        vectors = np.roll(vectors, -1, axis=1) if which == 0 else vectors
    stored = problem.named("pass", range(1))
    stored.write(slice(None), vectors)
    return Solution(stored, values, np.zeros(32), True, 3, 99)


@pytest.mark.parametrize("missed", range(PAIRS))
def test_find_pairs__finds_what_the_iteration_missed(make_problem, monkeypatch, missed):
    # The widest gap in the upper half of these values is below two of them.
    problem, said = make_problem(weights(3), kind="normalized"), []
    wrong = missing_one(problem, PAIRS, missed)
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.solve", lambda *rest: wrong)
    solution = find_pairs(problem, "chebyshev", PAIRS, 1e-7, loop, said.append)
    expected = values_of(problem)[1 : PAIRS + 1]
    np.testing.assert_allclose(solution.values[:PAIRS], expected, atol=1e-12)
    assert solution.converged
    assert len(said) == 1
    assert said[0].startswith("missed 1 eigenvalue below the last one: solving")


def test_find_pairs__trusts_a_complete_result(make_problem, monkeypatch):
    problem, said = make_problem(weights(), kind="normalized"), []
    right = missing_one(problem, PAIRS, None)
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.solve", lambda *rest: right)
    found = find_pairs(problem, "chebyshev", PAIRS, 1e-7, loop, said.append)
    np.testing.assert_array_equal(found.values, right.values)
    assert found.vectors is right.vectors
    assert not said
    # Beyond an order it takes too long to count.
    monkeypatch.setattr("eigenscape.spectrum.iteration.solvers.INERTIA_ROWS", 399)
    wrong = missing_one(problem, PAIRS, 3)
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.solve", lambda *rest: wrong)
    found = find_pairs(problem, "chebyshev", PAIRS, 1e-7, loop, said.append)
    assert found.vectors is wrong.vectors


@pytest.mark.parametrize("name", ["complete", "star"])
def test_find_pairs__tells_nothing_inside_one_eigenvalue(make_problem, name):
    graph = nx.complete_graph(150) if name == "complete" else nx.star_graph(400)
    problem, said = make_problem(nx.adjacency_matrix(graph).astype(float)), []
    solution = find_pairs(problem, "chebyshev", PAIRS, 1e-8, loop, said.append)
    expected = 150 if name == "complete" else 1
    np.testing.assert_allclose(solution.values[:PAIRS], expected)
    assert not [text for text in said if "missed" in text]
