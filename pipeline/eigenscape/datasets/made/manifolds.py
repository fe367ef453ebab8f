"""Points drawn from curves and surfaces of known shape, each with its parameters.

Every function takes a number of points and a seed and returns the points, shape (samples,
dimension), with what is known of each: parameters, shape (samples, parameters), or classes. Points
are uniform by length or area unless it says otherwise.
"""

import numpy as np
from numpy.typing import NDArray

from eigenscape.errors import InputError

Floats = NDArray[np.float64]

HALF_WIDTH = 0.15
"""Distance of the plane curve from the arc that it runs around; the arc's radius is 1."""

ROLL = (1.5 * np.pi, 4.5 * np.pi)
"""First and last angle of the Swiss roll, which is also its distance from the axis."""
ROLL_HEIGHT = 21.0
"""Height of the Swiss roll."""

TURNS, PITCH = 4, 1.0
"""Turns of the helix, and how far it climbs in one."""

SIDES = (1.5, 1.0)
"""Sides of the rectangle: below a ratio of 2 its eigenmap is two-dimensional (Halevy 2011, 2.4)."""

TUBE = 0.5
"""Radius of the torus' tube; its centre line has radius 1."""

_WAVES = 3  # Cosines along each side of the surface.
_NEWTON_STEPS = 30


def plane_curve(samples: int = 500, seed: int = 0) -> tuple[Floats, NDArray[np.uint8]]:
    """Draw from a closed curve in the plane whose two halves run close to each other.

    The curve is all points at distance `HALF_WIDTH` from three quarters of the unit circle. Class 1
    is its outer side, class 2 its inner one: along the curve they meet at two points only, across
    the plane they are `2 HALF_WIDTH` apart everywhere (Belkin 2003, 3.2, Fig. A.1).

    Parameters
    ----------
    samples
        Number of points.
    seed
        The same seed gives the same points.

    Returns
    -------
    points : array, shape (samples, 2)
    classes : array of uint8, shape (samples,)
        1 or 2.
    """
    w, span = HALF_WIDTH, 1.5 * np.pi
    # Outer side, cap, inner side, cap: their lengths, and the classes' borders amid the caps.
    lengths = np.array([(1 + w) * span, np.pi * w, (1 - w) * span, np.pi * w])
    along = generator(samples, seed).uniform(0, lengths.sum(), samples)
    ends = np.cumsum(lengths)
    piece = np.searchsorted(ends, along, side="right")
    part = (along - (ends - lengths)[piece]) / lengths[piece]
    # The nearest point of the arc, and the direction in which the curve lies from there.
    angle = span * np.choose(piece, [part, np.ones(samples), 1 - part, np.zeros(samples)])
    turned = np.pi * np.choose(piece, [np.zeros(samples), part, np.ones(samples), 1 + part])
    points = _on_circle(angle) + w * _on_circle(angle + turned)
    outer = (turned < np.pi / 2) | (turned > 1.5 * np.pi)
    return points, np.where(outer, 1, 2).astype(np.uint8)


def swiss_roll(samples: int = 2000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from the Swiss roll: a rectangle rolled up along an Archimedean spiral in space.

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
        (t cos t, height, t sin t) with t in `ROLL`.
    parameters : array, shape (samples, 2)
        Place on the unrolled sheet: distances along the surface are distances here.
    """
    rng = generator(samples, seed)
    first, last = (_spiral_length(np.array(t)) for t in ROLL)
    length = rng.uniform(first, last, samples)
    height = rng.uniform(0, ROLL_HEIGHT, samples)
    t = np.sqrt(2 * length)
    for _ in range(_NEWTON_STEPS):
        t -= (_spiral_length(t) - length) / np.hypot(1, t)
    points = np.column_stack([t * np.cos(t), height, t * np.sin(t)])
    return points, np.column_stack([length - first, height])


def arc(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from an arc of two dimensions: half of a cylinder of radius 1 and height 1.

    The points come in the order of their angle: the first and the last stand at the two ends, the
    middle one in the middle (what the potentials of Halevy 2011, 3.1 act on).

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
        (cos angle, sin angle, height).
    parameters : array, shape (samples, 2)
        Angle in 0 ... pi, ascending, and height in 0 ... 1.
    """
    rng = generator(samples, seed)
    angle = np.sort(rng.uniform(0, np.pi, samples))
    height = rng.uniform(0, 1, samples)
    return np.column_stack([_on_circle(angle), height]), np.column_stack([angle, height])


def helix(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from a helix of radius 1 with `TURNS` turns that climb `PITCH` each (Halevy 2011, 5).

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
    parameters : array, shape (samples, 1)
        Angle from the start, in radians.
    """
    angle = generator(samples, seed).uniform(0, 2 * np.pi * TURNS, samples)
    points = np.column_stack([_on_circle(angle), PITCH * angle / (2 * np.pi)])
    return points, angle[:, np.newaxis]


def rectangle(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from a flat rectangle that stands askew in space (Halevy 2011, Fig. 2.7).

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
    parameters : array, shape (samples, 2)
        Place on the rectangle, whose sides are `SIDES`.
    """
    place = generator(samples, seed).uniform(0, 1, (samples, 2)) * SIDES
    frame = np.array([[2.0, -2.0, 1.0], [2.0, 1.0, -2.0]]) / 3  # Orthonormal.
    return place @ frame, place


def circle(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from the unit circle.

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 2)
    parameters : array, shape (samples, 1)
        Angle in radians.
    """
    angle = generator(samples, seed).uniform(0, 2 * np.pi, samples)
    return _on_circle(angle), angle[:, np.newaxis]


def sphere(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from the unit sphere in space.

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
    parameters : array, shape (samples, 2)
        Height in -1 ... 1 and longitude in radians.
    """
    rng = generator(samples, seed)
    # Slices of equal height have equal areas (Archimedes).
    height, longitude = rng.uniform(-1, 1, samples), rng.uniform(0, 2 * np.pi, samples)
    around = _on_circle(longitude) * np.sqrt(1 - height**2)[:, np.newaxis]
    return np.column_stack([around, height]), np.column_stack([height, longitude])


def torus(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from a ring in space: its centre line has radius 1, its tube `TUBE`.

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 3)
    parameters : array, shape (samples, 2)
        Angle along the ring and around the tube, in radians; 0 of the latter is outermost.
    """
    rng = generator(samples, seed)
    along, share = rng.uniform(0, 2 * np.pi, samples), rng.uniform(0, 2 * np.pi, samples)
    # The area up to an angle around the tube is angle + TUBE sin(angle), as a share of the whole.
    around = share.copy()
    for _ in range(_NEWTON_STEPS):
        around -= (around + TUBE * np.sin(around) - share) / (1 + TUBE * np.cos(around))
    ring = _on_circle(along) * (1 + TUBE * np.cos(around))[:, np.newaxis]
    return np.column_stack([ring, TUBE * np.sin(around)]), np.column_stack([along, around])


def flat_torus(samples: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Draw from the product of two unit circles, a torus without curvature in four dimensions.

    Parameters
    ----------
    samples, seed
        Number of points; what they are drawn with.

    Returns
    -------
    points : array, shape (samples, 4)
    parameters : array, shape (samples, 2)
        The two angles in radians.
    """
    angle = generator(samples, seed).uniform(0, 2 * np.pi, (samples, 2))
    return np.column_stack([_on_circle(angle[:, 0]), _on_circle(angle[:, 1])]), angle


def surface(samples: int = 1000, seed: int = 0, *, dimension: int = 200) -> tuple[Floats, Floats]:
    """Draw from a curved sheet in a space of many dimensions (Halevy 2011, 4.3).

    Each coordinate is a random sum of the products of cosines cos(pi a u) cos(pi b v), 0 <= a, b
    <= 3, not both 0, with normal coefficients that fall off as 1 / (a^2 + b^2). The sheet does not
    depend on how many points are drawn.

    Parameters
    ----------
    samples, seed
        Number of points; what they and the sheet are drawn with.
    dimension
        Of the space around.

    Returns
    -------
    points : array, shape (samples, dimension)
        Not uniform by area: uniform in the parameters.
    parameters : array, shape (samples, 2)
        u and v in 0 ... 1.
    """
    place = generator(samples, seed).uniform(0, 1, (samples, 2))
    a, b = (order.ravel()[1:] for order in np.mgrid[: _WAVES + 1, : _WAVES + 1])
    waves = np.cos(np.pi * place[:, :1] * a) * np.cos(np.pi * place[:, 1:] * b)
    # A stream of its own, or the sheet would change with the number of points.
    weight = np.random.default_rng([seed, 1]).standard_normal((len(a), dimension))
    weight /= (a**2 + b**2)[:, np.newaxis] * np.sqrt(dimension)
    return waves @ weight, place


def generator(samples: int, seed: int) -> np.random.Generator:
    """Return the generator of a seed.

    Raises
    ------
    InputError
        The number of points or the seed is impossible.
    """
    if samples < 1:
        raise InputError(f"samples = {samples}: give a number from 1 on.")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed = {seed}: give a number from 0 to 2**63 - 1.")
    return np.random.default_rng([seed])


def _on_circle(angle: Floats) -> Floats:
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _spiral_length(t: Floats) -> Floats:
    """Return the length of the spiral of radius t from its centre to the angle t."""
    length: Floats = (t * np.hypot(1, t) + np.arcsinh(t)) / 2
    return length
