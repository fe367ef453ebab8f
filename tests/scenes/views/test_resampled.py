from dataclasses import dataclass

import numpy as np
import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.types import Bands, Grid
from eigenscape.scenes.views.centred import centred
from eigenscape.scenes.views.resampled import bands_read, to_bands


@dataclass(frozen=True)
class Cube:
    """A scene in memory."""

    bands: Bands
    values: np.ndarray
    files = ("cube",)
    row_step = 1

    @property
    def grid(self):
        return Grid(*self.values.shape[:2])

    def read(self, start, stop):
        valid = self.values[start:stop, :, 0] >= 0
        return self.values[start:stop][..., self.bands.good_index], valid


@pytest.fixture
def cube(rng):
    centres = np.linspace(400, 900, 60) + rng.uniform(-3, 3, 60)
    values = rng.random((7, 5, 61)).astype(np.float32)
    values[2, 3] = -1
    order = rng.permutation(60)
    good = [True] * 60 + [False]
    return Cube(Bands(tuple(good), (*centres[order], 650.0)), values)


def seen(cube, centre, width):
    """Return each spectrum seen through a Gaussian, on a grid of a hundredth of a nanometre."""
    good = cube.bands.good_index
    own = np.array(cube.bands.wavelength)[good]
    order = np.argsort(own)
    places = np.arange(centre - 1.5 * width, centre + 1.5 * width, 0.01)
    places = places[(places >= own.min()) & (places <= own.max())]
    response = np.exp(-4 * np.log(2) * ((places - centre) / width) ** 2)
    spectra = cube.values[..., good].reshape(-1, len(good))[:, order]
    found = [np.trapezoid(response * np.interp(places, own[order], line)) for line in spectra]
    return np.reshape(found, cube.values.shape[:2]) / np.trapezoid(response)


def test_resampled__spectra_through_gaussians(cube):
    wanted = Bands((True, False, True, True), (500.0, 1.0, 700, 560), (10.0, 1.0, 40.0, 25.0))
    scene = to_bands(cube, wanted)
    values, valid = scene.read(0, 7)
    assert valid.sum() == 34
    for number, (centre, width) in enumerate(((500, 10), (700, 40), (560, 25))):
        expected = seen(cube, centre, width)
        np.testing.assert_allclose(values[valid][:, number], expected[valid], rtol=3e-3)
    assert (values[~valid] == 0).all()
    np.testing.assert_array_equal(scene.read(3, 5)[0], values[3:5])
    assert scene.bands.wavelength == (500, 700, 560)
    assert bands_read(scene) == 61
    assert "spectra resampled from 60 bands to the run's 3" in describe_scene(scene)[-1]


def test_resampled__less_an_origin(cube):
    wanted = Bands((True, True), (500.0, 700.0), (10.0, 40.0))
    scene = to_bands(cube, wanted)
    values, valid = scene.read(0, 7)
    less, _ = centred(scene, np.array([0.25, 0.5])).read(0, 7)
    np.testing.assert_allclose(less[valid], values[valid] - [0.25, 0.5], atol=1e-6)


def test_resampled__a_line_stays_a_line(cube):
    centres = np.array(cube.bands.wavelength)
    line = Cube(cube.bands, np.broadcast_to(centres, (2, 3, 61)).astype(np.float32))
    values, _ = to_bands(line, Bands((True,) * 2, (520.0, 640.0), (20.0, 9.0))).read(0, 2)
    np.testing.assert_allclose(values, np.broadcast_to([520, 640], (2, 3, 2)), rtol=2e-4)


def test_resampled__the_same_bands_are_left_alone(cube):
    own = cube.bands
    wanted = Bands((True,) * 60, tuple(value + 0.5 for value in own.wavelength[:60]))
    assert to_bands(cube, wanted) is cube
    assert to_bands(cube, Bands((True,) * 60)) is cube


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Bands((True,) * 3),
            r"60 good bands of 61; the run learned from 3 of 3\. Wavelengths of both",
        ),
        (Bands((True,) * 3, (500.0, np.nan, 600.0)), "Wavelengths of both"),
        (Bands((True,) * 2, (600.0, 1500.0), (9.0, 9.0)), r"near 1 of the run's 2, at 1500 nm"),
    ],
)
def test_resampled__raises_on_what_it_cannot_know(cube, wanted, message):
    with pytest.raises(SceneError, match=message):
        to_bands(cube, wanted)
