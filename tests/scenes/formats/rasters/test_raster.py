import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.shutil import copy
from rasterio.transform import Affine

from eigenscape.errors import SceneError
from eigenscape.job.jobfile import parse_job
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.open import open_scene
from eigenscape.scenes.types import Grid
from eigenscape.workflow.stages import stage_keys

TRANSFORMS = {
    "north-up": Affine(30, 0, 364095, 0, -30, 5809965),
    "rotated": Affine(26.7, 13.6, 364095, 13.6, -26.7, 5809965),
    "south-up": Affine(30, 0, 364095, 0, 30, 5809365),
}


def rows_columns_bands(cube):
    return cube.transpose(1, 2, 0).astype("float32")


# ENVI's map info has no sign for the direction of rows.
@pytest.mark.parametrize(
    ("driver", "place"),
    [("GTiff", name) for name in TRANSFORMS] + [("ENVI", "north-up"), ("ENVI", "rotated")],
)
def test_grid_and_values_are_those_of_the_file(write, scene, cube, driver, place):
    transform = TRANSFORMS[place]
    path = write("scene.img", cube, driver=driver, transform=transform)
    opened = scene(path)
    with rasterio.open(path) as dataset:
        assert opened.grid.transform == pytest.approx(tuple(dataset.transform)[:6], abs=1e-9)
        assert CRS.from_wkt(opened.grid.crs_wkt) == dataset.crs
    np.testing.assert_allclose(opened.grid.transform, tuple(transform)[:6], rtol=1e-6, atol=1e-6)
    values, valid = opened.read(0, 20)
    assert values.dtype == np.float32
    assert valid.all()
    np.testing.assert_array_equal(values, rows_columns_bands(cube))


@pytest.mark.parametrize("driver", ["GTiff", "ENVI"])
def test_no_georeference_is_none_and_quiet(write, scene, cube, driver, capfd, recwarn):
    opened = scene(write("scene.img", cube, driver=driver, transform=None, crs=None))
    opened.read(0, 3)
    assert (opened.grid.transform, opened.grid.crs_wkt) == (None, None)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def test_symbolic_link__is_read_with_the_files_beside_it(write, cube, tmp_path):
    (tmp_path / "store").mkdir()
    write("store/1.tif", cube, crs=None, transform=None)
    (tmp_path / "a.tif").symlink_to("store/1.tif")
    job = parse_job({"scene": {"path": "a.tif"}}, base=tmp_path)
    assert open_scene(job.scene, job.resolve).grid.transform is None
    (tmp_path / "a.tfw").write_text("30\n0\n0\n-30\n500015\n5999985\n")
    transform = (30, 0, 500000, 0, -30, 6000000)
    assert open_scene(job.scene, job.resolve).grid.transform == transform


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_symbolic_link__to_a_vrt_finds_the_sources_beside_the_vrt(write, cube, tmp_path):
    """As in GDAL, which follows links to its VRTs alone."""
    (tmp_path / "store").mkdir()
    copy(write("store/1.tif", cube), tmp_path / "store" / "1.vrt", driver="VRT")
    (tmp_path / "a.vrt").symlink_to("store/1.vrt")
    job = parse_job({"scene": {"path": "a.vrt"}}, base=tmp_path)
    assert open_scene(job.scene, job.resolve).bands.count == len(cube)
    assert stage_keys(job)["ingest"]


def test_ground_control_points_alone_give_no_transform(write, scene, cube):
    points = [
        rasterio.control.GroundControlPoint(row, col, col + row, row)
        for row, col in ((0, 0), (0, 9), (9, 0), (9, 9))
    ]

    def place(dataset):
        dataset.gcps = (points, CRS.from_epsg(32633))

    path = write("gcp.tif", cube, transform=None, crs=None, after=place)
    opened = scene(path)
    assert opened.grid.transform is None
    assert "4 ground control points (GCPs) alone" in opened.notes[0]
    assert len(opened.grid.ties.points) == 4
    assert Grid.from_json(opened.grid.to_json()) == opened.grid


@given(start=st.integers(0, 19), height=st.integers(1, 20))
@settings(max_examples=15, deadline=None)
def test_windows_agree_with_the_whole(tmp_path_factory, start, height):
    stop = min(20, start + height)
    path = tmp_path_factory.mktemp("windows") / "scene.tif"
    cube = np.random.default_rng(1).normal(size=(4, 20, 7)).astype("float32")
    cube[2, 5:9] = -9
    with rasterio.open(path, "w", driver="GTiff", count=4, height=20, width=7, dtype="float32",
                       nodata=-9, crs="EPSG:32633", transform=TRANSFORMS["rotated"],
                       blockysize=3) as dataset:  # fmt: skip
        dataset.write(cube)
    from eigenscape.scenes.formats.rasters.raster import open_raster_scene

    opened = open_raster_scene([str(path)])
    assert opened.row_step == 3
    whole, part = opened.read(0, 20), opened.read(start, stop)
    for one, other in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one[start:stop], other)


def test_scene_pickles_small(write, scene, cube):
    opened = scene(write("scene.tif", cube))
    data = pickle.dumps(opened)
    assert len(data) < 5000
    np.testing.assert_array_equal(pickle.loads(data).read(2, 5)[0], opened.read(2, 5)[0])


def test_missing_values_make_a_pixel_invalid_and_zero(write, scene, cube):
    array = cube.astype("float32")
    array[0, 1, 2], array[3, 4, 5], array[4, 6, 7] = -99999, math.nan, math.inf
    values, valid = scene(write("scene.tif", array, nodata=-99999)).read(0, 20)
    wrong = {(1, 2), (4, 5), (6, 7)}
    assert set(zip(*np.nonzero(~valid), strict=True)) == wrong
    assert all((values[place] == 0).all() for place in wrong)
    _, without_band_4 = scene(str(write("scene.tif", array, nodata=-99999)), bad_bands=[4]).read(
        0, 20
    )
    assert without_band_4[4, 5]


def test_nodata_option_adds_to_the_metadata(write, scene, cube):
    cube[0, 0, 0], cube[1, 0, 1] = -1, -2
    _, valid = scene(write("scene.tif", cube, nodata=-1), nodata=-2).read(0, 1)
    assert valid[0, :3].tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_extreme_nodata(write, scene, dtype):
    lowest = np.iinfo(dtype).min if dtype == "int16" else np.finfo(dtype).min
    array = np.ones((2, 3, 4), dtype)
    array[1, 2, 3] = lowest
    _, valid = scene(write("scene.tif", array, nodata=lowest)).read(0, 3)
    assert valid.sum() == 11


def test_nodata_outside_the_type_marks_nothing(write, scene, tmp_path):
    write("scene.tif", np.zeros((1, 3, 4), "uint8"))
    (tmp_path / "s.vrt").write_text(
        '<VRTDataset rasterXSize="4" rasterYSize="3"><VRTRasterBand dataType="Byte" band="1">'
        "<NoDataValue>-9999</NoDataValue><SimpleSource><SourceFilename relativeToVRT='1'>scene.tif"
        "</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    assert scene("s.vrt").read(0, 3)[1].all()


def test_lists_of_another_length__are_told(write, scene, cube):
    def tag(dataset):
        dataset.update_tags(bbl="{1, 1, 0, 1}", wavelength="{1, 2, 3, 4, 5}", fwhm="{}")

    opened = scene(write("tagged.tif", cube, after=tag))
    assert all(opened.bands.good)
    assert opened.notes == ("tagged.tif: bbl has 4 entries for 5 bands: ignored",)


@pytest.mark.parametrize("nodata", [None, -5])
def test_alpha_band_of_many_bands__masks_its_pixels(write, scene, cube, nodata):
    opaque = np.full((1, 20, 13), 255, "int16")
    opaque[0, 3:5, 2:7] = 0
    # GDAL takes the first band after the grey one for it.
    bands = np.concatenate([cube[:1], opaque, cube[1:]])
    path = write("many.tif", bands, photometric="MINISBLACK", alpha="yes", nodata=nodata)
    opened = scene(path)
    values, valid = opened.read(0, 20)
    np.testing.assert_array_equal(valid, opaque[0] > 0)
    assert values.shape == (20, 13, 5)
    assert "band 2 left out: alpha band" in opened.notes[0]


@pytest.mark.parametrize("nodata", [None, 7])
@pytest.mark.parametrize("with_alpha", [(0, 1, 2), (0,), (1, 2)])
def test_list_of_files__alpha_bands_mask_and_are_no_bands(write, scene, cube, with_alpha, nodata):
    plain, paths = [], []
    valid = np.isin(cube[:3], [7], invert=True).all(axis=0) if nodata else np.full((20, 13), True)
    for band in range(3):
        opaque = np.full((20, 13), 255, "int16")
        opaque[band, 2:7] = 0
        plain.append(write(f"plain{band}.tif", cube[band], nodata=nodata))
        if band in with_alpha:
            alpha = {"photometric": "MINISBLACK", "alpha": "yes", "nodata": nodata}
            paths.append(write(f"alpha{band}.tif", np.stack([cube[band], opaque]), **alpha))
            valid &= opaque > 0
        else:
            paths.append(plain[-1])
    opened, expected = scene(paths), scene(plain)
    assert opened.bands == expected.bands
    values, given = opened.read(0, 20)
    np.testing.assert_array_equal(given, valid)
    np.testing.assert_array_equal(values[valid], expected.read(0, 20)[0][valid])
    note = f"{len(with_alpha)} of 3 files have an alpha band: it marks missing pixels"
    assert note in opened.notes
    # A number is that of a file.
    left = scene(paths, bad_bands=[2]).read(0, 20)[0]
    np.testing.assert_array_equal(left[valid], values[valid][:, [0, 2]])


def test_mask_of_the_file_and_alpha_band(write, scene, cube):
    keep = np.ones((20, 13), bool)
    keep[3, 4] = False
    path = write("internal.tif", cube, after=lambda dataset: dataset.write_mask(keep))
    np.testing.assert_array_equal(scene(path).read(0, 20)[1], keep)

    rgba = np.full((4, 20, 13), 200, "uint8")
    rgba[3] = keep * 255
    opened = scene(write("alpha.tif", rgba, photometric="RGB", alpha="YES"))
    assert opened.bands.good == (True, True, True, False)
    np.testing.assert_array_equal(opened.read(0, 20)[1], keep)


def test_scale_and_offset(write, scene, cube):
    def scaled(dataset):
        dataset.scales = [0.001 * band for band in range(1, 6)]
        dataset.offsets = [0.5, 0, 0, 0, -1]

    path = write("scaled.tif", cube, after=scaled)
    expected = rows_columns_bands(cube) * [0.001, 0.002, 0.003, 0.004, 0.005] + [0.5, 0, 0, 0, -1]
    np.testing.assert_allclose(scene(path).read(0, 20)[0], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(scene(path, scale=2.0).read(0, 20)[0], rows_columns_bands(cube) * 2)


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("Nanometers", 1),
        ("Micrometers", 1e-3),
        ("um", 1e-3),
        ("Angstroms", 10),
        (None, 1e-3),
        (None, 1),
    ],
)
@pytest.mark.parametrize("place", ["band tags", "ENVI domain"])
def test_wavelengths_in_nanometres(write, scene, cube, place, unit, factor):
    nm, fwhm = np.array([400, 500, 900, 1500, 2400]), np.array([6, 7, 8, 9, 10])

    columns = {"wavelength": nm * factor, "fwhm": fwhm * factor, "bbl": [1, 1, 0, 1, 1]}

    def tags(dataset):
        if place == "band tags":
            more = {"wavelength_units": unit} if unit else {}
            for band in range(5):
                one = {key: values[band] for key, values in columns.items()}
                dataset.update_tags(band + 1, **one, **more)
        else:
            more = {"wavelength units": unit} if unit else {}
            listed = {k: "{" + ", ".join(map(str, v)) + "}" for k, v in columns.items()}
            dataset.update_tags(ns="ENVI", **listed, **more)

    bands = scene(write("tagged.tif", cube, after=tags)).bands
    assert bands.wavelength == pytest.approx(nm)
    assert bands.fwhm == pytest.approx(fwhm)
    assert bands.good == (True, True, False, True, True)
    assert bands.count == 4


@pytest.mark.parametrize("unit", ["Wavenumber", "cm-1", "1/cm", "THz"])
def test_numbers_of_another_unit_are_no_wavelengths(write, scene, cube, unit):
    listed = {"wavelength": "{900, 1000, 1400, 1850, 4000}", "wavelength units": unit}
    path = write("s.tif", cube, after=lambda dataset: dataset.update_tags(ns="ENVI", **listed))
    opened = scene(path)
    assert opened.bands.wavelength is None
    assert opened.bands.count == 5
    told = f"wavelengths are not known: their unit, {unit!r}, is not a length"
    assert told in str(describe_scene(opened))


def test_envi_header(write, scene, cube, tmp_path):
    path = write("scene.bsq", cube, driver="ENVI")
    with open(tmp_path / "scene.hdr", "a") as header:
        header.write(
            "wavelength units = Micrometers\nwavelength = {0.4, 0.5, 0.6,\n 1.4, 2}\n"
            "fwhm = {0.01, 0.01, 0.01, 0.01, 0.02}\nbbl = {1, 1, 1, 0, 1}\n"
            f"data ignore value = {cube[0, 0, 0]}\nreflectance scale factor = 10000\n"
        )
    opened = scene(path)
    assert opened.bands.wavelength == pytest.approx((400, 500, 600, 1400, 2000))
    assert opened.bands.good == (True, True, True, False, True)
    assert {Path(name).name for name in opened.files} >= {"scene.bsq", "scene.hdr"}
    values, valid = opened.read(0, 20)
    assert not valid[0, 0]
    np.testing.assert_allclose(
        values[valid], rows_columns_bands(cube)[valid][:, [0, 1, 2, 4]] / 1e4, rtol=1e-6
    )


@pytest.mark.parametrize("key", ["major frame offsets", "minor frame offsets"])
def test_envi_header__bytes_between_frames_are_refused(write, scene, cube, tmp_path, key):
    path = write("image.img", cube, driver="ENVI")
    header = tmp_path / "image.hdr"
    plain = header.read_text()
    header.write_text(f"{plain}{key} = {{ 0, 0}}\n")
    np.testing.assert_array_equal(scene(path).read(0, 20)[0], cube.transpose(1, 2, 0))
    header.write_text(f"{plain}{key} = {{ 16, 0}}\n")
    with pytest.raises(SceneError, match=f"{key} = {{ 16, 0}}"):
        scene(path)


def test_envi_header__numbers_in_braces(write, scene, cube, tmp_path):
    cube[:, 3, 4] = -9999
    path = write("image.img", cube, driver="ENVI")
    with (tmp_path / "image.hdr").open("a") as header:
        header.write("data ignore value = {-9999}\nreflectance scale factor = { 1e4 }\n")
    values, valid = scene(path).read(0, 20)
    assert np.argwhere(~valid).tolist() == [[3, 4]]
    np.testing.assert_allclose(values[valid], cube.transpose(1, 2, 0)[valid] / 1e4, rtol=1e-6)


def test_imagery_domain_of_gdal(write, scene, cube):
    def tags(dataset):
        for band in range(1, 6):
            dataset.update_tags(
                band, ns="IMAGERY", CENTRAL_WAVELENGTH_UM=f"0.{band}00", FWHM_UM="0.010"
            )

    bands = scene(write("imagery.tif", cube, after=tags)).bands
    assert bands.wavelength == pytest.approx((100, 200, 300, 400, 500))
    assert bands.fwhm == pytest.approx((10,) * 5)


def test_names_and_unknown_metadata(write, scene, cube):
    bands = scene(write("plain.tif", cube)).bands
    assert (bands.wavelength, bands.fwhm, bands.names) == (None, None, None)
    path = write("named.tif", cube, after=lambda dataset: dataset.set_band_description(2, "red"))
    assert scene(path).bands.names == ("", "red", "", "", "")


@pytest.mark.parametrize(
    ("photometric", "count", "colors"),
    [("RGB", 3, (0, 1, 2)), ("RGB", 4, (0, 1, 2)), ("MINISBLACK", 3, None)],
)
def test_colors_are_the_bands_that_gdal_calls_so(write, scene, photometric, count, colors):
    options = {"photometric": photometric, **({"alpha": "yes"} if count == 4 else {})}
    path = write("p.tif", np.full((count, 4, 5), 255, np.uint8), **options)
    found = scene(path)
    assert found.bands.colors == colors
    assert found.bands.count == 3


def test_list_of_files_is_one_scene(write, scene, cube):
    paths = [write(f"b{i}.tif", band, nodata=-i - 1) for i, band in enumerate(cube)]
    paths[1] = write("b1.tif", cube[1].astype("float32"))
    opened = scene(paths, bad_bands=[4])
    np.testing.assert_array_equal(
        opened.read(3, 9)[0], rows_columns_bands(cube)[3:9][..., [0, 1, 2, 4]]
    )
    assert set(opened.files) == set(paths)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"transform": Affine(30, 0, 364125, 0, -30, 5809965)}, "transform"),
        ({"crs": "EPSG:32632"}, "CRS"),
        ({"crs": None}, "CRS"),
        ({"array": np.zeros((19, 13), "int16")}, "size"),
        ({"array": np.zeros((2, 20, 13), "int16")}, "2 bands"),
    ],
)
def test_list_of_files__refuses_another_grid(write, scene, cube, change, word):
    first = write("first.tif", cube[0])
    second = write("second.tif", change.pop("array", cube[1]), **change)
    with pytest.raises(SceneError, match=word) as caught:
        scene([first, second])
    assert "second.tif" in str(caught.value)


def test_mask_leaves_pixels_out(write, scene, cube, tmp_path):
    path = write("scene.tif", cube)
    keep = np.ones((20, 13), "float32")
    keep[0, 0], keep[1, 1], keep[2, 2] = 0, math.nan, -7
    expected = np.ones((20, 13), bool)
    expected[[0, 1, 2], [0, 1, 2]] = False
    raster = write("mask.tif", keep, nodata=-7)
    opened = scene(path, mask=raster)
    values, valid = pickle.loads(pickle.dumps(opened)).read(0, 20)
    np.testing.assert_array_equal(valid, expected)
    assert (values[~valid] == 0).all()
    assert raster in opened.files
    write("header.img", keep, driver="ENVI", nodata=-7)
    np.testing.assert_array_equal(scene(path, mask="header.hdr").read(0, 20)[1], expected)
    np.save(tmp_path / "mask.npy", expected)
    np.testing.assert_array_equal(scene(path, mask="mask.npy").read(1, 20)[1], expected[1:])


def test_mask__refuses_another_grid(write, scene, cube):
    path = write("scene.tif", cube)
    with pytest.raises(SceneError, match=r"19 x 13.*20 x 13.*lies on another grid.*gdalwarp"):
        scene(path, mask=write("small.tif", np.ones((19, 13), "uint8")))
    elsewhere = write("else.tif", np.ones((20, 13), "uint8"), transform=TRANSFORMS["rotated"])
    with pytest.raises(SceneError, match="lies elsewhere"):
        scene(path, mask=elsewhere)


def test_mask__another_coordinate_system_is_named(write, scene, cube):
    mask = write("mask.tif", np.ones((20, 13), "uint8"), crs="EPSG:32632")
    with pytest.raises(
        SceneError, match="lies elsewhere: coordinate system EPSG:32632 against EPSG:32633"
    ):
        scene(write("scene.tif", cube), mask=mask)


def test_mask__rows_that_run_the_other_way_are_read(write, scene, cube):
    mask = write("mask.tif", (cube[0] % 2)[::-1], transform=TRANSFORMS["south-up"])
    _, valid = scene(write("scene.tif", cube), mask=mask).read(3, 20)
    np.testing.assert_array_equal(valid, cube[0, 3:] % 2 == 1)


def test_all_bands_bad(write, scene, cube):
    with pytest.raises(SceneError, match=r"all 5 bands are bad.*Leave at least one"):
        scene(write("scene.tif", cube), bad_bands=["1-5"])
