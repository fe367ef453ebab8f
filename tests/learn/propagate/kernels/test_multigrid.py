import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.learn.propagate.kernels import multigrid
from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.multigrid import Cycle, coarse_graphs, levels_of
from eigenscape.learn.propagate.kernels.propagation import interpolate, regularize
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import RowBlock, as_operator


def zeros(rows):
    return np.zeros((rows, WIDTH))


def operator_of(rng, side, decades=2.0):
    """The Laplacian of a grid with weights over some decades: its lowest functions are smooth."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    for _, _, data in graph.edges(data=True):
        data["weight"] = 10 ** rng.uniform(-decades, 0)
    L = nx.laplacian_matrix(graph).astype(float)
    return as_operator(L, np.ones(L.shape[0]), np.float64)


def cut(operator, rows):
    """The same operator in blocks of some rows."""
    (whole,) = operator.blocks
    blocks = []
    for first in range(0, operator.rows, rows):
        indptr = whole.indptr[first : first + rows + 1]
        entries = slice(indptr[0], indptr[-1])
        blocks.append(
            RowBlock(first, indptr - indptr[0], whole.indices[entries], whole.data[entries])
        )
    return replace(operator, blocks=blocks)


def marked(rng, n, count):
    rows = np.sort(rng.choice(n, count, replace=False))
    return rows, rng.random((count, WIDTH)) * 10.0 ** rng.integers(-3, 3, (count, 1))


def coarsened(operator, rows, marks):
    return levels_of(operator, list(coarse_graphs(operator)), rows, marks, zeros)


def dense_cycle(cycle, n, column):
    """A cycle as a matrix: the images of the unit vectors in one column."""
    V = np.empty((n, n))
    for row in range(n):
        R, Z = np.zeros((n, WIDTH)), np.zeros((n, WIDTH))
        R[row, column] = 1
        cycle.apply(R, Z)
        V[:, row] = Z[:, column]
    return V


@given(side=st.integers(9, 12), count=st.integers(1, 9), seed=st.integers(0, 99))
def test_coarsened__are_galerkin_products(side, count, seed):
    rng = np.random.default_rng(seed)
    operator = operator_of(rng, side)
    rows, marks = marked(rng, operator.rows, count)
    levels = coarsened(operator, rows, marks)
    assert len(levels) >= 2
    for fine, coarse in itertools.pairwise(levels):
        n, m = len(fine.diagonal), len(coarse.diagonal)
        inside = np.zeros((n, m))
        inside[np.arange(n), fine.label] = 1
        for column in (0, WIDTH - 1):
            A, C = (matrix_of(level, column) for level in (fine, coarse))
            np.testing.assert_allclose(inside.T @ A @ inside, C, atol=1e-9)
        assert m <= n / 2


def matrix_of(level, column):
    n = len(level.diagonal)
    A = np.diag(level.diagonal.astype(float))
    A[level.rows, level.rows] += level.marks[:, column]
    for block in level.blocks:
        for row in range(len(block.indptr) - 1):
            entries = slice(block.indptr[row], block.indptr[row + 1])
            A[block.first + row, block.indices[entries]] -= block.data[entries]
    assert A.shape == (n, n)
    return A


def test_cycle__is_symmetric_positive_definite_and_near_the_inverse(rng):
    operator = operator_of(rng, 10, 1.0)
    rows, marks = marked(rng, 100, 12)
    levels = coarsened(operator, rows, marks)
    V = dense_cycle(Cycle(levels), 100, 5)
    np.testing.assert_allclose(V, V.T, atol=1e-9 * abs(V).max())
    assert np.linalg.eigvalsh(V).min() > 0
    eigenvalues = np.linalg.eigvals(V @ matrix_of(levels[0], 5)).real
    assert eigenvalues.max() < 10 * eigenvalues.min()


@pytest.mark.parametrize("power", [2, 3])
def test_cycle__of_a_power_is_applied_so_many_times(rng, power):
    operator = operator_of(rng, 8)
    levels = coarsened(operator, *marked(rng, 64, 6))
    R, Z = rng.standard_normal((64, WIDTH)), zeros(64)
    Cycle(levels, power, zeros(64)).apply(R, Z)
    # One visit of each coarse graph in a power: by hand, from cycles of the same kind.
    once = Cycle(levels, 2, zeros(64))
    image = R
    for _ in range(power):
        once._descend(0, image, out := zeros(64))
        image = out
    np.testing.assert_array_equal(Z, image)


def test_cycle__leaves_firm_rows_as_they_are(rng):
    operator = operator_of(rng, 10)
    rows, marks = marked(rng, 100, 12)
    free = np.ones((12, WIDTH))
    free[[3, 7], 2] = 0
    Z = zeros(100)
    Cycle(coarsened(operator, rows, marks), free=free).apply(rng.standard_normal((100, WIDTH)), Z)
    assert not Z[rows[[3, 7]], 2].any()
    assert Z[rows[[3, 7]], 1].all()


def test_coarsened__a_component_without_weights_is_no_division_by_zero(rng):
    graph = nx.disjoint_union(nx.grid_graph((10, 10)), nx.path_graph(3))
    L = nx.laplacian_matrix(graph).astype(float)
    operator = as_operator(L, np.ones(103), np.float64)
    levels = coarsened(operator, np.array([5]), np.ones((1, WIDTH)))
    R, Z = rng.standard_normal((103, WIDTH)), zeros(103)
    R[100:] -= R[100:].mean(axis=0)
    Cycle(levels).apply(R, Z)
    assert np.isfinite(Z).all()


@given(side=st.integers(3, 20), seed=st.integers(0, 99))
def test_match_pairs__as_matching_on_the_graph_of_pairs(side, seed):
    operator = operator_of(np.random.default_rng(seed), side)
    (block,) = operator.blocks
    entries = block.indptr, block.indices, block.data
    pair, count = multigrid._match(*entries)
    room = np.empty(len(block.data), np.int32), np.empty(len(block.data))
    indptr, _ = multigrid._galerkin(*entries, operator.diagonal, pair, count, *room)
    expected, number = multigrid._match(indptr, *room)
    label, matched = multigrid._match_pairs(*entries, pair, count)
    assert matched == number
    np.testing.assert_array_equal(label, expected)


@pytest.mark.slow
@given(rows=st.integers(1, 150), seed=st.integers(0, 99))
def test_solutions__are_the_same_bits_for_any_blocks(rows, seed):
    rng = np.random.default_rng(seed)
    operator = operator_of(rng, 12)
    values = np.full((9, WIDTH), np.nan)
    values[:, :5] = rng.integers(0, 2, (9, 5))
    labels = ColumnLabels(np.sort(rng.choice(144, 9, replace=False)), values)
    for solver in (
        lambda A, graphs: regularize(A, labels, zeros, gamma=1e-2, power=2, graphs=graphs),
        lambda A, graphs: interpolate(A, labels, zeros, graphs=graphs),
    ):
        one, other = (solver(A, list(coarse_graphs(A))).X for A in (operator, cut(operator, rows)))
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 2])
def test_regularize__takes_a_fraction_of_the_iterations(rng, power):
    operator = operator_of(rng, 60)
    values = np.full((30, WIDTH), np.nan)
    values[:, :8] = rng.integers(0, 2, (30, 8))
    labels = ColumnLabels(np.sort(rng.choice(3600, 30, replace=False)), values)
    plain, cycles = (
        regularize(
            operator,
            labels,
            zeros,
            gamma=1e-3,
            power=power,
            graphs=graphs,
            tolerance=1e-8,
            most=20_000,
        )
        for graphs in (None, list(coarse_graphs(operator)))
    )
    assert cycles.solved.residuals.max() <= 1e-8
    assert cycles.solved.iterations < plain.solved.iterations / 4
