"""Number of dimensions with which a random projection is certain to keep distances.

Bounds that hold for every data set are loose: on real scenes far fewer dimensions do as well, and
what they keep is measured (Halevy 2011, 6.3.3: level from about 10 dimensions on).
"""

import math

DISTORTION = 0.5
"""Relative change of squared distances at which a plan gives the bound of Johnson and Lindenstrauss."""


def johnson_lindenstrauss(samples: int, distortion: float = DISTORTION) -> int:
    """Return the dimensions that keep all squared distances of some samples within 1 +- distortion.

    4 ln n / (e^2 / 2 - e^3 / 3), with a probability that is not 0 (Dasgupta, Gupta 2003).

    Parameters
    ----------
    samples
        How many, n.
    distortion
        e, between 0 and 1.

    Examples
    --------
    >>> johnson_lindenstrauss(21_025), johnson_lindenstrauss(21_025, 0.1)
    (478, 8532)
    """
    return math.ceil(4 * math.log(samples) / (distortion**2 / 2 - distortion**3 / 3))


def eigenvector_bound(
    samples: int,
    bands: int,
    dimension: int = 1,
    *,
    relative_gap: float = 1.0,
    change: float = 1.0,
    failure: float = 0.5,
    shape: float = 1.0,
) -> float:
    """Return the dimensions after which eigenmaps change by less than a given length.

    Theorem 4.3.1 of Halevy (2011): M >= (4 + 2 ln(1/rho)) / (e^2/200 + e^3/3000) K ln(C K N / e),
    e = r alpha / (4 A n (n - 1)). The thesis prints 4 - 2 ln(1/rho), by which the surer one wants to
    be the fewer dimensions one would need; the sign is turned here.

    Parameters
    ----------
    samples, bands
        n and N.
    dimension
        K, of the manifold.
    relative_gap
        r / A: least difference of the eigenvalues over the largest distance of two samples.
    change
        alpha: length by which an eigenvector of length 1 may change.
    failure
        rho: probability of more than that.
    shape
        C, of volume, regularity and curvature of the manifold.
    """
    epsilon = relative_gap * change / (4 * samples * (samples - 1))
    factor = (4 + 2 * math.log(1 / failure)) / (epsilon**2 / 200 + epsilon**3 / 3000)
    return factor * dimension * math.log(shape * dimension * bands / epsilon)


def describe_bounds(samples: int, bands: int, dimension: int) -> str:
    """Return what theory asks of a random projection, in one sentence.

    Parameters
    ----------
    samples, bands
        Of the scene.
    dimension
        That is projected to.
    """
    sure = johnson_lindenstrauss(samples)
    best = eigenvector_bound(samples, bands)
    return (
        f"random projection to {dimension} of {bands}: theory would ask for {sure} to keep all squared "
        f"distances within {100 * DISTORTION:.0f} % (Johnson, Lindenstrauss), and for {best:.0e} or "
        "more to keep the eigenvectors (Halevy 2011, theorem 4.3.1, at its most favourable); both "
        "are loose, far fewer do"
    )
