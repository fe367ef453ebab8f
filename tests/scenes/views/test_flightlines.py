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
    assert note.endswith("line1.tif does not have them")


def test_lines__of_another_sensor_are_resampled(open_lines):
    """Some of its bands may be the first line's by chance."""
    other = (450, *range(463, 900, 25), 890)
    scene = open_lines(CENTRES, other)
    assert centres_of(scene) == list(CENTRES)
    assert any("10 resampled from its 20" in note for note in scene.notes)
    values, _ = scene.read(scene.firsts[1], scene.firsts[1] + 4)
    np.testing.assert_allclose(values[0, 0], np.divide(CENTRES, 10), rtol=1e-2)


def test_lines__raise_if_no_band_is_in_all(open_lines):
    with pytest.raises(
        SceneError, match=r"each of the 12 good bands .* is missing from another line"
    ):
        open_lines(CENTRES, CENTRES[:6], CENTRES[6:])
