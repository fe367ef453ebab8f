"""Locally linear embedding beside the Laplacian: (I - W)^T (I - W) is about L^2 / 2 (Belkin 2003, 2.5).

For the embedding itself take ``sklearn.manifold.LocallyLinearEmbedding``; here is its operator.
"""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def reconstruction_weights(
    points: F8, neighbors: NDArray[np.intp], regularization: float = 1e-3
) -> scipy.sparse.csr_array:
    """Return the weights that rebuild each point from its neighbours best (Roweis, Saul 2000).

    They minimise |x_i - sum_j W_ij x_j|^2 with sum_j W_ij = 1.

    Parameters
    ----------
    points : array, shape (n, l)
    neighbors : array of int, shape (n, k)
        Of each point, without itself.
    regularization
        Share of the trace that is added to the local Gram matrices, which are singular for k > l.

    Returns
    -------
    sparse array, shape (n, n)
        W. Rows sum to 1.
    """
    n, k = neighbors.shape
    moved = points[neighbors] - points[:, None]
    gram = moved @ moved.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    # Coinciding points are rebuilt by any weights: equal ones.
    gram += (regularization * np.where(trace > 0, trace, 1))[:, None, None] * np.eye(k)
    weights = np.linalg.solve(gram, np.ones((n, k, 1)))[..., 0]
    weights /= weights.sum(axis=1, keepdims=True)
    starts = np.arange(0, n * k + 1, k)
    return scipy.sparse.csr_array((weights.ravel(), neighbors.ravel(), starts), shape=(n, n))


def lle_operator(weights: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return (I - W)^T (I - W), whose lowest eigenvectors are the embedding."""
    rest = scipy.sparse.eye_array(weights.shape[0], format="csr") - weights
    return (rest.T @ rest).tocsr()
