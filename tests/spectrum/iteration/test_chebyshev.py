import itertools
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.neighbors import kneighbors_graph

from eigenscape.clusters import Serial, Threads
from eigenscape.clusters.workers.executors import one_blas_thread
from eigenscape.context import Loop
from eigenscape.spectrum.iteration import chebyshev, coarse
from eigenscape.spectrum.iteration.chebyshev import solve
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.layout import BY_COLUMNS, Layout
from eigenscape.spectrum.iteration.subspace import Subspace
from eigenscape.spectrum.kernels import oracles
from eigenscape.spectrum.kernels.gather import WIDTH
from harness import KilledError

loop = Loop(Serial())


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


def vectors_of(solution, pairs):
    return solution.vectors.read(slice(None))[:, :pairs]


def assert_solves(problem, solution, L, pairs, *, nulls=1, rtol, atol, angle):
    """Compare with LAPACK: values one by one, vectors by the angles between whole clusters."""
    assert solution.converged
    values, vectors = np.linalg.eigh(L)
    np.testing.assert_allclose(
        solution.values[:pairs], values[nulls : nulls + pairs], rtol=rtol, atol=atol
    )
    found = vectors_of(solution, pairs)
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


@pytest.mark.mostly_slow(8)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("name", GRAPHS)
def test_solve__is_exact_on_known_graphs_in_double(make_problem, name, kind):
    W = adjacency(GRAPHS[name])
    pairs = 20
    problem = make_problem(W, kind=kind)
    L = dense(W, kind)
    scale = problem.operator.bound
    solution = solve(problem, pairs, 1e-9 * scale, loop, quiet)
    assert_solves(problem, solution, L, pairs, rtol=1e-8, atol=1e-13 * scale, angle=1e-5)
    found = vectors_of(solution, pairs)
    residuals = np.linalg.norm(L @ found - found * solution.values[:pairs], axis=0)
    np.testing.assert_allclose(residuals, solution.residuals[:pairs], atol=1e-11 * scale)
    assert residuals.max() <= 1.01e-9 * scale


@pytest.mark.parametrize("name", ["grid", "hypercube", "tree"])
def test_solve__is_close_on_known_graphs_in_single(make_problem, name):
    W = adjacency(GRAPHS[name])
    problem = make_problem(W, kind="normalized", dtype=np.float32)
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
    problem = make_problem(adjacency(GRAPHS[name]))
    solution = solve(problem, 20, 1e-9, loop, quiet)
    np.testing.assert_allclose(solution.values[:20], expected, rtol=1e-8)


def test_solve__counts_multiplicities_over_disjoint_copies(make_problem):
    cube = nx.hypercube_graph(7)
    W = adjacency(nx.disjoint_union_all([cube] * 4))
    _, component = connected_components(W)
    problem = make_problem(W, component=component.astype(np.int32))
    assert problem.null_space().count == 4
    solution = solve(problem, 40, 1e-9, loop, quiet)
    assert solution.converged
    # Four copies of eigenvalue 2, seven-fold each; then of 4.
    np.testing.assert_allclose(solution.values[:40], np.repeat([2.0, 4.0], [28, 12]), rtol=1e-8)


def test_solve__separates_nearly_disconnected_halves(make_problem):
    graph = nx.disjoint_union(nx.grid_2d_graph(15, 20), nx.grid_2d_graph(15, 20))
    graph.add_edge(0, 300, weight=1e-6)
    W = adjacency(graph)
    problem = make_problem(W)
    L = dense(W, "unnormalized")
    solution = solve(problem, 12, 1e-9, loop, quiet)
    assert_solves(problem, solution, L, 12, rtol=1e-7, atol=1e-15, angle=1e-4)
    # The lowest vector tells the halves apart.
    first = vectors_of(solution, 1)[:, 0]
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
    problem = make_problem(W)
    solution = solve(problem, 15, 1e-8, loop, quiet)
    assert_solves(problem, solution, L, 15, rtol=1e-6, atol=1e-10, angle=1)


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
def test_oracles__agree_with_each_other_and_with_lapack(make_problem, kind):
    W = adjacency(nx.disjoint_union(GRAPHS["grid"], nx.random_regular_graph(3, 100, seed=1)))
    _, component = connected_components(W)
    problem = make_problem(W, kind=kind, component=component.astype(np.int32), count=3)
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
    problem = make_problem(adjacency(GRAPHS["path"]), kind="normalized")
    operator = problem.operator.open()
    pairs = oracles.lanczos_pairs(operator, problem.null_space(), 10, 1e-6)
    assert oracles.residual_norms(operator, pairs).max() <= 1e-6


@pytest.mark.parametrize("count", [2, 5])
def test_solve__does_not_depend_on_the_row_blocks(make_problem, count):
    W = adjacency(GRAPHS["grid"])
    one, more = (make_problem(W, count=c, name=f"{c}") for c in (1, count))
    first, second = (solve(problem, 10, 1e-9, loop, quiet) for problem in (one, more))
    np.testing.assert_allclose(first.values, second.values, rtol=1e-10)


def test_solve__keeps_what_it_has_when_it_cannot_converge(make_problem, monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.MOST_PASSES", 1)
    said = []
    problem = make_problem(adjacency(GRAPHS["path"]))
    solution = solve(problem, 20, 1e-9, loop, said.append)
    assert not solution.converged
    assert solution.passes == len(said) == 1
    assert np.isfinite(solution.values[:20]).all()
    X = vectors_of(solution, 20)
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
                with one_blas_thread():
                    self.noted[name] = function(item)
                self.log.append(name)
            results.append(self.noted[name])
        return results


@pytest.mark.slow
@pytest.mark.parametrize("most_degree", [1000, 3])
def test_solve__goes_on_after_a_kill_at_any_task(make_problem, monkeypatch, most_degree):
    # Passes so short gain little, so that double precision begins before single has converged.
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._MOST_DEGREE", most_degree)
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._TILE_BYTES", 1)
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._TILE_ROWS", 128)
    W = adjacency(GRAPHS["grid"])
    whole = FrailMap()
    problem = make_problem(W, name="whole")
    expected = solve(problem, 20, 1e-9, whole, quiet)
    assert expected.passes > 1
    vectors = vectors_of(expected, 20)
    steps = len(whole.log)
    handover = next(place for place, name in enumerate(whole.log) if name.startswith("widen"))
    kills = {*range(1, steps, max(1, steps // 8)), handover, handover + 1}
    for number, tasks in enumerate(sorted(kills)):
        tasks_map = FrailMap()
        tasks_map.left = tasks
        problem = make_problem(W, name=f"killed-{number}")
        with pytest.raises(KilledError):
            solve(problem, 20, 1e-9, tasks_map, quiet)
        tasks_map.left = None
        solution = solve(problem, 20, 1e-9, tasks_map, quiet)
        np.testing.assert_array_equal(solution.values, expected.values)
        np.testing.assert_array_equal(solution.residuals, expected.residuals)
        np.testing.assert_array_equal(vectors_of(solution, 20), vectors)
        # What was finished is not done again; Gram matrices are not kept.
        lasting = [name for name in tasks_map.log if not name.startswith("gram")]
        assert lasting == [name for name in whole.log if not name.startswith("gram")]


def neighbour_graph(n, seed=1, k=8):
    points = np.random.default_rng(seed).uniform(0, 1, (n, 2))
    distance, index = cKDTree(points).query(points, k + 1)
    rows = np.repeat(np.arange(n), k)
    weights = np.exp(-((distance[:, 1:] / distance[:, -1:]) ** 2)).ravel()
    W = scipy.sparse.csr_array((weights, (rows, index[:, 1:].ravel())), (n, n))
    return scipy.sparse.csr_array(W.maximum(W.T))


@pytest.fixture(scope="module")
def plane():
    """Return a graph that has a coarse one, and its normalised Laplacian's lowest pairs."""
    graph = nx.grid_2d_graph(36, 38)
    rng = np.random.default_rng(2)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.3, 1))
    W = adjacency(graph)
    values, vectors = scipy.linalg.eigh(dense(W, "normalized"), subset_by_index=[0, 110])
    return W, values, vectors


@pytest.mark.parametrize("missing", [1, 6, 10])
def test_solve__finds_what_the_coarse_graph_does_not_show(
    make_problem, monkeypatch, plane, missing
):
    W, values, vectors = plane
    hidden, real = vectors[:, missing], coarse.prolong

    def prolong(rough, directory, rows):
        carried = real(rough, directory, rows)
        assert carried.shape[0] == len(hidden)
        return carried - np.outer(hidden, hidden @ carried)

    monkeypatch.setattr("eigenscape.spectrum.iteration.coarse.prolong", prolong)
    problem = make_problem(W, kind="normalized")
    solution = solve(problem, 10, 1e-8, loop, quiet)
    assert (problem.directory / "single" / "coarse").exists()
    assert solution.converged
    np.testing.assert_allclose(solution.values[:10], values[1:11], atol=1e-12)
    found = vectors_of(solution, 10)[:, missing - 1]
    assert abs(found @ hidden) > 1 - 1e-6


def test_solve__locks_what_has_converged(make_problem, monkeypatch, plane):
    W, values, vectors = plane
    locked, real = [], chebyshev._lock

    def lock(*rest):
        locked.append(real(*rest).locked)
        return real(*rest)

    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev._lock", lock)
    monkeypatch.setattr(Subspace, "in_single", lambda self: None)
    # Short filters, so that the lowest vectors are there before the others.
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._MOST_DEGREE", 10)
    problem = make_problem(W, kind="normalized")
    solution = solve(problem, 100, 1e-11, loop, quiet)
    assert solution.converged
    assert 0 < max(locked) <= 3
    assert locked == sorted(locked)
    np.testing.assert_allclose(solution.values[:100], values[1:101], atol=1e-12)
    X = vectors_of(solution, 100)
    np.testing.assert_allclose(X.T @ X, np.eye(100), atol=1e-11)
    assert scipy.linalg.subspace_angles(X, vectors[:, 1:101]).max() < 1e-7
    # Nothing but the vectors is left.
    files = {str(path) for path in problem.directory.iterdir()}
    assert {*solution.vectors.files} == {file for file in files if "pass-" in file}
    assert not [file for file in files if "filtered" in file or "image" in file]


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("layout", [BY_COLUMNS, Layout("rows", slots=2)], ids=["columns", "rows"])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-9, 1e-11])
def test_solve__begins_in_single_and_corrects_the_wanted_columns_alone(
    make_problem, monkeypatch, plane, tolerance, layout
):
    W, values, vectors = plane
    problem, said = make_problem(W, kind="normalized"), []
    solution = solve(problem, 40, tolerance, loop, said.append, layout)
    assert solution.converged
    rough = [text for text in said if text.startswith("single precision, pass")]
    assert rough == said[: len(rough)]
    assert 1 <= len(rough) < len(said)
    np.testing.assert_allclose(solution.values[:40], values[1:41], atol=1e-11)
    assert scipy.linalg.subspace_angles(vectors_of(solution, 40), vectors[:, 1:41]).max() < 1e-5
    # Without single precision, and with all columns filtered, it takes more products.
    monkeypatch.setattr(Subspace, "in_single", lambda self: None)
    monkeypatch.setattr(
        "eigenscape.spectrum.iteration.kernels.columns._lacking_groups", lambda *_: None
    )
    whole = solve(make_problem(W, kind="normalized", name="w"), 40, tolerance, loop, quiet, layout)
    assert whole.converged
    assert solution.products < whole.products
    np.testing.assert_allclose(solution.values[:40], whole.values[:40], atol=1e-11)


@pytest.mark.parametrize("layout", [BY_COLUMNS, Layout("rows", slots=2)], ids=["columns", "rows"])
@pytest.mark.parametrize("measured", [1e-5, 1e-9])
def test_solve__holds_two_sets_of_vectors_at_most(make_problem, plane, layout, measured):
    dtype = np.float32 if measured > 1e-6 else np.float64
    problem, sets = make_problem(plane[0], kind="normalized", dtype=dtype), []

    def watching(step, *rest, **options):
        results = loop(step, *rest, **options)
        size = problem.operator.rows * WIDTH * np.dtype(dtype).itemsize
        # Neither what steps by rows exchange, nor vectors of coarse graphs.
        folders = [problem.directory, problem.directory / "single"]
        there = [path.stat() for folder in folders for path in folder.glob("[!w]*-[0-9]*")]
        sets.append(sum(each.st_size for each in there if each.st_size in (size, size / 2)) / size)
        return results

    solution = solve(problem, 20, measured, watching, quiet, layout)
    assert solution.converged
    assert max(sets) == 2 * solution.vectors.groups


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-8)])
def test_solve__gives_the_same_bits_from_mapped_memory(make_problem, plane, dtype, tolerance):
    """However many groups a task holds in memory; in half precision too, which 1e-8 ends with."""
    problems = [
        replace(make_problem(plane[0], dtype=np.dtype(dtype), name=f"held{held}"), held=held)
        for held in (2, 1, 0)
    ]
    first, *others = (solve(problem, 20, tolerance, loop, quiet) for problem in problems)
    for other in others:
        np.testing.assert_array_equal(first.values, other.values)
        np.testing.assert_array_equal(first.residuals, other.residuals)
        np.testing.assert_array_equal(*(s.vectors.read(slice(None)) for s in (first, other)))
    assert not [file for problem in problems for file in problem.directory.rglob("work-*")]


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
def test_solve__finds_the_same_with_any_number_of_groups(make_problem, monkeypatch, kind):
    W = neighbour_graph(900)
    expected, vectors = scipy.linalg.eigh(dense(W, kind), subset_by_index=[0, 8])
    monkeypatch.setattr(
        "eigenscape.spectrum.iteration.kernels.columns.choose_columns",
        lambda values, *rest: len(values),
    )
    for count in (32, 64, 128):
        monkeypatch.setattr(
            "eigenscape.spectrum.iteration.kernels.columns.column_count", lambda _, c=count: c
        )
        problem = make_problem(W, kind=kind, name=f"{count}")
        solution = solve(problem, 8, 1e-9, loop, quiet)
        assert solution.converged
        assert solution.vectors.columns == count
        np.testing.assert_allclose(solution.values[:8], expected[1:], atol=1e-10)
        angles = scipy.linalg.subspace_angles(vectors_of(solution, 8), vectors[:, 1:])
        assert angles.max() < 1e-6


def test_solve__gives_the_same_bits_on_any_number_of_threads(make_problem, monkeypatch, plane):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns._TILE_BYTES", 1)
    results = []
    for count in (1, 2, 4):
        problem = make_problem(plane[0], kind="normalized", dtype=np.float32, name=f"{count}")
        results.append(solve(problem, 40, 1e-5, Loop(Threads(count)), quiet))
    assert results[0].vectors.groups > 1
    for other in results[1:]:
        np.testing.assert_array_equal(other.values, results[0].values)
        np.testing.assert_array_equal(other.residuals, results[0].residuals)
        np.testing.assert_array_equal(
            other.vectors.read(slice(None)), results[0].vectors.read(slice(None))
        )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_solve__separates_parts_on_weak_bridges(make_problem, dtype, tolerance):
    parts = [nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, s)) for s in (20, 25, 30)]
    graph = nx.disjoint_union_all(parts)
    graph.add_edge(0, 200, weight=1e-5)
    graph.add_edge(210, 450, weight=1e-7)
    W = adjacency(graph)
    problem = make_problem(W, kind="normalized", dtype=dtype)
    solution = solve(problem, 12, tolerance, loop, quiet)
    values = np.linalg.eigvalsh(dense(W, "normalized"))
    assert solution.converged
    np.testing.assert_allclose(solution.values[:12], values[1:13], atol=max(1e-11, tolerance / 5))
    # The lowest two are constant on the parts, as far as their gap to the rest is resolved.
    part = np.repeat(np.arange(3), [200, 250, 300])
    X = vectors_of(solution, 2) / np.sqrt(W.sum(axis=1))[:, None]
    spread = max(np.ptp(X[part == p], axis=0).max() for p in range(3))
    assert spread < 0.01 * np.ptp(X)


@pytest.mark.mostly_slow(2)
@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solve__bears_components_of_very_different_size(make_problem, kind, dtype):
    W = scipy.sparse.block_diag(
        [neighbour_graph(1000), adjacency(nx.path_graph(3)), adjacency(nx.path_graph(2))],
        format="csr",
    )
    _, component = connected_components(W)
    problem = make_problem(W, kind=kind, dtype=dtype, component=component.astype(np.int32))
    assert problem.null_space().count == 3
    scale = problem.operator.bound
    tolerance = (1e-9 if dtype is np.float64 else 1e-5) * scale
    solution = solve(problem, 60, tolerance, loop, quiet)
    assert solution.converged
    expected = np.linalg.eigvalsh(dense(W, kind))[3:63]
    np.testing.assert_allclose(solution.values[:60], expected, atol=tolerance)
    X = vectors_of(solution, 60)
    null = problem.null_space()
    for part in range(3):
        inside = null.component == part
        assert np.abs(null.entries[inside] @ X[inside]).max() < 1e-5
    np.testing.assert_allclose(X.T @ X, np.eye(60), atol=1e-5)


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (nx.complete_graph(300), np.full(70, 300.0)),
        (nx.star_graph(300), np.ones(70)),
        (nx.disjoint_union_all([nx.complete_graph(12)] * 25), np.full(70, 12.0)),
        (nx.disjoint_union_all([nx.path_graph(2)] * 150), np.full(70, 2.0)),
    ],
    ids=["complete", "star", "cliques", "pairs"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solve__bears_multiplicities_larger_than_a_group(make_problem, graph, expected, dtype):
    W = adjacency(graph)
    _, component = connected_components(W)
    problem = make_problem(W, dtype=dtype, component=component.astype(np.int32))
    tolerance = (1e-10 if dtype is np.float64 else 1e-5) * problem.operator.bound
    solution = solve(problem, 70, tolerance, loop, quiet)
    assert solution.converged
    np.testing.assert_allclose(
        solution.values[:70], expected, rtol=1e-8 if dtype is np.float64 else 1e-5
    )
    X = vectors_of(solution, 70)
    np.testing.assert_allclose(X.T @ X, np.eye(70), atol=1e-5)


NUMBER = itertools.count()


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(96, 150), kind=st.sampled_from(["normalized", "random-walk", "unnormalized"]),
    count=st.integers(1, 5), spread=st.floats(0, 2), seed=st.integers(0, 999),
    pairs=st.integers(1, 7),
)  # fmt: skip
def test_solve__equals_lapack_on_any_graph(make_problem, n, kind, count, spread, seed, pairs):
    graph = nx.gnp_random_graph(n, 4 / n, seed=seed)
    nx.add_path(graph, range(n))
    weights = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(np.exp(spread * weights.standard_normal()))
    W = adjacency(graph)
    problem = make_problem(W, kind=kind, count=count, name=f"{next(NUMBER)}")
    scale = problem.operator.bound
    solution = solve(problem, pairs, 1e-9 * scale, loop, quiet)
    assert solution.converged
    values = np.linalg.eigvalsh(dense(W, kind))[1 : pairs + 1]
    np.testing.assert_allclose(solution.values[:pairs], values, atol=1e-9 * scale)
    X = vectors_of(solution, pairs)
    np.testing.assert_allclose(X.T @ X, np.eye(pairs), atol=1e-8)
    null = problem.null_space().entries
    np.testing.assert_allclose(null @ X, 0, atol=1e-8)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_solve__converges_in_few_passes_from_a_random_start_in_single(make_problem, seed):
    # More pairs than any coarse graph has. Columns that a filter has made nearly parallel would be
    # told apart by the rounding of their images, with Ritz values far outside of the spectrum.
    points = np.random.default_rng(seed).random((2000, 3))
    W = kneighbors_graph(points, 10)
    problem = make_problem(
        scipy.sparse.csr_array(W.maximum(W.T)), kind="normalized", dtype=np.float32
    )
    said = []
    solution = solve(problem, 250, 1e-5, loop, said.append)
    assert solution.converged
    assert solution.passes <= 4
    assert all(float(text.split("residual ")[1].split()[0]) < 2 for text in said)


@pytest.fixture(scope="module")
def space():
    """Return a neighbour graph in three dimensions and its normalised Laplacian's values."""
    W = kneighbors_graph(np.random.default_rng(0).random((1600, 3)), 10)
    W = scipy.sparse.csr_array(W.maximum(W.T))
    return W, np.linalg.eigvalsh(dense(W, "normalized"))


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    ("dtype", "tolerance", "orthogonal"),
    [(np.float64, 1e-9, 1e-12), (np.float32, 1e-4, 1e-5), (np.float32, 1e-6, 1e-5)],
)
def test_solve__moves_a_block_up_the_spectrum(
    make_problem, monkeypatch, space, dtype, tolerance, orthogonal
):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    W, values = space
    problem = make_problem(W, kind="normalized", dtype=dtype)
    said = []
    solution = solve(problem, 300, tolerance, loop, said.append)
    assert solution.converged
    counts = [int(text.split("degree")[1].split()[1]) for text in said]
    assert max(counts) == 192
    assert len(counts) <= 12
    np.testing.assert_allclose(
        solution.values[:300], values[1:301], atol=1e-12 if dtype is np.float64 else 1e-7
    )
    X = vectors_of(solution, 300)
    np.testing.assert_allclose(X.T @ X, np.eye(300), atol=orthogonal)
    images = dense(W, "normalized") @ X
    residuals = np.linalg.norm(images - X * solution.values[:300], axis=0)
    assert residuals.max() <= 1.1 * tolerance
    names = {path.name.rpartition("-")[0] for path in problem.directory.iterdir()}
    assert not names & {"filtered", "projected", "image", "fresh"}


@pytest.mark.slow
def test_solve__moves_up_spectra_that_thin_out(make_problem, monkeypatch):
    # Values of a path grow with the square of their number, those of a comb fall into two bands.
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    comb = nx.path_graph(400)
    comb.add_edges_from((node, node + 400, {"weight": 5.0}) for node in range(400))
    for graph in (nx.path_graph(1700), comb):
        W = adjacency(graph)
        problem = make_problem(W, name=f"{len(graph)}")
        solution = solve(problem, 230, 1e-8, loop, quiet)
        assert solution.converged
        expected = np.linalg.eigvalsh(dense(W, "unnormalized"))[1:231]
        np.testing.assert_allclose(solution.values[:230], expected, atol=1e-12)


@pytest.mark.slow
def test_solve__moves_past_multiplicities_larger_than_its_block(make_problem, monkeypatch):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    W = adjacency(nx.disjoint_union_all([nx.complete_graph(4)] * 120))
    _, component = connected_components(W)
    problem = make_problem(W, component=component.astype(np.int32))
    solution = solve(problem, 200, 1e-9, loop, quiet)
    assert solution.converged
    np.testing.assert_allclose(solution.values[:200], 4.0, rtol=1e-10)
    X = vectors_of(solution, 200)
    np.testing.assert_allclose(X.T @ X, np.eye(200), atol=1e-10)


@pytest.mark.slow
def test_solve__goes_on_after_a_kill_while_its_block_moves(make_problem, monkeypatch, space):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    whole = FrailMap()
    expected = solve(make_problem(space[0], name="whole"), 130, 1e-7, whole, quiet)
    grows = [n for n, name in enumerate(whole.log) if "grow" in name]
    assert grows
    steps = [grows[0], grows[-1], grows[-1] + 9, len(whole.log) - 2]
    for number, tasks in enumerate(steps):
        tasks_map = FrailMap()
        tasks_map.left = tasks
        problem = make_problem(space[0], name=f"killed-{number}")
        with pytest.raises(KilledError):
            solve(problem, 130, 1e-7, tasks_map, quiet)
        tasks_map.left = None
        solution = solve(problem, 130, 1e-7, tasks_map, quiet)
        np.testing.assert_array_equal(solution.values, expected.values)
        np.testing.assert_array_equal(vectors_of(solution, 130), vectors_of(expected, 130))


def test_solve__moves_on_where_residuals_stay_just_below_the_tolerance(
    make_problem, monkeypatch, space
):
    # What locked vectors lack bounds the residuals of the others: no filter brings them lower.
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev._LOCKED_SHARE", 1e-12)
    W, values = space
    problem = make_problem(W, kind="normalized", dtype=np.float32)
    solution = solve(problem, 200, 1e-4, loop, quiet)
    assert solution.converged
    np.testing.assert_allclose(solution.values[:200], values[1:201], atol=1e-6)


def test_advance__begins_at_0_again_after_a_filter_that_overflowed(make_problem):
    """A filter is 1 where the spectrum is said to begin: what lies lower grows without limit."""
    problem = make_problem(adjacency(nx.grid_2d_graph(40, 15)), kind="normalized", dtype=np.float32)
    subspace = Subspace.on(problem, loop)
    state = replace(subspace.begin(64, 20, whole=True), locked=1, values=(0.9,) * 64)
    assert subspace.low(state) == 0.9
    state = subspace.advance(state, FilterPlan(1000, 1.0, 2.0, 0.9), measured=True)
    assert state.overflowed
    assert subspace.low(state) == 0
    plan = FilterPlan(20, 0.5, subspace.high(state), subspace.low(state))
    assert np.isfinite(subspace.advance(state, plan, measured=True).values).all()


def test_solve__bears_a_block_full_of_one_eigenvalue_above_locked_ones(make_problem):
    # 80 copies of each pair: 160 columns of one eigenvalue are locked, 160 hold the next.
    W = adjacency(nx.disjoint_union_all([nx.cycle_graph(20)] * 80))
    component = np.repeat(np.arange(80), 20).astype(np.int32)
    problem = make_problem(W, kind="normalized", dtype=np.float32, component=component)
    solution = solve(problem, 180, 1e-5, loop, quiet)
    assert solution.converged
    assert solution.passes <= 6
    expected = 1 - np.cos(2 * np.pi * np.repeat([1, 2], [160, 20]) / 20)
    np.testing.assert_allclose(solution.values[:180], expected, atol=1e-6)


def test_solve__gives_all_vectors_when_its_block_cannot_move_on(make_problem, monkeypatch, space):
    monkeypatch.setattr("eigenscape.spectrum.iteration.kernels.columns.MOST_COLUMNS", 192)
    monkeypatch.setattr("eigenscape.spectrum.iteration.chebyshev.MOST_PASSES", 1)
    problem = make_problem(space[0], kind="normalized")
    solution = solve(problem, 300, 1e-9, loop, quiet)
    assert not solution.converged
    assert np.isfinite(solution.values[:300]).all()
    assert vectors_of(solution, 300).shape == (1600, 300)
    # What random columns are left is said to be no eigenvector.
    assert np.isinf(solution.residuals[:300]).any() or solution.residuals[:300].max() > 1e-9
