"""Points lie where the closed form says, uniformly, and a seed gives the same ones."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from eigenscape import datasets
from eigenscape.datasets.made import manifolds
from eigenscape.errors import InputError

DRAWN = [name for name in datasets.__all__ if name not in ("Table", "load", "urban_like")]


def norms(x):
    return np.linalg.norm(x, axis=1)


def uniform(values, low, high):
    """Return whether a sample may be uniform; the seed is fixed, so chance has no second try."""
    return kstest((values - low) / (high - low), "uniform").pvalue > 0.01


@pytest.mark.parametrize("name", DRAWN)
def test_draws__follow_the_seed(name):
    draw = getattr(datasets, name)
    first, again, other = draw(200, seed=3), draw(200, seed=3), draw(200, seed=4)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(first[0]) == len(first[1]) == 200
    assert (first[0] != other[0]).any()
    assert len(np.unique(first[0], axis=0)) == 200


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(("key", "value"), [("samples", 0), ("seed", -1), ("seed", 2**63)])
def test_draws__refuse_what_cannot_be(name, key, value):
    with pytest.raises(InputError, match=f"{key} = {value}: give a number"):
        getattr(datasets, name)(**{key: value})


def test_plane_curve__keeps_its_distance_from_the_arc():
    points, classes = datasets.plane_curve(2000, seed=1)
    angle = np.arctan2(points[:, 1], points[:, 0]) % (2 * np.pi)
    # Beyond the ends of the three quarters the nearest point is an end.
    ends = np.array([[1.0, 0.0], [0.0, -1.0]])
    to_ends = np.linalg.norm(points[:, None] - ends, axis=2).min(axis=1)
    away = np.where(angle <= 1.5 * np.pi, np.abs(norms(points) - 1), to_ends)
    np.testing.assert_allclose(away, manifolds.HALF_WIDTH, atol=1e-12)
    amid_caps = np.hypot(1, manifolds.HALF_WIDTH)
    np.testing.assert_array_equal(classes, np.where(norms(points) > amid_caps, 1, 2))


def test_plane_curve__is_uniform_by_length():
    _, classes = datasets.plane_curve(20_000, seed=1)
    w, span = manifolds.HALF_WIDTH, 1.5 * np.pi
    outer = ((1 + w) * span + np.pi * w) / (2 * span + 2 * np.pi * w)
    assert abs((classes == 1).mean() - outer) < 4 * np.sqrt(0.25 / 20_000)


def test_plane_curve__halves_come_close_and_meet_twice():
    points, classes = datasets.plane_curve(2000, seed=1)
    near = np.linalg.norm(points[classes == 1][:, None] - points[classes == 2], axis=2).min(axis=1)
    # Nearly all of the other half is a band's width away, a few points at the two caps less.
    assert np.median(near) == pytest.approx(2 * manifolds.HALF_WIDTH, rel=0.01)
    assert near.min() < 0.05


def test_swiss_roll__is_the_sheet_of_its_parameters():
    points, sheet = datasets.swiss_roll(1000, seed=2)
    t = np.hypot(points[:, 0], points[:, 2])
    first, last = manifolds.ROLL
    assert first <= t.min() < t.max() <= last
    np.testing.assert_allclose(points[:, 0], t * np.cos(t), atol=1e-9)
    np.testing.assert_allclose(points[:, 2], t * np.sin(t), atol=1e-9)
    np.testing.assert_array_equal(points[:, 1], sheet[:, 1])
    for index in (0, 17, 400):
        length, _ = quad(lambda angle: np.hypot(1, angle), first, t[index])
        assert sheet[index, 0] == pytest.approx(length, rel=1e-9)
    whole, _ = quad(lambda angle: np.hypot(1, angle), first, last)
    assert uniform(sheet[:, 0], 0, whole)
    assert uniform(sheet[:, 1], 0, manifolds.ROLL_HEIGHT)


def test_arc__is_a_half_cylinder_in_order():
    points, (angle, height) = (lambda p, q: (p, q.T))(*datasets.arc(500, seed=2))
    np.testing.assert_allclose(norms(points[:, :2]), 1)
    assert (np.diff(angle) > 0).all()
    np.testing.assert_allclose(np.arctan2(points[:, 1], points[:, 0]), angle)
    np.testing.assert_array_equal(points[:, 2], height)
    assert points[0, 0] > 0.99
    assert points[-1, 0] < -0.99


def test_helix__climbs_a_pitch_a_turn():
    points, angle = datasets.helix(500, seed=2)
    np.testing.assert_allclose(norms(points[:, :2]), 1)
    turns = points[:, 2] / manifolds.PITCH
    np.testing.assert_allclose(points[:, 0], np.cos(2 * np.pi * turns), atol=1e-9)
    np.testing.assert_allclose(turns, angle[:, 0] / (2 * np.pi))
    assert uniform(turns, 0, manifolds.TURNS)


def test_rectangle__is_flat_and_keeps_distances():
    points, place = datasets.rectangle(300, seed=2)
    assert np.linalg.matrix_rank(points) == 2
    assert (points.std(axis=0) > 0.05).all()
    one, two = points[:150] - points[150:], place[:150] - place[150:]
    np.testing.assert_allclose(norms(one), norms(two))
    for side in (0, 1):
        assert uniform(place[:, side], 0, manifolds.SIDES[side])


@pytest.mark.parametrize(("name", "parts"), [("circle", 1), ("flat_torus", 2)])
def test_circles__are_round_and_uniform(name, parts):
    points, angle = getattr(datasets, name)(1000, seed=2)
    for part in range(parts):
        pair = points[:, 2 * part : 2 * part + 2]
        np.testing.assert_allclose(norms(pair), 1)
        found = np.arctan2(pair[:, 1], pair[:, 0]) % (2 * np.pi)
        np.testing.assert_allclose(found, angle[:, part], atol=1e-9)
        assert uniform(found, 0, 2 * np.pi)


def test_sphere__is_round_and_uniform():
    points, (height, longitude) = (lambda p, q: (p, q.T))(*datasets.sphere(2000, seed=2))
    np.testing.assert_allclose(norms(points), 1)
    np.testing.assert_array_equal(points[:, 2], height)
    np.testing.assert_allclose(np.arctan2(points[:, 1], points[:, 0]) % (2 * np.pi), longitude)
    # Every axis sees the same distribution on a uniform sphere: that of Archimedes.
    for axis in range(3):
        assert uniform(points[:, axis], -1, 1)


def test_torus__is_a_tube_and_uniform_by_area():
    points, (along, around) = (lambda p, q: (p, q.T))(*datasets.torus(4000, seed=2))
    tube = manifolds.TUBE
    ring = norms(points[:, :2])
    np.testing.assert_allclose((ring - 1) ** 2 + points[:, 2] ** 2, tube**2)
    np.testing.assert_allclose(ring, 1 + tube * np.cos(around))
    assert uniform(along, 0, 2 * np.pi)
    # The outer half, where the ring is wider than its centre line, has the larger area.
    outer = 0.5 + tube / np.pi
    assert abs((ring > 1).mean() - outer) < 4 * np.sqrt(0.25 / 4000)
    assert uniform(around + tube * np.sin(around), 0, 2 * np.pi)


def test_surface__is_one_sheet_of_few_waves():
    points, place = datasets.surface(300, seed=5)
    assert points.shape == (300, 200)
    # Fifteen products of cosines span it; it bends out of every plane.
    assert np.linalg.matrix_rank(points) == 15
    # A sheet of two dimensions: by the parameters, neighbours are neighbours.
    near = np.linalg.norm(place[:, None] - place, axis=2)
    far = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(near, np.inf)
    closest = near.argmin(axis=1)
    assert far[np.arange(300), closest].mean() < 0.15 * far.mean()


def test_surface__does_not_depend_on_how_many_points():
    few, place = datasets.surface(1, seed=5)
    many, places = datasets.surface(50, seed=5)
    waves = [(a, b) for a in range(4) for b in range(4) if (a, b) != (0, 0)]

    def basis(uv):
        u, v = uv.T
        return np.array([np.cos(np.pi * a * u) * np.cos(np.pi * b * v) for a, b in waves]).T

    weight = np.linalg.lstsq(basis(places), many, rcond=None)[0]
    np.testing.assert_allclose(basis(place) @ weight, few, atol=1e-9)
