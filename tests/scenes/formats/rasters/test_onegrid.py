"""Bands of several resolutions on one grid, patterns and folders as paths."""

import numpy as np
import pytest
import rasterio
from rasterio.transform import Affine

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.files.paths import scene_paths

FINE = Affine(10, 0, 364095, 0, -10, 5809965)
COARSE = Affine(30, 0, 364095, 0, -30, 5809965)


@pytest.fixture
def bands(write, rng):
    """Two bands of 10 m and one of 30 m of the same ground."""
    fine = rng.integers(100, 5000, (2, 12, 18)).astype("u2")
    coarse = rng.integers(100, 5000, (4, 6)).astype("u2")
    fine[0, 0, 0] = 0
    paths = [
        write("B2.tif", fine[0], transform=FINE, nodata=0),
        write("B10.tif", coarse, transform=COARSE, nodata=0),
        write("B11.tif", fine[1], transform=FINE, nodata=0),
    ]
    return fine, coarse, paths


def test_finest__each_fine_pixel_has_the_coarse_one_that_holds_it(bands, scene):
    fine, coarse, paths = bands
    opened = scene(paths)
    assert opened.grid.transform == tuple(FINE)[:6]
    expected = np.stack([fine[0], coarse.repeat(3, axis=0).repeat(3, axis=1), fine[1]], axis=-1)
    for rows in ((0, 12), (5, 7)):
        values, valid = opened.read(*rows)
        told = np.ones((12, 18), bool)
        told[0, 0] = False
        np.testing.assert_array_equal(valid, told[slice(*rows)])
        np.testing.assert_array_equal(values[valid], expected[slice(*rows)][valid])
    assert "10, 30" in " ".join(describe_scene(opened))


@pytest.mark.parametrize("grid", ["coarsest", 30.0])
def test_coarser__means_without_missing_pixels(grid, bands, scene):
    fine, coarse, paths = bands
    opened = scene(paths, grid=grid)
    assert (opened.grid.height, opened.grid.width) == (4, 6)
    assert opened.grid.transform == tuple(COARSE)[:6]
    values, valid = opened.read(0, 4)
    blocks = fine.astype(float).reshape(2, 4, 3, 6, 3)
    blocks[blocks == 0] = np.nan
    means = np.nanmean(blocks, axis=(2, 4))
    assert valid.all()
    np.testing.assert_allclose(values, np.stack([means[0], coarse, means[1]], axis=-1), rtol=1e-6)


@pytest.mark.parametrize(
    ("marked", "besides", "dtype"),
    [
        (-9999, 0, "float32"),
        (0, -9999, "float32"),
        (np.nan, 0, "float32"),
        (0, np.nan, "float32"),
        (-9999, 0, "int16"),
        (0, -9999, "int16"),
    ],
)
def test_coarser__means_without_pixels_of_either_nodata(marked, besides, dtype, write, scene):
    fine = np.arange(1, 49).reshape(6, 8).astype(dtype)
    fine[:, 0] = fine[4, 4] = marked
    fine[2, 3] = fine[5, 5] = fine[4, 5] = fine[5, 4] = besides
    coarse = np.full((3, 4), 7, dtype)
    twenty = FINE @ Affine.scale(2)
    paths = [
        write("a.tif", fine, transform=FINE, nodata=marked),
        write("b.tif", coarse, transform=twenty, nodata=marked),
    ]
    values, valid = scene(paths, grid="coarsest", nodata=besides).read(0, 3)
    blocks = np.where((fine > 0) & (fine < 49), fine, np.nan).reshape(3, 2, 4, 2)
    expected = np.ones((3, 4), bool)
    expected[2, 2] = False
    np.testing.assert_array_equal(valid, expected)
    means = np.nanmean(np.where(expected[:, None, :, None], blocks, 0), axis=(1, 3))
    np.testing.assert_allclose(values[valid][:, 0], means[expected], rtol=1e-6)


@pytest.mark.parametrize("grid", ["finest", "coarsest"])
@pytest.mark.parametrize(
    ("marked", "besides"), [(None, None), (200, None), (None, 200), (200, 201)]
)
def test_alpha_band__leaves_its_pixels_out(grid, marked, besides, write, scene):
    fine = np.arange(1, 49, dtype="uint8").reshape(6, 8)
    opaque = np.full((6, 8), 255, "uint8")
    opaque[:2, :2] = opaque[3, 3] = 0
    missing = opaque == 0
    for place, value in ((4, marked), (5, besides)):
        if value is not None:
            fine[place, place] = value
            missing[place, place] = True
    alpha = {"photometric": "MINISBLACK", "alpha": "yes", "nodata": marked}
    coarse = np.stack([np.full((3, 4), 7, "uint8"), np.full((3, 4), 255, "uint8")])
    coarse[1, 0, 3] = 0
    paths = [
        write("a.tif", np.stack([fine, opaque]), transform=FINE, **alpha),
        write("b.tif", coarse, transform=FINE @ Affine.scale(2), **alpha),
    ]
    for each in (paths, paths[::-1]):
        opened = scene(each, grid=grid, nodata=besides)
        values, valid = opened.read(0, opened.grid.height)
        values = values if each is paths else values[..., ::-1]
        if grid == "finest":
            expected = ~missing
            expected[:2, 6:] = False
            np.testing.assert_array_equal(values[valid][:, 0], fine[expected])
        else:
            expected = np.full((3, 4), True)
            expected[0, 0] = expected[0, 3] = False
            blocks = np.where(missing, np.nan, fine).reshape(3, 2, 4, 2)[:, :, 1:3]
            means = np.nanmean(blocks, axis=(1, 3))
            np.testing.assert_allclose(
                values[:, 1:3, 0][expected[:, 1:3]],
                means.ravel()[expected[:, 1:3].ravel()],
                rtol=1e-6,
            )
        np.testing.assert_array_equal(valid, expected)
        assert (values[valid][:, 1] == 7).all()


def test_nodata__that_the_type_cannot_hold_leaves_the_own_one(write, scene):
    fine = np.arange(1, 49).reshape(6, 8).astype("uint16")
    fine[0, 0] = 0
    half = np.full((3, 2), 7, "uint16")
    paths = [
        write("a.tif", fine, transform=FINE, nodata=0),
        # Reaches over the left half alone.
        write("b.tif", half, transform=FINE @ Affine.scale(2)),
    ]
    values, valid = scene(paths, grid=20, nodata=-9999).read(0, 3)
    np.testing.assert_array_equal(valid, np.arange(4)[None, :].repeat(3, axis=0) < 2)
    assert values[0, 0, 0] == (2 + 9 + 10) / 3


def test_metres__of_another_grid_and_of_what_does_not_reach(write, rng, scene):
    first = rng.integers(1, 100, (12, 18)).astype("f4")
    path = write("a.tif", first, transform=FINE)
    # Reaches over the left half alone, and has no nodata value.
    half = write("b.tif", first[:6, :4] + 1, transform=Affine(20, 0, 364095, 0, -20, 5809965))
    opened = scene([path, half], grid=10)
    valid = opened.read(0, 12)[1]
    np.testing.assert_array_equal(valid, (np.arange(18) < 8)[None, :].repeat(12, axis=0))
    wide = scene([path, half], grid=50)
    assert (wide.grid.height, wide.grid.width) == (3, 4)
    assert wide.grid.transform[:3:2] == (50, 364095)


def test_grids__that_cannot_be_brought_together(write, bands, scene):
    fine, _, paths = bands
    far = write("far.tif", fine[0, :4, :6], transform=Affine(30, 0, 9e5, 0, -30, 5809965))
    with pytest.raises(SceneError, match="do not overlap"):
        scene([paths[0], far])
    other = write("other.tif", fine[0, :4, :6], transform=COARSE, crs="EPSG:32632")
    with pytest.raises(SceneError, match="CRS"):
        scene([paths[0], other])
    shifted = write("shifted.tif", fine[0], transform=FINE @ Affine.translation(0.5, 0))
    with pytest.raises(SceneError, match="transform"):
        scene([*paths, shifted])
    degrees = Affine(1e-4, 0, 13, 0, -1e-4, 52)
    names = [
        write("x.tif", fine[0], transform=degrees, crs="EPSG:4326"),
        write("y.tif", fine[0, :6, :9], transform=degrees @ Affine.scale(2), crs="EPSG:4326"),
    ]
    assert scene(names, grid="coarsest").grid.height == 6
    with pytest.raises(SceneError, match="units are degrees"):
        scene(names, grid=20)


def test_paths__patterns_and_folders_in_the_order_of_numbers(
    bands, write, scene, resolve, tmp_path
):
    _, _, paths = bands
    expected = scene([paths[0], paths[1], paths[2]])
    (tmp_path / "notes.txt").write_text("no band")
    write("labels.tif", np.ones((12, 18), "u1"), transform=FINE)
    for given in ("B*.tif", str(tmp_path), "B[0-9]*.tif"):
        # The labels in the folder are no band.
        opened = scene(given, labels="labels.tif")
        assert "B2.tif, B10.tif, B11.tif" in " ".join(describe_scene(opened))
        assert opened.parts == expected.parts
        assert opened.files == expected.files
    assert scene_paths(SceneOptions(path="B1*.tif"), resolve) == (paths[1], paths[2])
    with pytest.raises(SceneError, match="no file matches"):
        scene("C*.tif")
    # A file of that very name is that file.
    with (
        rasterio.open(paths[0]) as dataset,
        rasterio.open(tmp_path / "B*.tif", "w", **dataset.profile) as odd,
    ):
        odd.write(dataset.read())
    assert len(scene("B*.tif").parts) == 1


@pytest.mark.parametrize(
    ("bands", "layer"),
    [
        ("LC08_L2SP_193023_20220801_20220806_02_T1_SR_B{}.TIF", "SR_B1>QA_PIXEL"),
        ("LC08_L2SP_193023_20220801_20220806_02_T1_SR_B{}.TIF", "SR_B1>ST_B10"),
        ("LC08_L2SP_193023_20220801_20220806_02_T1_SR_B{}.TIF", "SR_B1>SR_QA_AEROSOL"),
        ("LE07_L1TP_193023_20020801_20200806_02_T1_B{}.TIF", "B1>QA_RADSAT"),
        ("T33UVT_20230601T101601_B0{}_20m.jp2", "B01>SCL"),
        ("HLS.L30.T33UVT.2023152T100000.v2.0.B0{}.tif", "B01>Fmask"),
        ("ENMAP01-____L2A-DT1_1-SPECTRAL_IMAGE{}.TIF", "SPECTRAL_IMAGE1>QL_QUALITY_CLOUD"),
    ],
)
def test_paths__layers_of_products_are_no_bands(tmp_path, resolve, bands, layer):
    found = [tmp_path / bands.format(number) for number in (1, 2)]
    other = tmp_path / found[0].name.replace(*layer.split(">"))
    for name in (*found, other):
        name.write_bytes(b"")
    for given in (str(tmp_path), "*"):
        with pytest.raises(SceneError, match=f"1 of its 3 files are not .* {other.name}"):
            scene_paths(SceneOptions(path=given), resolve)
    # A list says what is meant, and so does a pattern of layers alone; labels and masks are apart.
    listed = SceneOptions(path=(str(found[0]), str(other)))
    assert scene_paths(listed, resolve) == (str(found[0]), str(other))
    alone = SceneOptions(path=f"*{layer.partition('>')[2]}*")
    assert scene_paths(alone, resolve) == (str(other),)
    masked = SceneOptions(path=str(tmp_path), mask=(str(other),))
    assert scene_paths(masked, resolve) == tuple(map(str, found))
