from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.multigrid import coarse_graphs
from eigenscape.learn.propagate.kernels.propagation import interpolate, poisson, regularize
from eigenscape.learn.propagate.kernels.volumes import _threshold_again, poisson_mbo, threshold
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator

TYPES = [(np.float32, 1e-5, 2e-3), (np.float64, 1e-11, 1e-7)]
"""Floating type, tolerance of the solver, what the solution may be off."""


def weighted_graph(rng, n, decades=2.0):
    """A connected graph with weights over some decades."""
    graph = nx.connected_watts_strogatz_graph(n, 6, 0.2, seed=int(rng.integers(2**31)))
    for _, _, data in graph.edges(data=True):
        data["weight"] = 10 ** rng.uniform(-decades, 0)
    return graph


def laplacian_of(graph):
    return scipy.sparse.csr_array(nx.laplacian_matrix(graph).astype(float))


def operator_of(L, dtype=np.float64, null=None):
    return as_operator(L, np.ones(L.shape[0]) if null is None else null, dtype)


def normalized(L):
    degree = L.diagonal()
    scale = scipy.sparse.diags_array(1 / np.sqrt(degree))
    return scipy.sparse.csr_array(scale @ L @ scale), np.sqrt(degree)


def zeros(dtype=np.float64):
    return lambda rows: np.zeros((rows, WIDTH), dtype)


def random_labels(rng, n, count=12, columns=WIDTH):
    """Another set of rows, and other values, for every column."""
    rows = np.sort(rng.choice(n, count, replace=False))
    values = rng.choice([-1.0, 1.0], (count, WIDTH))
    forgotten = rng.random((count, WIDTH)) < 0.4
    forgotten[rng.integers(count, size=WIDTH), np.arange(WIDTH)] = False
    values[forgotten] = np.nan
    values[:, columns:] = np.nan
    return ColumnLabels(rows, values)


def one_hot(rows, classes, count):
    values = np.full((len(rows), WIDTH), np.nan)
    values[:, :count] = classes[:, None] == np.arange(count)
    return ColumnLabels(rows, values)


def known_of(labels, column):
    known = labels.known[:, column]
    return labels.rows[known], labels.values[known, column]


def dense_interpolation(L, rows, y):
    free = np.setdiff1d(np.arange(len(L)), rows)
    f = np.empty(len(L))
    f[rows] = y
    f[free] = np.linalg.solve(L[np.ix_(free, free)], -L[np.ix_(free, rows)] @ y)
    return f


def dense_poisson(L, rows, y):
    source = np.zeros(len(L))
    source[rows] = y - y.mean()
    # Grounded at one row, then shifted: any solution will do.
    u = np.zeros(len(L))
    u[1:] = np.linalg.solve(L[1:, 1:], source[1:])
    return u - (np.diag(L) @ u) / np.trace(L)


@pytest.mark.parametrize(("dtype", "tolerance", "off"), TYPES)
@pytest.mark.parametrize("kind", ["unnormalized", "normalized", "potential"])
@pytest.mark.parametrize("multigrid", [False, True])
def test_interpolate__agrees_with_a_dense_solver(rng, dtype, tolerance, off, kind, multigrid):
    L, null = laplacian_of(weighted_graph(rng, 120)), None
    if kind == "normalized":
        L, null = normalized(L)
    if kind == "potential":
        L = scipy.sparse.csr_array(L + scipy.sparse.diags_array(rng.random(120)))
    labels = random_labels(rng, 120)
    operator = as_operator(
        L, np.ones(120) if null is None else null, dtype, singular=kind != "potential"
    )
    graphs = list(coarse_graphs(operator)) if multigrid else None
    found = interpolate(operator, labels, zeros(dtype), graphs=graphs, tolerance=tolerance)
    assert found.X.dtype == dtype
    assert found.solved.residuals.max() <= tolerance
    for column in range(WIDTH):
        rows, y = known_of(labels, column)
        np.testing.assert_array_equal(found.X[rows, column], y)
        expected = dense_interpolation(L.toarray(), rows, y)
        np.testing.assert_allclose(found.X[:, column], expected, atol=off)


def test_interpolate__is_linear_on_a_path():
    values = np.full((3, WIDTH), np.nan)
    values[:, 0] = [-1, 1, 0]
    values[[0, 2], 1] = [4, 5]
    operator = operator_of(laplacian_of(nx.path_graph(51)))
    X = interpolate(
        operator, ColumnLabels(np.array([0, 20, 50]), values), zeros(), tolerance=1e-12
    ).X
    np.testing.assert_allclose(
        X[:, 0], np.interp(np.arange(51), [0, 20, 50], [-1, 1, 0]), atol=1e-9
    )
    np.testing.assert_allclose(X[:, 1], np.interp(np.arange(51), [0, 50], [4, 5]), atol=1e-9)
    assert not X[:, 2:].any()


@given(n=st.integers(10, 80), count=st.integers(1, 9), seed=st.integers(0, 999))
def test_interpolate__obeys_the_maximum_principle(n, count, seed):
    rng = np.random.default_rng(seed)
    operator = operator_of(laplacian_of(weighted_graph(rng, n, 3)))
    labels = random_labels(rng, n, count)
    X = interpolate(operator, labels, zeros(), tolerance=1e-12).X
    assert (np.nanmin(labels.values, axis=0) - 1e-8 <= X.min(axis=0)).all()
    assert (X.max(axis=0) <= np.nanmax(labels.values, axis=0) + 1e-8).all()


@pytest.mark.parametrize(("dtype", "tolerance", "off"), TYPES)
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10])
@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("multigrid", [False, True])
def test_regularize__agrees_with_a_dense_solver(
    rng, dtype, tolerance, off, gamma, power, multigrid
):
    L, n = laplacian_of(weighted_graph(rng, 90, 0.7)), 90
    labels = random_labels(rng, n)
    if power == 3 and dtype == np.float32:
        tolerance = 1e-4
    operator = operator_of(L, dtype)
    graphs = list(coarse_graphs(operator)) if multigrid else None
    found = regularize(
        operator, labels, zeros(dtype), gamma=gamma, power=power, graphs=graphs, tolerance=tolerance
    )
    S = np.linalg.matrix_power(L.toarray(), power)
    for column in range(WIDTH):
        rows, y = known_of(labels, column)
        known, right = np.zeros((n, n)), np.zeros(n)
        known[rows, rows], right[rows] = 1, y - y.mean()
        system = known + len(rows) * gamma * S
        X = found.X[:, column].astype(float)
        if dtype == np.float64:
            np.testing.assert_allclose(X, np.linalg.solve(system, right), atol=off)
        # What the tolerance promises; the condition of S to the power p is beyond single precision.
        assert np.linalg.norm(system @ X - right) <= 30 * tolerance * np.linalg.norm(right) + 1e-12


@pytest.mark.parametrize(("dtype", "tolerance", "off"), TYPES)
@pytest.mark.parametrize("time", [0.1, 2.0])
def test_regularize__heat_agrees_with_the_matrix_exponential(rng, dtype, tolerance, off, time):
    L, gamma = laplacian_of(weighted_graph(rng, 60, 0.7)), 1e-2
    labels = random_labels(rng, 60)
    found = regularize(
        operator_of(L, dtype), labels, zeros(dtype),
        gamma=gamma, power=None, time=time, tolerance=tolerance,
    )  # fmt: skip
    for column in range(WIDTH):
        rows, y = known_of(labels, column)
        known, right = np.zeros((60, 60)), np.zeros(60)
        known[rows, rows], right[rows] = 1, y - y.mean()
        S = scipy.linalg.expm(time * L.toarray())
        expected = np.linalg.solve(known + len(rows) * gamma * S, right)
        np.testing.assert_allclose(found.X[:, column], expected, atol=off)


@pytest.mark.parametrize("power", [1, 2, None])
def test_regularize__means_count_as_often_as_their_labels(rng, power):
    L, gamma, n = laplacian_of(weighted_graph(rng, 60, 0.7)), 1e-2, 60
    labels = random_labels(rng, n)
    number = rng.integers(1, 9, labels.values.shape).astype(float)
    labels = replace(labels, number=number)
    found = regularize(operator_of(L), labels, zeros(), gamma=gamma, power=power, tolerance=1e-11)
    A = L.toarray()
    S = scipy.linalg.expm(A) if power is None else np.linalg.matrix_power(A, power)
    for column in range(WIDTH):
        rows, y = known_of(labels, column)
        count = number[labels.known[:, column], column]
        known, right = np.zeros((n, n)), np.zeros(n)
        known[rows, rows], right[rows] = count, count * (y - np.average(y, weights=count))
        expected = np.linalg.solve(known + count.sum() * gamma * S, right)
        np.testing.assert_allclose(found.X[:, column], expected, atol=1e-7)


def test_regularize__becomes_interpolation(rng):
    L = laplacian_of(weighted_graph(rng, 60))
    labels = random_labels(rng, 60)
    mean = np.nanmean(labels.values, axis=0)
    tight = regularize(operator_of(L), labels, zeros(), gamma=1e-9, tolerance=1e-13).X
    exact = interpolate(operator_of(L), labels, zeros(), tolerance=1e-12).X
    np.testing.assert_allclose(tight + mean, exact, atol=1e-5)


@pytest.mark.parametrize(
    "wrong", [{"gamma": 0}, {"gamma": -1}, {"gamma": 1, "power": 0}, {"gamma": 1, "time": 0}]
)
def test_regularize__raises_on_parameters_that_are_not_positive(rng, wrong):
    operator = operator_of(laplacian_of(weighted_graph(rng, 20)))
    with pytest.raises(ValueError, match="positive"):
        regularize(operator, random_labels(rng, 20, 4), zeros(), **wrong)


@pytest.mark.parametrize(("dtype", "tolerance", "off"), TYPES)
def test_poisson__agrees_with_the_pseudo_inverse(rng, dtype, tolerance, off):
    L = laplacian_of(weighted_graph(rng, 120))
    labels = random_labels(rng, 120)
    found = poisson(operator_of(L, dtype), labels, zeros(dtype), tolerance=tolerance)
    for column in range(WIDTH):
        expected = dense_poisson(L.toarray(), *known_of(labels, column))
        np.testing.assert_allclose(
            found.X[:, column], expected, atol=off * max(1, np.abs(expected).max())
        )


@given(n=st.integers(10, 80), count=st.integers(2, 9), seed=st.integers(0, 999))
def test_poisson__weighted_mean_is_zero(n, count, seed):
    rng = np.random.default_rng(seed)
    L = laplacian_of(weighted_graph(rng, n))
    X = poisson(operator_of(L), random_labels(rng, n, count), zeros(), tolerance=1e-10).X
    assert np.abs(L.diagonal() @ X).max() <= 1e-10 * L.diagonal().sum() * max(1, np.abs(X).max())


def test_poisson__is_piecewise_linear_on_a_path():
    # A source at one end, a sink at the other: slope -1/2 between them.
    labels = one_hot(np.array([0, 10]), np.array([0, 1]), 2)
    X = poisson(operator_of(laplacian_of(nx.path_graph(11))), labels, zeros(), tolerance=1e-13).X
    np.testing.assert_allclose(X[:, 0], (5 - np.arange(11)) / 2, atol=1e-10)
    np.testing.assert_allclose(X[:, 1], -X[:, 0], atol=1e-10)


def test_poisson__known_shares_multiply_the_columns(rng):
    operator = operator_of(laplacian_of(weighted_graph(rng, 50)))
    labels = one_hot(np.array([1, 5, 9, 30]), np.array([0, 0, 0, 1]), 2)
    shares = np.full(WIDTH, 0.5)
    plain, weighed = (
        poisson(operator, labels, zeros(), shares=each).X[:, :2] for each in (None, shares)
    )
    np.testing.assert_allclose(weighed, plain * [0.5 / 0.75, 0.5 / 0.25])


@pytest.mark.parametrize("parts", [1, 2])
def test_poisson__means_count_as_often_as_their_labels(rng, parts):
    sizes, L = [50, 30][:parts], [laplacian_of(weighted_graph(rng, size)) for size in (50, 30)]
    whole = scipy.sparse.csr_array(scipy.sparse.block_diag(L[:parts]))
    component = np.repeat(np.arange(parts), sizes).astype(np.int32) if parts > 1 else None
    labels = random_labels(rng, 50)
    number = rng.integers(1, 9, labels.values.shape).astype(float)
    found = poisson(
        operator_of(whole), replace(labels, number=number), zeros(), component=component,
        tolerance=1e-11,
    ).X  # fmt: skip
    for column in range(WIDTH):
        rows, y = known_of(labels, column)
        count = number[labels.known[:, column], column].astype(int)
        source = np.zeros(50)
        source[rows] = count * (y - np.average(y, weights=count))
        expected = np.linalg.pinv(L[0].toarray()) @ source
        expected -= np.average(expected, weights=L[0].diagonal())
        np.testing.assert_allclose(found[:50, column], expected, atol=1e-6)


def test_poisson__raises_on_another_laplacian(rng):
    L, null = normalized(laplacian_of(weighted_graph(rng, 20)))
    with pytest.raises(ValueError, match="unnormalised"):
        poisson(operator_of(L, null=null), random_labels(rng, 20, 4), zeros())


def with_cycles(method, operator, *given, **more):
    return method(operator, *given, graphs=list(coarse_graphs(operator)), **more)


METHODS = {
    "interpolate": interpolate,
    "regularize": lambda *given, **more: regularize(*given, gamma=0.1, **more),
    "square": lambda *given, **more: regularize(*given, gamma=0.1, power=2, **more),
    "heat": lambda *given, **more: regularize(*given, gamma=0.1, power=None, **more),
    "poisson": poisson,
    "interpolate, multigrid": partial(with_cycles, interpolate),
    "regularize, multigrid": partial(with_cycles, regularize, gamma=0.1),
    "square, multigrid": partial(with_cycles, regularize, gamma=0.1, power=2),
}


@pytest.mark.parametrize("method", METHODS)
def test_methods__numbering_of_rows_does_not_matter(rng, method):
    L = laplacian_of(weighted_graph(rng, 70, 1))
    labels = random_labels(rng, 70)
    order = rng.permutation(70)
    places = np.argsort(order)[labels.rows]
    again = np.argsort(places)
    turned = ColumnLabels(places[again], labels.values[again])
    one, other = (
        METHODS[method](operator_of(A), each, zeros(), tolerance=1e-11).X
        for A, each in ((L, labels), (L[order][:, order], turned))
    )
    np.testing.assert_allclose(one[order], other, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_methods__columns_without_labels_stay_zero(rng, method):
    operator = operator_of(laplacian_of(weighted_graph(rng, 40)))
    X = METHODS[method](operator, random_labels(rng, 40, 8, columns=20), zeros()).X
    assert X[:, :20].any()
    assert not X[:, 20:].any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_methods__components_are_solved_apart(rng, method, dtype):
    first, second = laplacian_of(weighted_graph(rng, 50, 1)), laplacian_of(weighted_graph(rng, 30))
    L = scipy.sparse.csr_array(scipy.sparse.block_diag([first, second]))
    labels = one_hot(np.array([2, 8, 20, 40]), np.array([0, 1, 2, 0]), 3)
    more = (
        {"component": np.repeat([0, 1], [50, 30]).astype(np.int32)} if method == "poisson" else {}
    )
    solve = METHODS[method]
    both = solve(operator_of(L, dtype), labels, zeros(dtype), **more)
    alone = solve(operator_of(first, dtype), labels, zeros(dtype))
    assert both.solved.residuals.max() <= 1e-4
    np.testing.assert_allclose(both.X[:50], alone.X, rtol=1e-2, atol=1e-3)
    rest = np.zeros(WIDTH)
    if method.startswith("interpolate"):
        rest[:3] = [0.5, 0.25, 0.25]
    np.testing.assert_allclose(both.X[50:], np.tile(rest, (30, 1)), atol=1e-6)


def test_poisson__a_component_of_one_class_goes_to_it(rng):
    parts = [laplacian_of(weighted_graph(rng, size)) for size in (30, 20, 25)]
    L = scipy.sparse.csr_array(scipy.sparse.block_diag(parts))
    component = np.repeat([0, 1, 2], [30, 20, 25]).astype(np.int32)
    labels = one_hot(np.array([3, 9, 35, 60]), np.array([0, 1, 2, 1]), 3)
    X = poisson(operator_of(L), labels, zeros(), component=component, tolerance=1e-10).X
    assert (X[30:50, :3].argmax(axis=1) == 2).all()
    assert (X[50:, :3].argmax(axis=1) == 1).all()
    np.testing.assert_allclose(X[:30, 0], dense_poisson(parts[0].toarray(), [3, 9], np.array([1, 0.0]))
                               + 0.25, atol=1e-7)  # fmt: skip


def test_labels__raises_on_wrong_shape():
    with pytest.raises(ValueError, match="pad a group"):
        ColumnLabels(np.arange(3), np.zeros((3, 4)))


@pytest.mark.parametrize("rows", [[0, 2, 1], [0, 1, 1]])
def test_labels__raises_on_rows_out_of_order(rows):
    with pytest.raises(ValueError, match="ascend"):
        ColumnLabels(np.array(rows), np.zeros((3, WIDTH)))


@given(classes=st.integers(2, 32), seed=st.integers(0, 999))
def test_threshold__meets_the_sizes(classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, WIDTH)).astype(np.float32)
    sizes = rng.multinomial(3000, rng.dirichlet(np.full(classes, 3.0)))
    found = threshold(X, sizes)
    assert (np.abs(found.sizes - sizes) <= np.maximum(1, 1e-3 * sizes)).all()
    np.testing.assert_array_equal(found.sizes, np.bincount(found.classes, minlength=classes))
    scores = X[:, :classes] + found.offsets
    top = scores[np.arange(3000), found.classes]
    np.testing.assert_array_equal(top, scores.max(axis=1))


def test_threshold__returns_the_best_where_rows_are_alike():
    X = np.zeros((100, WIDTH))
    X[:60, 0], X[60:, 1] = 1, 1
    found = threshold(X, np.array([50, 50]))
    assert found.sizes.sum() == 100


def blocks_graph(rng, sizes):
    graph = nx.stochastic_block_model(
        sizes, 0.02 + 0.18 * np.eye(len(sizes)), seed=int(rng.integers(2**31))
    )
    return graph, np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_poisson_mbo__keeps_the_sizes_and_beats_poisson(rng, dtype):
    sizes = [80, 120, 200]
    graph, truth = blocks_graph(rng, sizes)
    operator = operator_of(laplacian_of(graph), dtype)
    rows = np.array([0, 5, 80, 90, 200, 210])
    labels = one_hot(rows, truth[rows], 3)
    (found,) = poisson_mbo(operator, labels, np.array([sizes]), zeros(dtype))
    assert np.abs(found.sizes - sizes).max() <= 1
    plain = poisson(operator, labels, zeros(dtype)).X[:, :3].argmax(axis=1)
    assert (found.classes == truth).mean() >= (plain == truth).mean()
    assert (found.classes == truth).mean() > 0.9


def stepwise_mbo(L, rows, classes, sizes, rounds, steps):
    """The algorithm as it is printed: explicit steps with sources, thresholds, indicators."""
    n, count = len(L), len(sizes)
    source = np.zeros((n, count))
    source[rows] = np.eye(count)[classes] - np.eye(count)[classes].mean(axis=0)
    u = np.stack([dense_poisson(L, rows, y) for y in np.eye(count)[classes].T], axis=1)
    step, found = 1 / np.diag(L).max(), None
    for _ in range(rounds):
        if found is not None:
            u = np.eye(count)[found]
        for _ in range(steps):
            u = u - step * (L @ u - source)
        padded = np.zeros((n, WIDTH))
        padded[:, :count] = u
        found = threshold(padded, sizes).classes
    return found


@pytest.mark.parametrize("rounds", [1, 4, 20])
def test_poisson_mbo__equals_the_explicit_steps(rng, rounds):
    sizes = np.array([80, 120, 200])
    graph, truth = blocks_graph(rng, sizes)
    L = laplacian_of(graph)
    rows = np.array([0, 5, 80, 90, 200, 210])
    expected = stepwise_mbo(L.toarray(), rows, truth[rows], sizes, rounds, 40)
    (found,) = poisson_mbo(
        operator_of(L), one_hot(rows, truth[rows], 3), sizes[None], zeros(),
        rounds=rounds, tolerance=1e-10,
    )  # fmt: skip
    # Sizes are met to one row, so thresholds are not unique.
    assert (found.classes != expected).sum() <= 4


def test_poisson_mbo__fits_in_a_group_are_as_each_alone(rng):
    sizes = np.array([80, 120, 200])
    graph, truth = blocks_graph(rng, sizes)
    operator = operator_of(laplacian_of(graph))
    rows = np.array([0, 5, 80, 90, 200, 210])
    few = [one_hot(rows[part], truth[rows[part]], 3) for part in ([0, 2, 4], [1, 3, 5])]
    both = np.full((6, WIDTH), np.nan)
    both[::2, :3], both[1::2, 3:6] = few[0].values[:, :3], few[1].values[:, :3]
    found = poisson_mbo(operator, ColumnLabels(rows, both), np.array([sizes, sizes]), zeros())
    for labels, part in zip(few, found, strict=True):
        (alone,) = poisson_mbo(operator, labels, sizes[None], zeros())
        assert (part.classes != alone.classes).sum() <= 4


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        (np.full(40, 1), "do not fit into one group"),
        (np.array([10, 10, 20]), "need labels"),
        (np.array([10, 10]), "sum to 40"),
        (np.array([50, -10]), "sum to 40"),
    ],
)
def test_poisson_mbo__raises_on_sizes_that_do_not_fit(rng, sizes, problem):
    operator = operator_of(laplacian_of(weighted_graph(rng, 40)))
    labels = one_hot(np.array([1, 7]), np.array([0, 1]), 2)
    with pytest.raises(ValueError, match=problem):
        poisson_mbo(operator, labels, sizes[None], zeros())


@pytest.mark.parametrize("method", METHODS)
def test_methods__hold_five_arrays_at_most(rng, method):
    operator = operator_of(laplacian_of(weighted_graph(rng, 40)))
    taken = []

    def allocate(rows):
        taken.append(rows)
        return np.zeros((rows, WIDTH))

    METHODS[method](operator, random_labels(rng, 40, 8), allocate)
    assert taken.count(40) <= 5


def test_threshold__begins_anew_where_old_offsets_lead_nowhere(rng):
    """Potentials across weak edges are thousands of times as large as what heat leaves of indicators."""
    X = np.zeros((900, WIDTH), np.float32)
    truth = np.repeat([0, 1, 2], [100, 300, 500])
    X[:, :3] = rng.normal(size=(900, 3)) * 0.1
    X[np.arange(900), truth] += 1
    sizes = np.array([100, 300, 500])
    far = np.array([2e4, -1e4, -1e4])
    assert threshold(X, sizes, offsets=far).sizes.tolist() == [900, 0, 0]
    found = _threshold_again(X, sizes, 0, far)
    np.testing.assert_allclose(found.sizes, sizes, atol=1)
