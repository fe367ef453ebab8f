from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from blockvectors import filled
from eigenscape.spectrum.iteration import tasks
from eigenscape.spectrum.iteration.kernels.columns import PROBES
from eigenscape.spectrum.iteration.kernels.filter import FilterPlan
from eigenscape.spectrum.iteration.tasks import Filter, Image, Residuals
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.stored import StoredOperator


def adjacency(graph):
    return nx.adjacency_matrix(graph).astype(float)


@pytest.fixture
def problem(make_problem):
    return make_problem(adjacency(nx.grid_2d_graph(20, 15)), kind="normalized")


def test_groups_held__counts_groups_in_their_type():
    rows = 1000
    need = rows * (2 * WIDTH * 4 + 32)
    assert tasks.groups_held(rows, "float32", need) == 2
    assert tasks.groups_held(rows, "float32", 10 * need) == 2
    assert tasks.groups_held(rows, "float32", need - 1) == 1
    assert tasks.groups_held(rows, "float64", need) == 1
    assert tasks.groups_held(rows, "float64", need - 1) == 0
    assert tasks.groups_held(rows, "float32", 0) == 0


@pytest.mark.parametrize("held", [0, 1, 2])
def test_bench__gives_zeros_under_names_of_their_own(problem, held):
    problem = replace(problem, held=held)
    before = {path.name for path in problem.directory.iterdir()}
    for _ in range(2):
        with problem.bench() as zeros, problem.bench() as others:
            X, Y = zeros(), others()
            X[:] = 1
            np.testing.assert_array_equal(Y, np.zeros((300, WIDTH)))
            names = {path.name for path in problem.directory.iterdir()} - before
            assert len(names) == (0 if held else 2)
            assert all(name.startswith("work-") for name in names)
    assert {path.name for path in problem.directory.iterdir()} == before


def test_coarsen__says_when_it_does_not_serve(problem, make_problem):
    stored = tasks.coarsen(problem, 4, "all")
    assert StoredOperator.from_json(stored).rows < 100
    assert tasks.coarsen(problem, 200, "all") is None
    # Aggregates of two rows hardly shrink it; no edges at all do not shrink it.
    lonely = make_problem(
        adjacency(nx.disjoint_union(nx.path_graph(2), nx.path_graph(2))), name="l"
    )
    assert tasks.coarsen(lonely, 4, "all") is None


def test_start__is_random_and_the_same_again(problem):
    first, second = (problem.named(name, range(2)) for name in ("a", "b"))
    for vectors in (first, second):
        for group in (1, 0):
            tasks.start(problem, vectors, None, group)
    X = first.read(slice(None))
    np.testing.assert_array_equal(X, second.read(slice(None)))
    assert np.linalg.matrix_rank(X) == 2 * WIDTH


@pytest.mark.parametrize("level", [0, 1])
def test_start__adds_probes_to_the_last_group_of_the_finest_level(problem, rng, level):
    problem = replace(problem, level=level)
    stored = StoredOperator.from_json(tasks.coarsen(problem, 4, "all"))
    below = replace(problem, operator=stored, directory=problem.directory / "coarse")
    rough = filled(below, "rough", 2, rng)
    start = problem.named("start", range(2))
    for group in range(2):
        tasks.start(problem, start, rough, group)
    label = np.load(problem.directory / "coarse" / "label.npy")
    weight = np.load(problem.directory / "coarse" / "weight.npy")
    expected = rough.read(slice(None))[label] * weight[:, None]
    X = start.read(slice(None))
    probes = 0 if level else PROBES
    np.testing.assert_allclose(X[:, : 64 - probes], expected[:, : 64 - probes], rtol=1e-12)
    if probes:
        lengths = np.linalg.norm(X[:, -probes:], axis=0)
        np.testing.assert_allclose(lengths, 1, atol=0.2)


def test_grow__draws_every_column_anew(problem):
    vectors = problem.named("fresh", range(4))
    for first, groups in ((0, vectors[:2]), (2, vectors[2:])):
        for group in range(2):
            tasks.grow(groups, first, group)
    again = problem.named("again", range(1))
    tasks.grow(again, 3, 0)
    X = vectors.read(slice(None))
    assert np.linalg.matrix_rank(X) == X.shape[1]
    np.testing.assert_array_equal(again.read(slice(None)), X[:, -WIDTH:])


def test_measure__bounds_the_spectrum_with_and_without_stiff_rows(make_problem, problem):
    bound, short = tasks.measure(problem, "all")
    assert short is None
    largest = np.linalg.eigvalsh(problem.operator.open().matrix().toarray())[-1]
    assert largest * (1 - 1e-12) <= bound <= 2
    potential = 1e3 * (np.arange(300) % 10 == 0)
    heavy = make_problem(
        adjacency(nx.grid_2d_graph(20, 15)), kind="normalized", potential=potential, name="heavy"
    )
    bound, short = tasks.measure(heavy, "all")
    assert short < 3 < 1e3 < bound


def test_find_cut__is_a_guess_where_the_density_tells_nothing(make_problem, problem):
    cut, most = tasks.find_cut(problem, 2.0, 100)
    values = np.linalg.eigvalsh(problem.operator.open().matrix().toarray())
    assert cut == most == pytest.approx(values[100], abs=0.06)
    path = make_problem(adjacency(nx.path_graph(2000)), kind="normalized", name="path")
    assert tasks.find_cut(path, 2.0, 40) == (0.5, 2.0)


@pytest.mark.parametrize("held", [0, 1, 2])
@pytest.mark.parametrize("degree", [8, 9])
def test_filter__applies_the_polynomial_and_the_operator(problem, rng, held, degree):
    problem = replace(problem, held=held)
    X = filled(problem, "x", 2, rng)
    filtered, image = problem.unmade("filtered", range(2)), problem.named("image", range(2))
    plan = FilterPlan(degree, 0.3, 2.0, 0.0)
    for work in (
        Filter(problem, X, filtered, plan, np.zeros(64), np.zeros(64)),
        Image(problem, filtered, image),
    ):
        for group in range(2):
            work(group)
    A = problem.operator.open().matrix().toarray()
    values, vectors = np.linalg.eigh(A)
    chebyshev = np.polynomial.chebyshev.Chebyshev.basis(degree)
    gain = chebyshev((values - 1.15) / 0.85) / chebyshev(-1.15 / 0.85)
    gain[0] = 0
    expected = vectors @ (gain[:, None] * (vectors.T @ X.read(slice(None))))
    np.testing.assert_allclose(filtered.read(slice(None)), expected, atol=1e-12)
    np.testing.assert_allclose(image.read(slice(None)), A @ expected, atol=1e-12)
    assert not list(problem.directory.glob("work-*"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_usable__leaves_room_for_sums_of_products(dtype):
    X = np.ones((1000, WIDTH), dtype)
    assert tasks.usable(X)
    X[7, 3] = -1e20
    assert tasks.usable(X)
    for entry in (np.nan, np.inf, -0.1 * np.finfo(dtype).max):
        X[7, 3] = entry
        assert not tasks.usable(X)


def test_residuals__are_infinite_where_there_is_no_direction(problem, rng):
    X = filled(problem, "x", 1, rng)
    values = np.full(WIDTH, 0.4)
    values[30:] = np.inf
    found = Residuals(problem, X, values)(0)
    A = problem.operator.open().matrix()
    full = X.read(slice(None))
    expected = np.linalg.norm(A @ full - 0.4 * full, axis=0)
    np.testing.assert_allclose(found[:30], expected[:30])
    assert found[30:] == [np.inf, np.inf]


def test_solve_densely__writes_the_lowest_pairs(problem):
    vectors = problem.named("dense", range(1))
    values = tasks.solve_densely(problem, vectors, "all")
    A = problem.operator.open().matrix()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.toarray())[1:33], atol=1e-12)
    X = vectors.read(slice(None))
    np.testing.assert_allclose(A @ X, X * values, atol=1e-12)


def test_balanced__a_ritz_value_among_the_stiff_rows_does_no_harm(make_problem):
    """Guard columns of the first passes have such values: their hubs followed from a division by 0."""
    wheel = nx.circulant_graph(600, [1, 2, 3, 4])
    wheel.add_edges_from((0, other) for other in range(10, 500))
    problem = make_problem(adjacency(wheel), kind="unnormalized", dtype="float32")
    tasks.measure(problem, "all")
    operator = problem.operator.open()
    hub = int(operator.diagonal.argmax())
    balanced = problem.balanced(operator, np.full(WIDTH, operator.diagonal[hub]))
    assert hub in balanced.rows
    X = np.random.default_rng(0).standard_normal((operator.rows, WIDTH)).astype(np.float32)
    balanced.balance(X)
    assert np.abs(X[hub]).max() < 2 * np.abs(np.delete(X, hub, axis=0)).max()
