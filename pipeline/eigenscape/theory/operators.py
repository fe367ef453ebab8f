"""The operator of a sample of a manifold, at any point: it tends to Laplace-Beltrami.

Belkin 2003, chapter 4; with a potential, Halevy 2011, 3.4.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]

_TILE = 2**22
"""Kernel values that are held at a time."""


def bandwidth(samples: int, dimension: int, alpha: float = 0.5) -> float:
    """Return t_n = n^(-1 / (k + 2 + alpha)), for which the operator converges (Belkin 2003, 4).

    Parameters
    ----------
    samples
        n.
    dimension
        k, of the manifold.
    alpha
        Any positive number.
    """
    return float(samples ** (-1 / (dimension + 2 + alpha)))


def discrete_operator(
    points: F8,
    values: F8,
    at: F8,
    values_at: F8,
    t: float,
    dimension: int,
    potential: Callable[[F8], F8] | None = None,
) -> F8:
    """Return what the operator of a sample makes of a function, at points of the manifold.

    ::

        L f(x) = 1 / (t (4 pi t)^(k/2))  1/n sum_j (f(x) - f(x_j)) exp(-|x - x_j|^2 / 4t)  +  v(y) f(x)

    with y the sample nearest to x (Halevy 2011, 3.4). Under t = `bandwidth` it tends to
    1 / vol(M) Laplace-Beltrami f + v f in probability, for uniform samples.

    Parameters
    ----------
    points : array, shape (n, l)
        x_j, the sample.
    values : array, shape (n,)
        f at the sample.
    at : array, shape (m, l)
        x.
    values_at : array, shape (m,)
        f there.
    t
        Bandwidth, in squared units of the points.
    dimension
        k, of the manifold.
    potential
        v, as a function of points; none by default.

    Returns
    -------
    array, shape (m,)
    """
    result = np.empty(len(at))
    squares = np.einsum("ij,ij->i", points, points)
    step = max(1, _TILE // len(points))
    for start in range(0, len(at), step):
        here = slice(start, start + step)
        x, f = at[here], values_at[here]
        distance = np.maximum(np.einsum("ij,ij->i", x, x)[:, None] + squares - 2 * x @ points.T, 0)
        kernel = np.exp(-distance / (4 * t))
        result[here] = f * kernel.sum(axis=1) - kernel @ values
        result[here] /= len(points) * t * (4 * np.pi * t) ** (dimension / 2)
        if potential is not None:
            result[here] += potential(points[distance.argmin(axis=1)]) * f
    return result


def fitted_rate(samples: Sequence[int], errors: Sequence[float]) -> float:
    """Return r of the law error ~ n^-r that fits best, by least squares of the logarithms."""
    slope = np.polyfit(np.log(np.asarray(samples, float)), np.log(np.asarray(errors, float)), 1)[0]
    return float(-slope)
