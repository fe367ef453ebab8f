import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from eigenscape import eigenpairs
from eigenscape.learn.clustering.kernels.parts import (
    degrees_within,
    ritz_fiedler,
)
from eigenscape.spectrum.kernels.operator import RowBlock
from graphs import as_block, fiedler_vector, random_graph


def as_blocks(W, starts):
    """Cut a matrix into row blocks."""
    ends = [*starts[1:], W.shape[0]]
    pieces = [W[start:stop] for start, stop in zip(starts, ends, strict=True)]
    return [
        RowBlock(start, piece.indptr, piece.indices, piece.data)
        for start, piece in zip(starts, pieces, strict=True)
    ]


def fiedler(W):
    """Return the first vector of D^-1 (D - W) that is not constant, by LAPACK."""
    degree = W.sum(axis=1)
    return scipy.linalg.eigh(np.diag(degree) - W.toarray(), np.diag(degree))[1][:, 1]


def cosine(one, other, degree):
    """Return the cosine under the degrees of two vectors made orthogonal to the constant."""
    one, other = (v - degree @ v / degree.sum() for v in (one, other))
    return abs(degree @ (one * other)) / np.sqrt((degree @ one**2) * (degree @ other**2))


def test_fiedler_vector__against_lapack(rng):
    W = random_graph(rng, 60, 0.1)
    found, wanted = fiedler_vector(W), fiedler(W)
    cosine = found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted)
    assert abs(cosine) == pytest.approx(1, abs=1e-6)


def test_fiedler_vector__separates_pieces():
    W = scipy.sparse.csr_array(np.kron(np.eye(3), np.ones((2, 2)) - np.eye(2)))
    assert len(np.unique(fiedler_vector(W))) == 3


def test_fiedler_vector__of_the_largest_piece(rng):
    main = random_graph(rng, 40, 0.1)
    W = scipy.sparse.block_array([[scipy.sparse.csr_array((3, 3)), None], [None, main]]).tocsr()
    np.testing.assert_array_equal(fiedler_vector(W, 4)[:3], 0)
    np.testing.assert_allclose(fiedler_vector(W, 4)[3:], fiedler_vector(main))
    assert set(fiedler_vector(W, 3)[3:]) == {0}


def test_degrees_within__against_indexing(rng):
    W = random_graph(rng, 30)
    members = rng.random(30) < 0.5
    found = degrees_within(as_blocks(W, [0, 11]), members)
    np.testing.assert_allclose(found, W.toarray()[np.ix_(members, members)].sum(axis=1))


def test_ritz_fiedler__is_the_first_eigenvector_of_the_whole(rng):
    W = random_graph(rng, 80, 0.1)
    vectors = eigenpairs(W, 5, kind="random-walk").vectors.astype(np.float32)
    everything = np.ones(80, bool)
    found = ritz_fiedler(as_blocks(W, [0, 33]), everything, W.sum(axis=1), vectors)
    assert cosine(found, fiedler(W), W.sum(axis=1)) == pytest.approx(1, abs=1e-6)


def test_ritz_fiedler__of_a_part_minimises_over_the_combinations(rng):
    W = random_graph(rng, 60, 0.2)
    vectors = eigenpairs(W, 7, kind="random-walk").vectors
    members = rng.random(60) < 0.6
    blocks = as_blocks(W, [0, 20])
    degree = degrees_within(blocks, members)
    found = ritz_fiedler(blocks, members, degree, vectors)
    L = np.diag(degree) - W.toarray()[np.ix_(members, members)]
    # Orthogonal to the constant, by leaving out the combination that is it.
    V = vectors[members] - degree @ vectors[members] / degree.sum()
    V = V @ scipy.linalg.orth(V.T)
    wanted = V @ scipy.linalg.eigh(V.T @ L @ V, V.T @ (degree[:, None] * V))[1][:, 0]
    assert cosine(found, wanted, degree) == pytest.approx(1, abs=1e-8)
    # With all vectors there are, it is the part's own.
    every = eigenpairs(W, 59, kind="random-walk").vectors
    found = ritz_fiedler(blocks, members, degree, every)
    own = fiedler(scipy.sparse.csr_array(W.toarray()[np.ix_(members, members)]))
    assert cosine(found, own, degree) == pytest.approx(1, abs=1e-6)


def test_ritz_fiedler__finds_the_bridge_between_cliques():
    graph = nx.barbell_graph(8, 0)
    W = scipy.sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    vectors = eigenpairs(W, 3, kind="random-walk").vectors
    found = ritz_fiedler([as_block(W)], np.ones(16, bool), W.sum(axis=1), vectors)
    assert len({*np.sign(found[:8])}) == len({*np.sign(found[8:])}) == 1
    assert found[0] * found[8] < 0


def test_ritz_fiedler__of_constants_is_nothing(rng):
    W = random_graph(rng, 10)
    found = ritz_fiedler([as_block(W)], np.ones(10, bool), W.sum(axis=1), np.ones((10, 2)))
    assert not found.any()
