import numpy as np
import pytest

from eigenscape import parse_job, plan
from eigenscape.errors import SceneError
from eigenscape.scenes.open import open_scene

CENTRES = [500.0, 765.0, 1340.0, 1380.0, 1430.0, 1431.0, 1900.0, 2500.0]


@pytest.fixture
def job_of(tmp_path, rng):
    """Return a function that gives the job of a scene with these band centres."""
    import rasterio

    def make(centres=CENTRES, scene=None, bad=(), **tables):
        with rasterio.open(
            tmp_path / "s.tif", "w", driver="GTiff", height=9, width=8, count=8, dtype="float32",
            transform=rasterio.Affine(1, 0, 5, 0, -1, 9),
        ) as dataset:  # fmt: skip
            dataset.write(rng.random((8, 9, 8)).astype(np.float32))
            for band, centre in enumerate(centres, 1):
                dataset.update_tags(band, wavelength=centre, wavelength_units="nm")
                dataset.update_tags(band, bbl=int(band not in bad))
        table = {
            "scene": {"path": "s.tif", **(scene or {})},
            "spectrum": {"dimension": 4},
            **tables,
        }
        return parse_job(table, base=tmp_path)

    return make


def good(job):
    return (open_scene(job.scene, job.resolve).bands.good_index + 1).tolist()


def test_windows__water_vapour_is_left_out_by_default_and_said(job_of):
    job = job_of()
    assert good(job) == [1, 2, 3, 6, 8]
    assert (
        "bands 4-5, 7 (1380 to 1900 nm) left out: water vapour (its bands at 1.38 and 1.88 micrometres) "
        'leaves next to no sunlight there (scene.drop_wavelengths = "none" keeps them)'
        in plan(job).notes
    )


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ("none", [1, 2, 3, 4, 5, 6, 7, 8]),
        (["oxygen", "detector-ends"], [1, 3, 4, 5, 6, 7]),
        (["1.3-1.35 um", "water-vapour"], [1, 2, 6, 8]),
        ([], [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_windows__as_the_job_says(job_of, wanted, kept):
    job = job_of(scene={"drop_wavelengths": wanted})
    assert good(job) == kept
    assert plan(job).bands == len(kept)


def test_windows__beside_bad_bands_and_without_wavelengths(job_of):
    assert good(job_of(scene={"bad_bands": [1, 4]})) == [2, 3, 6, 8]
    assert good(job_of(centres=[])) == [1, 2, 3, 4, 5, 6, 7, 8]


def left_out(job):
    return [note for note in plan(job).notes if "left out" in note]


def test_windows__every_band_that_is_left_out_is_told_once_with_its_reason(job_of):
    """Of bands that two reasons leave out the first is told: the job's own, the metadata's, a window."""
    job = job_of(scene={"bad_bands": [1, 4]}, bad=[4, 5])
    named, marked, window = left_out(job)
    assert named.endswith("nm) left out: named in scene.bad_bands")
    assert named.startswith("bands 1, 4 (")
    assert marked == "band 5 (1430 nm) left out: marked as bad in the scene's own metadata"
    assert window.startswith("band 7 (1900 nm) left out: water vapour")
    assert good(job) == [2, 3, 6, 8]
    assert len(left_out(job_of(scene={"bad_bands": [4, 5, 7]}))) == 1
    assert left_out(job_of(centres=[], scene={"bad_bands": [2]})) == [
        "band 2 left out: named in scene.bad_bands"
    ]


def test_windows__are_told_once_of_several_lines(job_of):
    job_of()
    job = job_of(scene={"path": ["s.tif", "s.tif"], "bad_bands": [1]})
    assert good(job) == [2, 3, 6, 8]
    assert [note[:14] for note in left_out(job)] == ["band 1 (500 nm", "bands 4-5, 7 ("]


def test_windows__never_leave_nothing_by_default(job_of):
    job = job_of(centres=[1360 + place for place in range(8)])
    assert len(good(job)) == 8
    assert not any("left out" in note for note in plan(job).notes)


def test_windows__all_bands_of_what_is_published(job_of):
    assert len(good(job_of(preset="halevy-2011"))) == 8
    given = {"drop_wavelengths": ["oxygen"]}
    assert len(good(job_of(preset="halevy-2011", scene=given))) == 7


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["watervapour"], r"not a window\. Did you mean water-vapour"),
        (["1340-1460"], "with their unit"),
        (["3-4 um"], r"drop_wavelengths: '3-4 um' lies outside"),
        (["400-2600 nm"], r"all 8 good bands .* Leave one at least"),
    ],
)
def test_windows__raises_on_what_makes_no_sense(job_of, wanted, message):
    with pytest.raises(SceneError, match=message):
        good(job_of(scene={"drop_wavelengths": wanted}))


def test_windows__raises_where_no_wavelength_is_known(job_of):
    with pytest.raises(SceneError, match=r"no wavelengths.*scene\.bad_bands"):
        good(job_of(centres=[], scene={"drop_wavelengths": ["oxygen"]}))
