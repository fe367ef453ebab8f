"""Spectra of manifolds in closed form, and those of samples, which tend to them.

Belkin and Niyogi's theorem as Halevy 2011 quotes it (2.2.6), and with a potential (3.5).
"""

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from scipy.special import mathieu_a, mathieu_b

from eigenscape.spectrum.eigenpairs import Eigenpairs, eigenpairs

F8 = NDArray[np.float64]

_REACH = 6.0
"""Where the kernel is cut off, in units of its standard deviation sqrt(2 t)."""


def circle_spectrum(count: int) -> F8:
    """Return the eigenvalues of Laplace-Beltrami on the unit circle: k^2, twice for k > 0."""
    return np.asarray(((np.arange(count) + 1) // 2) ** 2, float)


def sphere_spectrum(count: int) -> F8:
    """Return those of the unit sphere: l (l + 1), 2 l + 1 times."""
    degree = np.floor(np.sqrt(np.arange(count)))
    return np.asarray(degree * (degree + 1), float)


def flat_torus_spectrum(count: int) -> F8:
    """Return those of the product of two unit circles: a^2 + b^2."""
    # The first `count` of a line give at least as many sums below its largest.
    line = circle_spectrum(count)
    return np.sort((line[:, None] + line).ravel())[:count]


def mathieu_spectrum(count: int, strength: float) -> F8:
    """Return those of Laplace-Beltrami + v on the unit circle, v = strength (1 + cos 2 angle).

    Mathieu's characteristic values: -y'' + 2 q cos(2 x) y = a y with q = strength / 2.
    """
    orders = np.arange(count + 1)
    q = strength / 2
    # Even solutions of every order, odd ones from the first on.
    values = np.concatenate([mathieu_a(orders, q), mathieu_b(orders[1:], q)])
    return np.asarray(np.sort(values)[:count] + strength)


def sample_spectrum(
    points: F8,
    t: float,
    dimension: int,
    volume: float,
    count: int,
    potential: ArrayLike | None = None,
) -> Eigenpairs:
    """Return the lowest eigenpairs of the operator of a uniform sample, in units of the manifold's.

    vol(M) / (n t (4 pi t)^(k/2)) (D - W) + V with W = exp(-|x_i - x_j|^2 / 4t), which is left out
    beyond six standard deviations: what is missing is below 2e-8 of an entry.

    Parameters
    ----------
    points : array, shape (n, l)
        A uniform sample of the manifold.
    t
        Bandwidth, in squared units of the points.
    dimension
        k, of the manifold.
    volume
        vol(M), in units of the points to the power k.
    count
        Eigenpairs, the constant one included.
    potential : array, shape (n,), optional
        v >= 0 at the sample.

    Returns
    -------
    eigenscape.Eigenpairs
    """
    n = len(points)
    radius = _REACH * np.sqrt(2 * t)
    pairs = KDTree(points).query_pairs(radius, output_type="ndarray")
    squares = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)
    factor = volume / (n * t * (4 * np.pi * t) ** (dimension / 2))
    half = scipy.sparse.coo_array(
        (factor * np.exp(-squares / (4 * t)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)
    )
    W = (half + half.T).tocsr()
    nulls = 1 if potential is None else 0
    return eigenpairs(W, count - nulls, kind="unnormalized", potential=potential, tolerance=1e-6)
