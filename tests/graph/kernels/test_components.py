import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.base.vectors import as_parts
from eigenscape.graph.kernels.components import flatten, join_pairs, nearest_outside, unite


@given(
    n=st.integers(1, 60), edges=st.integers(0, 60), cut=st.floats(0, 1), seed=st.integers(0, 999)
)
def test_unite__equals_networkx(n, edges, cut, seed):
    rng = np.random.default_rng(seed)
    size = rng.multinomial(edges, np.full(n, 1 / n))
    indptr = np.concatenate([[0], np.cumsum(size)])
    index = rng.integers(-1, n, edges).astype(np.int32)
    parent = np.arange(n, dtype=np.int32)
    first = int(cut * n)
    for start, stop in ((0, first), (first, n)):
        here = index[indptr[start] : indptr[stop]]
        unite(start, indptr[start : stop + 1] - indptr[start], here, parent)
    flatten(parent)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    owner = np.repeat(np.arange(n), size)
    graph.add_edges_from(zip(owner[index >= 0], index[index >= 0], strict=True))
    for members in nx.connected_components(graph):
        assert {int(parent[row]) for row in members} == {min(members)}


def test_join_pairs__leaves_out_what_would_close_a_circle():
    parent = np.arange(5, dtype=np.int32)
    left, right = np.array([[1, 2], [2, 1], [3, 4], [1, 4], [3, 2]], np.int32).T
    joined = join_pairs(left, right, parent)
    np.testing.assert_array_equal(joined, [True, False, True, True, False])
    flatten(parent)
    np.testing.assert_array_equal(parent, [0, 1, 1, 1, 1])


def best_of(queries):
    return np.full(queries, np.inf, np.float32), np.full(queries, -1, np.int64)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_nearest_outside__looks_past_the_rounding_of_products(rng, kind):
    # Of samples this far from the origin, products say nothing about distances of 1.
    x = (2000 + rng.random((40, 3))).astype(np.float32)
    inside = rng.integers(0, 3, 40).astype(np.int32)
    rows = as_parts(x if kind == "dense" else scipy.sparse.csr_array(x))
    norms = np.einsum("ij,ij->i", x, x)
    best, nearest = best_of(40)
    nearest_outside(rows, rows, x @ x.T, norms, norms, inside, inside, 100, best, nearest)
    exact = ((x[:, None].astype(float) - x[None]) ** 2).sum(axis=2)
    exact[inside[:, None] == inside] = np.inf
    np.testing.assert_array_equal(nearest, 100 + exact.argmin(axis=1))
    np.testing.assert_allclose(best, exact.min(axis=1), rtol=1e-6)


def test_nearest_outside__finds_one_even_where_squares_overflow():
    x = np.array([[1e25], [-1e25], [3e25]], np.float32)
    infinite = np.full(3, np.inf, np.float32)
    inside = np.array([0, 0, 1], np.int32)
    best, nearest = best_of(3)
    products = np.full((3, 3), np.inf, np.float32)
    nearest_outside(x, x, products, infinite, infinite, inside, inside, 0, best, nearest)
    np.testing.assert_array_equal(nearest, [2, 2, 0])
    assert np.isfinite(best).all()
