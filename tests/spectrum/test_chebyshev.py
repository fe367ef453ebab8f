from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from eigenscape.spectrum import oracles
from eigenscape.spectrum.chebyshev import column_count, solve, tile_rows
from harness import KilledError


def loop(step, function, items, *, label=None, keep=True):
    return [function(item) for item in items]


def quiet(text):
    pass


def adjacency(graph):
    return nx.adjacency_matrix(graph).astype(np.float64)


def dense(W, kind):
    W = W.astype(np.float32).astype(np.float64).toarray()
    degree = W.sum(axis=1)
    L = np.diag(degree) - W
    if kind == "unnormalized":
        return L
    return L / np.sqrt(np.outer(degree, degree))


def vectors_of(problem, solution, pairs):
    return problem.read(solution.name, slice(None))[:, :pairs]


def assert_solves(problem, solution, L, pairs, *, nulls=1, rtol, atol, angle):
    """Compare with LAPACK: values one by one, vectors by the angles between whole clusters."""
    assert solution.converged
    values, vectors = np.linalg.eigh(L)
    np.testing.assert_allclose(
        solution.values[:pairs], values[nulls : nulls + pairs], rtol=rtol, atol=atol
    )
    found = vectors_of(problem, solution, pairs)
    np.testing.assert_allclose(found.T @ found, np.eye(pairs), atol=angle)
    scale = values[-1]
    # Clusters of the first `pairs` values that nothing beyond them belongs to.
    gaps = np.flatnonzero(np.diff(values[: nulls + pairs + 1]) > 1e-3 * scale) + 1
    for first, last in pairwise(gaps):
        if first >= nulls:
            here = slice(first - nulls, last - nulls)
            angles = scipy.linalg.subspace_angles(found[:, here], vectors[:, first:last])
            assert angles.max() < angle


GRAPHS = {
    "path": nx.path_graph(600),
    "cycle": nx.cycle_graph(601),
    "grid": nx.grid_2d_graph(20, 31),
    "square": nx.grid_2d_graph(24, 24),
    "hypercube": nx.hypercube_graph(9),
    "star": nx.star_graph(500),
    "complete": nx.complete_graph(150),
    "wheel": nx.wheel_graph(400),
    "barbell": nx.barbell_graph(60, 300),
    "tree": nx.balanced_tree(3, 5),
    "bipartite": nx.complete_bipartite_graph(60, 150),
}


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("name", GRAPHS)
def test_solve__is_exact_on_known_graphs_in_double(make_problem, name, kind):
    W = adjacency(GRAPHS[name])
    pairs = 20
    problem = make_problem(W, pairs, kind=kind)
    L = dense(W, kind)
    scale = problem.operator.bound
    solution = solve(problem, pairs, 1e-9 * scale, loop, quiet)
    assert_solves(problem, solution, L, pairs, rtol=1e-8, atol=1e-13 * scale, angle=1e-5)
    found = vectors_of(problem, solution, pairs)
    residuals = np.linalg.norm(L @ found - found * solution.values[:pairs], axis=0)
    np.testing.assert_allclose(residuals, solution.residuals[:pairs], atol=1e-11 * scale)
    assert residuals.max() <= 1.01e-9 * scale


@pytest.mark.parametrize("name", ["grid", "hypercube", "tree"])
def test_solve__is_close_on_known_graphs_in_single(make_problem, name):
    W = adjacency(GRAPHS[name])
    problem = make_problem(W, 20, kind="normalized", dtype=np.float32)
    solution = solve(problem, 20, 1e-5, loop, quiet)
    L = dense(W, "normalized")
    assert_solves(problem, solution, L, 20, rtol=0, atol=1e-5, angle=1e-2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("path", 2 - 2 * np.cos(np.pi * np.arange(1, 21) / 600)),
        ("cycle", 2 - 2 * np.cos(2 * np.pi * np.repeat(np.arange(1, 11), 2) / 601)),
        ("hypercube", np.repeat([2.0, 4.0], [9, 11])),
        ("star", np.ones(20)),
        ("complete", np.full(20, 150.0)),
    ],
)
def test_solve__finds_the_textbook_values(make_problem, name, expected):
    problem = make_problem(adjacency(GRAPHS[name]), 20)
    solution = solve(problem, 20, 1e-9, loop, quiet)
    np.testing.assert_allclose(solution.values[:20], expected, rtol=1e-8)


def test_solve__counts_multiplicities_over_disjoint_copies(make_problem):
    cube = nx.hypercube_graph(7)
    W = adjacency(nx.disjoint_union_all([cube] * 4))
    _, component = connected_components(W)
    problem = make_problem(W, 40, component=component.astype(np.int32))
    assert problem.null_space().count == 4
    solution = solve(problem, 40, 1e-9, loop, quiet)
    assert solution.converged
    # Four copies of eigenvalue 2, seven-fold each; then of 4.
    np.testing.assert_allclose(solution.values[:40], np.repeat([2.0, 4.0], [28, 12]), rtol=1e-8)


def test_solve__separates_nearly_disconnected_halves(make_problem):
    graph = nx.disjoint_union(nx.grid_2d_graph(15, 20), nx.grid_2d_graph(15, 20))
    graph.add_edge(0, 300, weight=1e-6)
    W = adjacency(graph)
    problem = make_problem(W, 12)
    L = dense(W, "unnormalized")
    solution = solve(problem, 12, 1e-9, loop, quiet)
    assert_solves(problem, solution, L, 12, rtol=1e-7, atol=1e-15, angle=1e-4)
    # The lowest vector tells the halves apart.
    first = vectors_of(problem, solution, 1)[:, 0]
    assert solution.values[0] < 1e-7
    assert (np.sign(first[:300]) == -np.sign(first[300])).all()


def test_solve__bears_heavy_tailed_degrees(make_problem):
    graph = nx.barabasi_albert_graph(700, 2, seed=3)
    rng = np.random.default_rng(3)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.pareto(1) + 0.01)
    W = adjacency(graph)
    L = dense(W, "unnormalized")
    assert np.diag(L).max() > 100 * np.median(np.diag(L))
    problem = make_problem(W, 15)
    solution = solve(problem, 15, 1e-8, loop, quiet)
    assert_solves(problem, solution, L, 15, rtol=1e-6, atol=1e-10, angle=1)


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
def test_oracles__agree_with_each_other_and_with_lapack(make_problem, kind):
    W = adjacency(nx.disjoint_union(GRAPHS["grid"], nx.random_regular_graph(3, 100, seed=1)))
    _, component = connected_components(W)
    problem = make_problem(W, 12, kind=kind, component=component.astype(np.int32), count=3)
    operator, null = problem.operator.open(), problem.null_space()
    expected = np.linalg.eigvalsh(dense(W, kind))[2:14]
    results = (
        oracles.dense_pairs(operator, null, 12),
        oracles.lanczos_pairs(operator, null, 12, 1e-9),
    )
    for values, vectors in results:
        np.testing.assert_allclose(values, expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-8)
        assert oracles.residual_norms(operator, (values, vectors)).max() < 1e-8
    solution = solve(problem, 12, 1e-9, loop, quiet)
    np.testing.assert_allclose(solution.values[:12], expected, rtol=1e-8)


def test_lanczos_pairs__reaches_the_tolerance_it_is_given(make_problem):
    problem = make_problem(adjacency(GRAPHS["path"]), 10, kind="normalized")
    operator = problem.operator.open()
    pairs = oracles.lanczos_pairs(operator, problem.null_space(), 10, 1e-6)
    assert oracles.residual_norms(operator, pairs).max() <= 1e-6


@pytest.mark.parametrize("count", [2, 5])
def test_solve__does_not_depend_on_the_row_blocks(make_problem, count):
    W = adjacency(GRAPHS["grid"])
    one, more = (make_problem(W, 10, count=c, name=f"{c}") for c in (1, count))
    first, second = (solve(problem, 10, 1e-9, loop, quiet) for problem in (one, more))
    np.testing.assert_allclose(first.values, second.values, rtol=1e-10)


def test_solve__keeps_what_it_has_when_it_cannot_converge(make_problem, monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.chebyshev.MOST_PASSES", 1)
    said = []
    problem = make_problem(adjacency(GRAPHS["path"]), 20)
    solution = solve(problem, 20, 1e-9, loop, said.append)
    assert not solution.converged
    assert solution.passes == len(said) == 1
    assert np.isfinite(solution.values[:20]).all()
    X = vectors_of(problem, solution, 20)
    np.testing.assert_allclose(X.T @ X, np.eye(20), atol=1e-8)
    assert solution.residuals[:20].max() > 1e-9


class FrailMap:
    """Notes results as `Context.map` does, and is killed after some tasks."""

    def __init__(self):
        self.noted, self.left, self.log = {}, None, []

    def __call__(self, step, function, items, *, label=None, keep=True):
        results = []
        for item in items:
            name = f"{step}/{item}"
            if not (keep and name in self.noted):
                if self.left == 0:
                    raise KilledError
                self.left = None if self.left is None else self.left - 1
                with threadpool_limits(1, user_api="blas"):
                    self.noted[name] = function(item)
                self.log.append(name)
            results.append(self.noted[name])
        return results


def test_solve__goes_on_after_a_kill_at_any_task(make_problem, monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.chebyshev._TILE_BYTES", 1)
    monkeypatch.setattr("eigenscape.spectrum.chebyshev.ROW_TILE", 256)
    W = adjacency(GRAPHS["grid"])
    whole = FrailMap()
    problem = make_problem(W, 20, name="whole")
    expected = solve(problem, 20, 1e-9, whole, quiet)
    assert expected.passes > 1
    vectors = vectors_of(problem, expected, 20)
    steps = len(whole.log)
    for number, tasks in enumerate(range(1, steps, max(1, steps // 12))):
        tasks_map = FrailMap()
        tasks_map.left = tasks
        problem = make_problem(W, 20, name=f"killed-{number}")
        with pytest.raises(KilledError):
            solve(problem, 20, 1e-9, tasks_map, quiet)
        tasks_map.left = None
        solution = solve(problem, 20, 1e-9, tasks_map, quiet)
        np.testing.assert_array_equal(solution.values, expected.values)
        np.testing.assert_array_equal(solution.residuals, expected.residuals)
        np.testing.assert_array_equal(vectors_of(problem, solution, 20), vectors)
        # What was finished is not done again; Gram matrices are not kept.
        lasting = [name for name in tasks_map.log if not name.startswith("gram")]
        assert lasting == [name for name in whole.log if not name.startswith("gram")]


def test_column_count__leaves_guards_and_fills_groups():
    for pairs in (1, 8, 9, 55, 1000):
        columns = column_count(pairs)
        assert columns % 16 == 0
        assert columns - pairs >= max(8, 0.1 * pairs)
    assert tile_rows(64) % 4096 == 0
