import numpy as np
import pytest

from eigenscape import parse_job, plan
from eigenscape.errors import InputError
from eigenscape.features.spectral.preparation import find_preparation
from eigenscape.job.options import SpectralOptions
from eigenscape.scenes.types import Bands
from harness import Harness
from references import prepared_spectra

WAVELENGTH = np.array([410.0, 455, 520, 640, 560, 700, 900, 880])
"""Two detectors that overlap: 640 before 560 nm, 900 before 880 nm."""

STEPS = [
    {"normalize": True},
    {"continuum": True},
    {"derivative": True},
    {"continuum": True, "normalize": True, "derivative": True},
]


@pytest.fixture
def spectra(rng):
    values = rng.uniform(-0.1, 1, (700, 8))
    values[3] = 0
    values[4] = -1
    return values.astype(np.float32)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("known", [True, False])
def test_preparation__equals_hull_norm_and_gradient_of_numpy(spectra, steps, known):
    wavelength = WAVELENGTH if known else None
    bands = Bands((True,) * 8, tuple(WAVELENGTH) if known else None)
    found = find_preparation(SpectralOptions(**steps), bands)
    np.testing.assert_allclose(
        found(spectra), prepared_spectra(spectra, wavelength, steps), rtol=2e-6, atol=1e-7
    )
    # A sample is prepared alike wherever blocks end.
    np.testing.assert_array_equal(found(spectra)[10:17], found(spectra[10:17]))


def test_preparation__adds_the_origin_again(spectra):
    origin = np.linspace(1e4, 2e4, 8)
    bands = Bands((True,) * 8, tuple(WAVELENGTH))
    found = find_preparation(SpectralOptions(continuum=True), bands, origin)
    whole = spectra.astype(np.float64) + origin
    np.testing.assert_allclose(
        found(spectra), prepared_spectra(whole, WAVELENGTH, {"continuum": True}), rtol=1e-6
    )


@pytest.mark.parametrize("method", ["none", "pca", "mnf", "random-projection"])
def test_features_stage__computes_from_prepared_spectra(tmp_path, spectra, method):
    steps = {"continuum": True, "derivative": True}
    bands = {"good": [True] * 7 + [False, True], "wavelength": [*WAVELENGTH[:7], 750.0, 880.0]}
    grid = {"height": 35, "width": 20, "crs_wkt": None, "transform": None}

    def features(values, **spectral):
        options = {"method": method, **({} if method == "none" else {"dimension": 3})}
        harness = Harness(tmp_path / str(len(spectral)), features={**options, **spectral})
        arrays = {"samples/values": values, "samples/pixel": np.arange(700)}
        harness.put("ingest", arrays, grid=grid, bands=bands)
        harness.run("features")
        return harness["features/values"]

    before = prepared_spectra(spectra, WAVELENGTH, steps).astype(np.float32)
    np.testing.assert_allclose(
        features(spectra, spectral=steps), features(before), rtol=1e-4, atol=1e-4
    )


def test_preparation__nothing_to_do_leaves_samples_as_they_are():
    bands = Bands((True, True))
    assert find_preparation(None, bands) is None
    assert find_preparation(SpectralOptions(), bands, sparse=True) is None


def test_preparation__raises_on_what_is_no_spectrum():
    with pytest.raises(InputError, match=r"sparse table.*neighbors\.metric"):
        find_preparation(SpectralOptions(normalize=True), Bands((True,) * 3), sparse=True)
    with pytest.raises(InputError, match="one good band"):
        find_preparation(SpectralOptions(derivative=True), Bands((True, False)))
    twice = Bands((True, False, True, True), (500.0, 1, 600, 500))
    with pytest.raises(InputError, match=r"bands 1 and 4 .* 500 nm.*bad_bands = \[4\]"):
        find_preparation(SpectralOptions(continuum=True), twice)


def test_plan__says_what_is_done_to_spectra(tmp_path, rng):
    np.save(tmp_path / "cube.npy", rng.random((9, 8, 5)).astype(np.float32))
    job = parse_job(
        {
            "scene": {"path": "cube.npy"},
            "features": {"spectral": {"continuum": True, "derivative": True}},
            "spectrum": {"dimension": 4},
        },
        base=tmp_path,
    )
    assert (
        "every spectrum is divided by its convex hull, replaced by its slope per band; over band "
        "numbers, wavelengths are not known" in plan(job).notes
    )
