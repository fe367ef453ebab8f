"""Number of eigenvalues below a value, by the kernel polynomial method."""

import numpy as np
from numpy.typing import NDArray

from eigenscape.spectrum.kernels.gather import WIDTH
from eigenscape.spectrum.kernels.operator import Operator

_PRODUCTS = 64


def quantile(operator: Operator, share: float, bound: float) -> float:
    """Return the value below which about a share of the eigenvalues lies.

    The traces of Chebyshev polynomials of A, estimated from WIDTH random vectors, give the density
    of states (Weisse, Wellein, Alvermann, Fehske 2006). Good to about a hundredth of the spectrum's
    length; meant for shares of a hundredth and more.

    Parameters
    ----------
    operator
        A.
    share
        Between 0 and 1.
    bound
        Upper bound of the spectrum.
    """
    moments = _moments(operator, bound)
    order = np.arange(1, len(moments))
    # Jackson's kernel keeps the truncated series from ringing.
    step = np.pi / (len(moments) + 1)
    damping = (
        (len(moments) - order + 1) * np.cos(step * order) + np.sin(step * order) / np.tan(step)
    ) / (len(moments) + 1)
    angle = np.linspace(np.pi, 0, 2000)
    waves = np.sin(np.outer(angle, order)) / order
    below = ((np.pi - angle) - 2 * waves @ (damping * moments[1:])) / np.pi
    first = int(np.argmax(below >= share))
    return float(bound / 2 * (1 + np.cos(angle[first])))


def _moments(operator: Operator, bound: float) -> NDArray[np.float64]:
    """Return tr T_k(A stretched to [-1, 1]) / n, two for each product."""
    half = bound / 2
    kind = operator.diagonal.dtype
    X = np.random.default_rng(9).standard_normal((operator.rows, WIDTH)).astype(kind)
    Y = np.zeros_like(X)
    operator.step(X, Y, 1 / half, -1.0, 0.0)
    size = float(np.vdot(X, X))
    moments = [1.0, float(np.vdot(X, Y)) / size]
    first = moments[1]
    for _ in range(_PRODUCTS):
        # X = T_(k-1), Y = T_k of the random vectors.
        moments.append(2 * float(np.vdot(Y, Y)) / size - 1)
        operator.step(Y, X, 2 / half, -2.0, 1.0)
        moments.append(2 * float(np.vdot(X, Y)) / size - first)
        X, Y = Y, X
    return np.array(moments)
