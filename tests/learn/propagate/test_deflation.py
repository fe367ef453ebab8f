from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.linalg

from eigenscape.base.files.mapped import save_array
from eigenscape.learn.propagate.deflation import LowestPairs
from eigenscape.learn.propagate.kernels.columnlabels import ColumnLabels
from eigenscape.learn.propagate.kernels.propagation import poisson
from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import as_operator
from eigenscape.store.arrays import open_array
from eigenscape.store.workspace import Workspace

ROWS = 300


@pytest.fixture
def graph(rng):
    """A ring of groups, which has small eigenvalues: L and its degrees."""
    ring = nx.ring_of_cliques(30, 10)
    for _, _, data in ring.edges(data=True):
        data["weight"] = rng.uniform(0.1, 1)
    L = nx.laplacian_matrix(ring).toarray().astype(float)
    return L, L.diagonal().copy()


@pytest.fixture
def lowest(tmp_path, graph, rng):
    """Call with a kind of Laplacian and a number of pairs: stored, samples in another order than rows."""
    L, degree = graph

    def make(kind, modes):
        if kind == "unnormalized":
            values, vectors = scipy.linalg.eigh(L)
        else:
            values, vectors = scipy.linalg.eigh(L / np.sqrt(np.outer(degree, degree)))
        if kind == "random-walk":
            vectors = vectors / np.sqrt(degree)[:, None]
        # Two samples have no row.
        rows = np.append(rng.permutation(ROWS), [-1, -1])
        stored = np.full((len(rows), 1 + modes), np.nan, np.float32)
        stored[:-2] = vectors[rows[:-2], : 1 + modes]
        workspace = Workspace(tmp_path / "work")
        path = workspace.create_array("vector", stored.shape, np.float32)
        open_array(path)[...] = stored
        weights = workspace.create_array("degree", degree.shape, np.float64, whole=True)
        open_array(weights)[...] = degree
        save_array(tmp_path / "row.npy", rows)
        scale = weights if kind == "normalized" else None
        return LowestPairs(path, 1, values[1 : 1 + modes], str(tmp_path / "row.npy"), scale)

    return make


def one_against_all(rng):
    rows = np.sort(rng.choice(ROWS, 20, replace=False))
    values = np.full((20, WIDTH), np.nan)
    values[:, :3] = np.arange(20)[:, None] % 3 == np.arange(3)
    return ColumnLabels(rows, values)


@pytest.mark.parametrize("kind", ["normalized", "random-walk", "unnormalized"])
def test_lowest__all_pairs_solve_the_system(graph, lowest, rng, kind):
    L, _ = graph
    rows = np.sort(rng.choice(ROWS, 7, replace=False))
    source = rng.standard_normal((7, 2))
    source -= source.mean(axis=0)
    X = np.zeros((ROWS, 2), np.float32)
    lowest(kind, ROWS - 1).solve(rows, source, X)
    B = np.zeros((ROWS, 2))
    B[rows] = source
    np.testing.assert_allclose(L @ X, B, atol=1e-4)


def test_lowest__a_start_from_them_takes_fewer_products(graph, lowest, rng):
    operator = as_operator(graph[0], np.ones(ROWS), np.float32)
    labels = one_against_all(rng)
    pairs = lowest("normalized", 40)

    def zeros(rows):
        return np.zeros((rows, WIDTH), np.float32)

    plain = poisson(operator, labels, zeros)
    begun = poisson(operator, labels, zeros, start=pairs.solve)
    assert begun.solved.iterations < 0.6 * plain.solved.iterations
    np.testing.assert_allclose(begun.X, plain.X, atol=1e-3 * np.abs(plain.X).max())


def test_lowest__a_value_that_is_stored_as_0_is_left_out(graph, lowest, rng):
    operator = as_operator(graph[0], np.ones(ROWS), np.float32)
    labels = one_against_all(rng)
    pairs = lowest("normalized", 10)
    values = pairs.values.copy()
    values[0] = 0

    def zeros(rows):
        return np.zeros((rows, WIDTH), np.float32)

    plain = poisson(operator, labels, zeros)
    begun = poisson(operator, labels, zeros, start=replace(pairs, values=values).solve)
    np.testing.assert_allclose(begun.X, plain.X, atol=1e-3 * np.abs(plain.X).max())


def test_lowest__nothing_known_is_no_start(lowest):
    X = np.zeros((ROWS, 2), np.float32)
    lowest("normalized", 5).solve(np.zeros(0, np.int64), np.zeros((0, 2)), X)
    assert not X.any()
