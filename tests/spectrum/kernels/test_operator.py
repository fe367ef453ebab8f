import json
from dataclasses import asdict, replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.spectrum.kernels.laplacian import laplacian
from eigenscape.spectrum.kernels.operator import RowBlock, as_operator, upper_bound
from eigenscape.spectrum.stored import StoredOperator, store_operator

KINDS = ["normalized", "random-walk", "unnormalized"]


def weighted(graph, seed, spread):
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(np.exp(spread * rng.standard_normal()))
    return graph


def connected(n, seed, spread):
    """Return the weights of a random connected graph, as single precision holds them."""
    graph = nx.gnp_random_graph(n, min(1, 4 / n), seed=seed)
    nx.add_path(graph, range(n))
    W = nx.adjacency_matrix(weighted(graph, seed, spread), dtype=float)
    return scipy.sparse.csr_array(W.astype(np.float32)).astype(np.float64)


def row_blocks(W, count):
    cuts = np.linspace(0, W.shape[0], count + 1).astype(int)
    return [
        RowBlock(
            int(first), part.indptr.astype(np.int64), part.indices.astype(np.int32),
            part.data.astype(np.float32),
        )
        for first, part in ((i, W[i:j]) for i, j in pairwise(cuts))
    ]  # fmt: skip


def build(W, kind, count=1, dtype=np.float64, **added):
    return laplacian(row_blocks(W, count), W.sum(axis=1), kind, dtype, **added)


def dense(W, kind, potential=None, edges=None):
    """Return the operator by its formula; the random-walk one made symmetric by D^1/2."""
    W = W.toarray()
    degree = W.sum(axis=1)
    added = np.zeros_like(W)
    if potential is not None:
        added += np.diag(potential)
    if edges is not None:
        joined = edges.toarray()
        added += np.diag(joined.sum(axis=1)) - joined
    L = np.diag(degree) - W
    half = np.diag(1 / np.sqrt(degree))
    if kind == "unnormalized":
        return L + added
    if kind == "random-walk":
        return half @ (L + added) @ half
    return half @ L @ half + added


def some_edges(n, rng, *, own=False):
    joined = scipy.sparse.random_array((n, n), density=0.02, rng=rng)
    joined = scipy.sparse.csr_array(joined + joined.T)
    if not own:
        joined.setdiag(0)
        joined.eliminate_zeros()
    return scipy.sparse.csr_array(joined)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_potential", [False, True])
@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("count", [1, 4])
def test_laplacian__follows_its_formula(rng, kind, with_potential, with_edges, count):
    n = 70
    W = connected(n, 1, 1.0)
    added = {}
    if with_potential:
        added["potential"] = 30 * rng.random(n) * (np.arange(n) % 5 == 0)
    if with_edges:
        added["edges"] = some_edges(n, rng)
    operator = build(W, kind, count, **added)
    A = dense(W, kind, **added)
    np.testing.assert_allclose(operator.matrix().toarray(), A, atol=1e-12)
    values = np.linalg.eigvalsh(A)
    assert values[0] > -1e-12
    assert values[-1] <= upper_bound(operator) <= operator.bound
    assert operator.singular == (not with_potential and not (with_edges and kind == "normalized"))
    assert operator.singular == (values[0] < 1e-10)
    assert (operator.null > 0).all()
    if operator.singular:
        np.testing.assert_allclose(A @ operator.null, 0, atol=1e-12)
    else:
        # Closer to the lowest vector than the null vector of the Laplacian is.
        lowest = np.abs(np.linalg.eigh(A)[1][:, 0])
        bare = build(W, kind).null
        cosine = [v @ lowest / np.linalg.norm(v) for v in (operator.null, bare)]
        assert cosine[0] > cosine[1] or not with_potential


@pytest.mark.parametrize("kind", KINDS)
def test_laplacian__stays_singular_with_a_potential_of_zeros(kind):
    W = connected(40, 2, 1.0)
    empty = scipy.sparse.csr_array((40, 40))
    operator = build(W, kind, potential=np.zeros(40), edges=empty)
    assert operator.singular
    np.testing.assert_array_equal(operator.null, build(W, kind).null)


@pytest.mark.parametrize("kind", KINDS)
def test_laplacian__knows_no_edges_of_a_row_to_itself(rng, kind):
    W, joined = connected(40, 2, 1.0), some_edges(40, rng, own=True)
    joined.setdiag(3.0)
    operator = build(W, kind, 2, edges=scipy.sparse.csr_array(joined))
    joined.setdiag(0.0)
    np.testing.assert_allclose(
        operator.matrix().toarray(), dense(W, kind, edges=joined), atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_laplacian__writes_where_it_is_told(dtype):
    W = connected(50, 3, 1.0)
    given_out = {}

    def allocate(number, size):
        given_out[number] = np.zeros(size, dtype)
        return given_out[number]

    operator = laplacian(row_blocks(W, 3), W.sum(axis=1), "normalized", dtype, allocate)
    assert sorted(given_out) == [0, 1, 2]
    assert all(np.shares_memory(operator.blocks[i].data, given_out[i]) for i in range(3))
    assert operator.diagonal.dtype == dtype
    np.testing.assert_allclose(operator.matrix().toarray(), dense(W, "normalized"), atol=1e-6)


@given(
    n=st.integers(3, 60), kind=st.sampled_from(KINDS), count=st.integers(1, 5),
    spread=st.floats(0, 4), seed=st.integers(0, 999),
)  # fmt: skip
def test_laplacian__is_symmetric_and_semidefinite(n, kind, count, spread, seed):
    W = connected(n, seed, spread)
    operator = build(W, kind, min(count, n))
    A = operator.matrix().toarray()
    np.testing.assert_allclose(A, A.T, atol=1e-14 * operator.bound)
    values = np.linalg.eigvalsh(A)
    assert values[0] > -1e-13 * operator.bound
    assert values[-1] <= operator.bound * (1 + 1e-12)
    null = operator.null / np.linalg.norm(operator.null)
    np.testing.assert_allclose(A @ null, 0, atol=1e-13 * operator.bound)


def test_as_operator__holds_the_matrix():
    W = connected(30, 4, 1.0)
    A = scipy.sparse.csr_array(dense(W, "unnormalized"))
    operator = as_operator(A, np.ones(30), np.float64, singular=False)
    np.testing.assert_allclose(operator.matrix().toarray(), A.toarray())
    assert not operator.singular
    assert operator.rows == 30
    # Gershgorin: twice the largest degree.
    assert operator.bound == pytest.approx(2 * A.diagonal().max())
    assert operator.blocks[0].data.all()


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("stored_graph", [False, True])
@pytest.mark.parametrize("singular", [False, True])
def test_store_operator__is_opened_again_as_it_was(tmp_path, count, stored_graph, singular):
    W = connected(50, 5, 1.0)
    operator = replace(build(W, "normalized", count, np.float32), singular=singular)
    stored = store_operator(operator, tmp_path)
    if stored_graph:
        # Only what is not there yet is written.
        (tmp_path / "more").mkdir()
        stored = store_operator(operator, tmp_path / "more", stored.graph, stored.data)
        assert {path.name for path in (tmp_path / "more").iterdir()} == {"diagonal", "null"}
    stored = StoredOperator.from_json(json.loads(json.dumps(asdict(stored))))
    assert stored.entries == W.nnz
    assert hash(stored.graph) is not None
    found = stored.open()
    assert (found.singular, found.bound) == (operator.singular, operator.bound)
    np.testing.assert_array_equal(found.diagonal, operator.diagonal)
    np.testing.assert_array_equal(found.null, operator.null)
    assert found.diagonal.dtype == np.float32
    for one, other in zip(found.blocks, operator.blocks, strict=True):
        assert one.first == other.first
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype


@pytest.mark.parametrize("kind", ["normalized", "unnormalized"])
@given(n=st.integers(3, 150), spread=st.floats(0, 4), seed=st.integers(0, 999))
def test_upper_bound__bounds_the_spectrum(kind, n, spread, seed):
    W = connected(n, seed, spread)
    operator = build(W, kind)
    largest = np.linalg.eigvalsh(dense(W, kind))[-1]
    assert largest <= upper_bound(operator) * (1 + 1e-12)
    assert upper_bound(operator) <= operator.bound


@pytest.mark.parametrize(
    "graph", [nx.star_graph(399), nx.barbell_graph(30, 300)], ids=["star", "barbell"]
)
def test_upper_bound__sees_a_lone_large_eigenvalue(graph):
    L = nx.laplacian_matrix(graph).astype(float)
    largest = np.linalg.eigvalsh(L.toarray())[-1]
    found = upper_bound(as_operator(L, np.ones(len(graph)), np.float64))
    assert largest * (1 - 1e-12) <= found < 1.5 * largest


def test_upper_bound__sees_a_hub_among_many_rows(rng):
    """A random vector of 20,000 rows has less than a hundredth there."""
    n = 20_000
    ring = np.arange(n)
    spokes = rng.choice(np.arange(2, n - 1), 400, replace=False)
    rows = np.concatenate([ring, np.zeros(400, int)])
    columns = np.concatenate([(ring + 1) % n, spokes])
    W = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), (n, n)).tocsr()
    W = W + W.T
    L = scipy.sparse.csr_array(scipy.sparse.diags_array(W.sum(axis=1)) - W)
    largest = scipy.sparse.linalg.eigsh(L, 1, return_eigenvectors=False, v0=rng.random(n))[0]
    assert largest > 400
    assert largest <= upper_bound(as_operator(L, np.ones(n), np.float64)) < 1.1 * largest


def test_upper_bound__leaves_rows_out(rng):
    n = 100
    W = connected(n, 6, 0.5)
    potential = 1e4 * (np.arange(n) % 7 == 0)
    operator = build(W, "normalized", potential=potential)
    free = potential == 0
    A = dense(W, "normalized", potential=potential)
    largest = np.linalg.eigvalsh(A[np.ix_(free, free)])[-1]
    assert largest <= upper_bound(operator, free) < 1.5 * largest
    assert upper_bound(operator) > 1e4
