from dataclasses import dataclass, replace

import numpy as np
import pytest

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.types import Bands, Grid
from eigenscape.scenes.views.centred import centred
from eigenscape.scenes.views.resampled import bands_read, counterparts, notes_of_bands, to_bands


@dataclass(frozen=True)
class Cube:
    """A scene in memory, of numbers that are read less an origin."""

    bands: Bands
    values: np.ndarray
    origin: float | np.ndarray = 0.0
    files = ("cube",)
    row_step = 1

    @property
    def grid(self):
        return Grid(*self.values.shape[:2])

    def read(self, start, stop):
        valid = self.values[start:stop, :, 0] >= 0
        values = self.values[start:stop][..., self.bands.good_index] - self.origin
        return values.astype(np.float32), valid

    def less(self, origin):
        return replace(self, origin=origin)


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
    assert (
        "spectra of the scene resampled from 60 bands to the run's 3" in describe_scene(scene)[-1]
    )


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


def test_resampled__a_band_that_the_scene_has_is_taken_as_it_is(cube):
    own = cube.bands.wavelength
    far = np.where(cube.values < 0, cube.values, cube.values.astype(np.float64) + 1000)
    cube = replace(cube, bands=replace(cube.bands, fwhm=(8.0,) * 61), values=far)
    # One is almost where a band of the scene is, one where a narrower one is, and one between two.
    between = float(np.sort(own[:60])[[30, 31]].mean())
    wanted = Bands((True,) * 4, (own[7] + 0.9, own[3], own[40], between), (9.0, 20.0, 8.0, 8.0))
    scene = to_bands(cube, wanted)
    assert counterparts(cube.bands, wanted).tolist() == [7, -1, 40, -1]
    assert describe_scene(scene)[-1] == (
        "bands of the run: 2 taken from the scene as they are, 2 resampled from its 60, Gaussians of "
        "their widths"
    )
    alone = Cube(Bands((True,) * 2), far[..., [7, 40]])
    origin = np.array([1000.2, 1000.4, 1000.6, 0.0])
    found, valid = scene.read(0, 7)
    less, _ = centred(scene, origin).read(0, 7)
    # To the bit, also where an origin is subtracted before values go to single precision.
    for values, expected in ((found, alone), (less, alone.less(origin[[0, 2]]))):
        np.testing.assert_array_equal(
            values[valid][:, [0, 2]].view(np.uint32), expected.read(0, 7)[0][valid].view(np.uint32)
        )
        assert (values[~valid] == 0).all()
    for number in (1, 3):
        expected = seen(cube, wanted.wavelength[number], wanted.fwhm[number])[valid]
        np.testing.assert_allclose(found[valid][:, number], expected, atol=3e-3)
        np.testing.assert_allclose(less[valid][:, number] + origin[number], expected, atol=3e-3)


def test_resampled__bands_among_others_or_in_another_order(cube):
    own = cube.bands.wavelength
    some = [50, 4, 31]
    wanted = Bands((True,) * 3, tuple(own[place] for place in some))
    scene = to_bands(cube, wanted)
    np.testing.assert_array_equal(scene.read(1, 6)[0], np.where(
        cube.read(1, 6)[1][..., None], cube.values[1:6][..., some], 0
    ))  # fmt: skip
    told = "the run's 3 bands are 3 of the scene's 61, taken as they are; none is resampled"
    assert describe_scene(scene)[-1] == told
    assert (notes_of_bands(scene), bands_read(scene)) == ((), 61)
    # Without the others it is the scene itself, which says so as well.
    alone = replace(cube, bands=replace(cube.bands, good=tuple(n in some for n in range(61))))
    ascending = Bands((True,) * 3, tuple(own[place] for place in sorted(some)))
    assert to_bands(alone, ascending) is alone
    assert notes_of_bands(alone) == (told,)


@pytest.mark.parametrize(
    ("wanted", "widths", "expected"),
    [
        # A quarter of the spacing of the scene's bands, which is less than that of the run's.
        (((502.4, 597.4), (10.0, 10.0)), 10.0, [0, -1]),
        # A quarter of the run's own spacing.
        (((502.4, 506.4), (10.0, 10.0)), 10.0, [-1, -1]),
        # A width that is not known says nothing: the wavelength has to be the same.
        (((500.05, 520.5), None), 10.0, [0, -1]),
        (((500.05, 520.5), (10.0, 10.0)), None, [0, -1]),
        # No band is taken twice, and the nearest of two wanted ones has it.
        (((500.9, 500.1), (10.0, 10.0)), 10.0, [-1, 0]),
        (((510.0, 510.0), (10.0, 10.0)), 10.0, [1, -1]),
        (((510.0, 520.0), (12.4, 12.6)), 10.0, [1, 2]),
        (((510.0, 520.0), (14.0, 7.9)), 10.0, [-1, -1]),
        (((np.nan, 520.0), (10.0, 10.0)), 10.0, [-1, 2]),
    ],
)
def test_counterparts__are_near_and_of_the_same_width(wanted, widths, expected):
    centres = (*np.arange(500.0, 600.0, 10.0), np.nan)
    source = Bands((True,) * 11, centres, widths and (widths,) * 11)
    assert counterparts(source, Bands((True, True), *wanted)).tolist() == expected


def test_counterparts__of_sensors_whose_parts_overlap():
    """Bands at one wavelength are told from each other by their order."""
    source = Bands((True, False, True, True, True), (890.0, 895.0, 900.0, 900.0, 910.0), (9.0,) * 5)
    wanted = Bands((True,) * 3, (900.0, 900.0, 910.0), (9.0,) * 3)
    assert counterparts(source, wanted).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            Bands((True,) * 3),
            r"60 good bands of 61; the run has 3 of 3\. Wavelengths of both",
        ),
        (Bands((True,) * 3, (500.0, np.nan, 600.0)), "Wavelengths of both"),
        (Bands((True,) * 2, (600.0, 1500.0), (9.0, 9.0)), r"near 1 of the run's 2, at 1500 nm"),
    ],
)
def test_resampled__raises_on_what_it_cannot_know(cube, wanted, message):
    with pytest.raises(SceneError, match=message):
        to_bands(cube, wanted)
