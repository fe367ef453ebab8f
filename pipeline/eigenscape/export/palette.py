"""A name and a colour for every class: colours that can be told apart, given ones kept."""

import functools
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from eigenscape.export.legends.meanings import color_of, meaning_of
from eigenscape.scenes.types import Color, Legend

_SEEDS: tuple[Color, ...] = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (213, 94, 0),
    (86, 180, 233),
    (204, 121, 167),
    (240, 228, 66),
)
"""The colour-blind-safe set of Okabe and Ito (2008), black left out, in the order of use."""

# What a map is drawn on: white, and the light grey of pixels without class.
_BACKGROUNDS: tuple[Color, ...] = ((255, 255, 255), (236, 236, 236))

_LEVELS = 16
_LIGHTNESS = (28.0, 88.0)
_CHROMA = 85.0  # Past it colours glare on a screen.
_SEED_DISTANCE = 25.0
# Of classes that mean the same: how near they come, and how far a shade is from the colour, in CIELAB.
_NEAR_DISTANCE = 12.0
_SHADES = 32.0
_MOST_SHADES = 4
_MOST = 256

# Severe deuteranopia and protanopia in linear RGB: Machado, Oliveira and Fernandes (2009), table 1.
_DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
_PROTANOPIA = (
    (0.152286, 1.052583, -0.204868),
    (0.114503, 0.786281, 0.099216),
    (-0.003882, -0.048116, 1.051998),
)
_COLOR_BLIND_WEIGHT = 1.6


def complete_legend(legend: Legend, classes: Iterable[int]) -> Legend:
    """Give every class a name and a colour.

    Missing names are ``"class 7"``. A missing colour is that of what the name means (water is blue:
    `eigenscape.export.legends.meanings`) or a shade of it, unless more than four classes mean the same. The
    others start with the set of Okabe and Ito; then each next one is the colour farthest (in CIELAB, as
    seen with normal and with red-green blind eyes) from all that are taken, from white and from the grey
    of unclassified pixels. After 256 of them they repeat: more cannot be told apart.

    Parameters
    ----------
    legend
        What is known; its names (unless blank) and colours are kept.
    classes
        Class numbers that need both, besides those of `legend`. 0 is no class.

    Returns
    -------
    Legend
        Names and colours of the same classes, in ascending order. The same input gives the same
        colours, whatever the order of `classes`.

    Examples
    --------
    >>> complete_legend(Legend(names={2: "oats"}), [1, 2]).names
    {1: 'class 1', 2: 'oats'}
    """
    numbers = sorted({int(number) for number in classes} | {*legend.names, *legend.colors})
    numbers = [number for number in numbers if number != 0]
    given = {number: legend.colors[number] for number in numbers if number in legend.colors}
    meanings = {number: meaning_of(legend.names.get(number, "")) for number in numbers}
    shared = Counter(meanings.values())
    for number, meaning in meanings.items():
        if number not in given and meaning is not None and shared[meaning] <= _MOST_SHADES:
            given[number] = _color_near(color_of(meaning), tuple(given.values()))
    missing = [number for number in numbers if number not in given]
    fresh = _distinct_colors(tuple(given.values()), min(len(missing), _MOST))
    colors = given | {number: fresh[i % len(fresh)] for i, number in enumerate(missing)}
    return Legend(
        names={
            number: legend.names.get(number, "").strip() or f"class {number}" for number in numbers
        },
        colors={number: colors[number] for number in numbers},
    )


def cielab(colors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return colours in CIELAB (D65).

    Parameters
    ----------
    colors : array, shape (..., 3)
        sRGB in 0 ... 255.

    Returns
    -------
    array, shape (..., 3)
        L* in 0 ... 100, a*, b*.
    """
    return _lab_of_linear(_linear(colors))


def _linear(colors: NDArray[np.float64]) -> NDArray[np.float64]:
    share = np.asarray(colors, np.float64) / 255
    low: NDArray[np.float64] = share / 12.92
    return np.where(share <= 0.04045, low, ((share + 0.055) / 1.055) ** 2.4)


def _lab_of_linear(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = linear @ to_xyz.T / to_xyz.sum(axis=1)
    root = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _appearance(colors: Iterable[Color] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return CIELAB as three kinds of eyes see it, shape (color, 3 eyes, 3), weighted."""
    linear = _linear(np.asarray(colors if isinstance(colors, np.ndarray) else list(colors), float))
    eyes = [_lab_of_linear(linear)]
    for matrix in (_DEUTERANOPIA, _PROTANOPIA):
        seen = np.clip(linear @ np.array(matrix).T, 0, 1)
        eyes.append(_COLOR_BLIND_WEIGHT * _lab_of_linear(seen))
    return np.stack(eyes, axis=1)


def _distance(many: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance of each colour to `one` in the eyes that see least of it."""
    difference = many - one
    squares: NDArray[np.float64] = np.einsum("cek,cek->ce", difference, difference).min(axis=1)
    return squares


@functools.cache
def _candidates(least_chroma: float = 12) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the colours to choose from, and how they look; never too pale or too dark."""
    levels = np.linspace(0, 255, _LEVELS).round()
    cube = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)
    lab = cielab(cube)
    chroma = np.hypot(lab[:, 1], lab[:, 2])
    kept = cube[
        (lab[:, 0] >= _LIGHTNESS[0])
        & (lab[:, 0] <= _LIGHTNESS[1])
        & (chroma >= least_chroma)
        & (chroma <= _CHROMA)
    ]
    return kept.astype(np.int64), _appearance(kept)


@functools.lru_cache(maxsize=64)
def _distinct_colors(taken: tuple[Color, ...], count: int) -> tuple[Color, ...]:
    """Return `count` colours far from each other, from those taken and from the backgrounds."""
    if count == 0:
        return ()
    chosen: list[Color] = []
    seen = list(_appearance(taken)) if taken else []
    for seed, look in zip(_SEEDS, _appearance(_SEEDS), strict=True):
        clear = all(_distance(look[np.newaxis], other)[0] > _SEED_DISTANCE**2 for other in seen)
        if clear and len(chosen) < count:
            chosen.append(seed)
            seen.append(look)
    colors, looks = _candidates()
    nearest = np.full(len(colors), np.inf)
    for look in [*seen, *_appearance(_BACKGROUNDS)]:
        np.minimum(nearest, _distance(looks, look), out=nearest)
    while len(chosen) < count:
        best = int(nearest.argmax())
        red, green, blue = colors[best].tolist()
        chosen.append((red, green, blue))
        np.minimum(nearest, _distance(looks, looks[best]), out=nearest)
    return tuple(chosen)


@functools.lru_cache(maxsize=1024)
def _color_near(wanted: Color, taken: tuple[Color, ...]) -> Color:
    """Return a colour unless it is taken; then of those near to it the one farthest from all taken."""
    if not taken:
        return wanted
    seen, own = _appearance(taken), _appearance((wanted,))[0, 0]
    if np.linalg.norm(seen[:, 0] - own, axis=1).min() > _NEAR_DISTANCE:
        return wanted
    colors, looks = _candidates(0)
    near = np.linalg.norm(looks[:, 0] - own, axis=1) <= _SHADES
    apart = np.full(int(near.sum()), np.inf)
    for look in [*seen, *_appearance(_BACKGROUNDS)]:
        np.minimum(apart, _distance(looks[near], look), out=apart)
    red, green, blue = colors[near][apart.argmax()].tolist()
    return red, green, blue


def rgb(color: Color) -> tuple[float, float, float]:
    """Return a colour of a legend as matplotlib takes it."""
    red, green, blue = color
    return red / 255, green / 255, blue / 255
