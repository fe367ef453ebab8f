import numpy as np
import pytest
import scipy.sparse
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.neighbors import NearestNeighbors

from eigenscape.datasets.made.manifolds import swiss_roll
from eigenscape.theory.lle import lle_operator, reconstruction_weights


def neighbors_of(points, k):
    return NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False)


def test_reconstruction_weights__rebuild_a_point_from_its_plane(rng):
    points = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 5))
    W = reconstruction_weights(points, neighbors_of(points, 6), 1e-9)
    np.testing.assert_allclose(W.sum(axis=1), 1)
    np.testing.assert_allclose(W @ points, points, atol=1e-6)


def test_reconstruction_weights__of_equal_points_are_equal():
    W = reconstruction_weights(np.ones((5, 3)), neighbors_of(np.ones((5, 3)), 2))
    np.testing.assert_allclose(W.data, 0.5)


def test_lle_operator__gives_sklearns_embedding():
    points, _ = swiss_roll(200, seed=0)
    peer = LocallyLinearEmbedding(n_neighbors=9, n_components=2, eigen_solver="dense", reg=1e-3)
    expected = peer.fit_transform(points)
    operator = lle_operator(reconstruction_weights(points, neighbors_of(points, 9), 1e-3))
    _, vectors = np.linalg.eigh(operator.toarray())
    overlap = np.linalg.svd(vectors[:, 1:3].T @ expected, compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-6)


def test_lle_operator__on_even_points_is_the_square_of_the_laplacian():
    # Two neighbours, by symmetry with weights 1/2 each: I - W = L / 2, so it is L^2 / 4 for the
    # unnormalised L = 2 I - A; L^2 / 2 of the thesis is up to the scale of L.
    angle = 2 * np.pi * np.arange(50) / 50
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    index = (np.arange(50)[:, None] + [-1, 1]) % 50
    operator = lle_operator(reconstruction_weights(points, index, 1e-12))
    A = scipy.sparse.csr_array((np.ones(100), index.ravel(), np.arange(0, 101, 2)), shape=(50, 50))
    L = (2 * scipy.sparse.eye_array(50) - A).toarray()
    np.testing.assert_allclose(operator.toarray(), L @ L / 4, atol=1e-9)


def test_lle_operator__on_jittered_points_shares_eigenvectors_with_laplace_beltrami(rng):
    angle = 2 * np.pi * (np.arange(300) + 0.2 * rng.random(300)) / 300
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    operator = lle_operator(reconstruction_weights(points, neighbors_of(points, 8)))
    _, vectors = np.linalg.eigh(operator.toarray())
    # Eigenfunctions of Laplace-Beltrami on the circle: cosine and sine.
    expected, _ = np.linalg.qr(points)
    overlap = np.linalg.svd(vectors[:, 1:3].T @ expected, compute_uv=False)
    assert overlap.min() == pytest.approx(1, abs=0.05)
