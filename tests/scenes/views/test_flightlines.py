from itertools import permutations

import numpy as np
import pytest
import rasterio

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.open import open_scene

CENTRES = tuple(range(450, 930, 40))


@pytest.fixture
def open_lines(tmp_path):
    """Return a function that opens lines of bands of given centres, whose values are a tenth of them."""

    def make(*lines):
        paths = []
        for number, centres in enumerate(lines):
            paths.append(str(tmp_path / f"line{number}.tif"))
            with rasterio.open(
                paths[-1], "w", driver="GTiff", height=4, width=3, count=len(centres), dtype="float32",
                crs="EPSG:32633", transform=rasterio.Affine(10, 0, 5e5, 0, -10, 4.6e6 - 40 * number),
            ) as dataset:  # fmt: skip
                for band, centre in enumerate(centres, 1):
                    dataset.write(np.full((4, 3), centre / 10, np.float32), band)
                    dataset.update_tags(band, wavelength=centre, wavelength_units="nm")
        return open_scene(SceneOptions(path=tuple(paths)), str)

    return make


def without(*missing):
    return tuple(centre for centre in CENTRES if centre not in missing)


def centres_of(scene):
    return [scene.bands.wavelength[place] for place in scene.bands.good_index]


@pytest.mark.parametrize(
    "lines",
    [
        *permutations([CENTRES, without(650, 690)]),
        *permutations([CENTRES, without(450, 490), without(650, 690, 890)]),
        # Each has bands that the other lacks, also side by side, and as many.
        *permutations([without(650), without(690)]),
        *permutations([without(490), without(650, 690)]),
    ],
)
def test_lines__bands_that_one_lacks_are_left_out_of_all(open_lines, lines):
    common = sorted(set(CENTRES).intersection(*lines))
    scene = open_lines(*lines)
    assert centres_of(scene) == common
    assert not any("resampled from" in note for note in scene.notes)
    for first in scene.firsts:
        values, valid = scene.read(first, first + 4)
        assert valid.all()
        np.testing.assert_array_equal(values, np.broadcast_to(np.divide(common, 10), values.shape))
    told = [note for note in scene.notes if "left out of all lines" in note]
    assert len(told) == sum(not set(lines[0]) <= set(line) for line in lines[1:])


def test_lines__say_which_bands_are_left_out_and_why(open_lines):
    note = open_lines(CENTRES, without(650, 690)).notes[1]
    assert note.startswith("2 bands of ")
    assert "line0.tif, at 650, 690 nm, left out of all lines: " in note
    assert note.endswith("line1.tif has no good band there")


def test_lines__of_another_sensor_are_resampled(open_lines):
    """Some of its bands may be the first line's by chance."""
    other = (450, *range(463, 900, 25), 890)
    scene = open_lines(CENTRES, other)
    assert centres_of(scene) == list(CENTRES)
    told = (
        "bands of the first line: 2 taken from another line as they are, 10 resampled from its 20"
    )
    assert any(told in note for note in scene.notes)
    values, _ = scene.read(scene.firsts[1], scene.firsts[1] + 4)
    np.testing.assert_allclose(values[0, 0], np.divide(CENTRES, 10), rtol=1e-2)


WET = tuple(range(450, 2450, 50))
"""Centres of 40 bands; two windows of water vapour lie among them."""


def evenly(count):
    """Return centres of another sensor."""
    return tuple(np.linspace(400, 2500, count).round(1).tolist())


@pytest.mark.parametrize(
    ("second", "missing"),
    [
        (WET, ()),
        (WET[::-1], ()),
        ((*WET[1:], 2450), (450,)),
        ((400, *WET[:-1]), (2400,)),
        (evenly(40), ()),
        (evenly(39), ()),
    ],
)
def test_lines__bands_bad_in_one_are_left_out_by_wavelength(open_lines, second, missing):
    dry = [at for at in WET if not (1350 <= at <= 1430 or 1800 <= at <= 1960)]
    expected = [at for at in dry if at not in missing]
    scene = open_lines(WET, second)
    assert centres_of(scene) == expected
    assert not any("scene.bad_bands" in note or "the run" in note for note in scene.notes)
    for first in scene.firsts:
        values, _ = scene.read(first, first + 4)
        np.testing.assert_allclose(values[0, 0], np.divide(expected, 10), rtol=0.03)


@pytest.fixture
def open_marked(tmp_path):
    """Return a function that opens lines of which each has an order of its bands and a set of bad ones."""

    def make(*lines):
        paths = []
        for number, (centres, bad) in enumerate(lines):
            paths.append(str(tmp_path / f"line{number}.img"))
            np.tile(np.array(centres)[:, None, None], (1, 4, 3)).astype("<f4").tofile(paths[-1])
            good = [int(centre not in bad) for centre in centres]
            (tmp_path / f"line{number}.hdr").write_text(
                f"ENVI\nsamples = 3\nlines = 4\nbands = {len(centres)}\nheader offset = 0\n"
                "data type = 4\ninterleave = bsq\nbyte order = 0\nwavelength units = nanometers\n"
                f"wavelength = {{{', '.join(map(str, centres))}}}\n"
                f"bbl = {{{', '.join(map(str, good))}}}\n"
            )
        return open_scene(SceneOptions(path=tuple(paths)), str)

    return make


@pytest.mark.parametrize("turned", [False, True])
def test_lines__bands_that_a_header_marks_bad_are_left_out_of_all(open_marked, turned):
    """By number where the lines have the same bands in the same order, with the true reason."""
    order = CENTRES[::-1] if turned else CENTRES
    scene = open_marked((CENTRES, {530}), (order, {610}))
    expected = without(530, 610)
    assert centres_of(scene) == list(expected)
    for first in scene.firsts:
        values, _ = scene.read(first, first + 4)
        np.testing.assert_array_equal(values[0, 0], expected)
    assert not any("scene.bad_bands" in note for note in scene.notes)
    if not turned:
        assert "band 3 (530 nm) left out: bad in another line" in scene.notes


def test_lines__raise_if_no_band_is_good_in_all(open_marked):
    with pytest.raises(SceneError, match="none of the 12 bands is good in all lines"):
        open_marked((CENTRES, {*CENTRES[:6]}), (CENTRES, {*CENTRES[6:]}))


def test_lines__raise_if_no_band_is_in_all(open_lines):
    with pytest.raises(
        SceneError, match=r"each of the 12 good bands .* is missing from another line"
    ):
        open_lines(CENTRES, CENTRES[:6], CENTRES[6:])
