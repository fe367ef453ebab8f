"""Products of the true structure: the same values as the file has, read directly; masks, bands, places."""

import pickle
import re
import shutil
import tarfile
from functools import partial

import h5py
import numpy as np
import pytest
import rasterio

from eigenscape import load_job, run
from eigenscape.errors import SceneError
from eigenscape.job.scene import UNSAFE
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.types import Geolocation, LookupArray, geolocation_of
from inputs import products
from inputs.sensors import cells

WRITERS = {
    "emit": products.emit,
    "enmap": products.enmap,
    "prisma": products.prisma,
    "landsat": products.landsat,
    "sentinel2": products.sentinel2,
    "neon": products.neon,
    "aviris": products.aviris,
    "envi": products.envi,
    "desis": products.desis,
    "pace": products.pace,
    "emit-l1b": partial(products.emit, level="L1B"),
    "emit-masks-2": partial(products.emit, mask=2, packed="u8"),
    "aviris-classic": products.classic,
    "hyspex-raw": products.hyspex,
    "pace-3.2": partial(products.pace, version="3.2"),
}


@pytest.fixture
def scene(scene):
    """Open a product with all bands that it does not mark itself."""
    return partial(scene, drop_wavelengths="none")


def check(opened, product, *, flagged=UNSAFE):
    """Compare a scene with what was written, in two windows."""
    opened = pickle.loads(pickle.dumps(opened))
    height = opened.grid.height
    assert (height, opened.grid.width) == product.valid.shape
    parts = [opened.read(0, 5), opened.read(5, height)]
    values, valid = (np.concatenate(both) for both in zip(*parts, strict=True))
    expected = product.valid.copy()
    for flag in flagged:
        expected &= ~product.flags.get(flag, np.zeros_like(expected))
    np.testing.assert_array_equal(valid, expected)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values[valid], product.values[valid], rtol=2e-6, atol=1e-7)
    assert (values[~valid] == 0).all()
    good = opened.bands.good_index
    np.testing.assert_allclose(
        np.array(opened.bands.wavelength)[good], product.wavelength, rtol=1e-6
    )
    assert len(opened.bands.good) - len(good) == product.dropped
    return opened


@pytest.mark.parametrize("name", WRITERS)
def test_product__values_flags_and_wavelengths_as_written(name, tmp_path, scene):
    product = WRITERS[name](tmp_path)
    opened = check(scene(str(product.path)), product)
    for flag in product.flags:
        check(scene(str(product.path), mask=flag), product, flagged=(flag,))
    if product.flags:
        check(scene(str(product.path), mask="none"), product, flagged=())
    told = " ".join(describe_scene(opened))
    assert f"{opened.bands.count} of {len(opened.bands.good)} bands" in told
    assert all(flag in told for flag in product.flags if flag in UNSAFE)
    if product.dropped:
        assert "dropped" in told


JOBS = {
    **WRITERS,
    "enmap-l1b": partial(products.enmap, level="L1B"),
    "aviris-l1b": partial(products.aviris, ortho=False),
    "hyspex": partial(products.envi, name="line03_VNIR.img", lookup="igm", sensor="HySpex"),
}


@pytest.mark.mostly_exhaustive(8)
@pytest.mark.mostly_slow(4)
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("name", JOBS)
def test_product__two_line_job_to_maps_on_the_right_ground(name, tmp_path):
    product = JOBS[name](tmp_path / "product")
    known = products.truth(*product.valid.shape)
    np.save(tmp_path / "labels.npy", known.astype("u1"))
    job = tmp_path / "job.toml"
    job.write_text(f'scene.path = "{product.path}"\nscene.labels = "labels.npy"\n')
    few = [
        "spectrum.dimension=5", "learn.method=centroid-angle", "learn.train=0.3", "neighbors.k=6",
        'output.formats=["geotiff", "report"]',
    ]  # fmt: skip
    run(load_job(job, few), run_dir=tmp_path / "run")
    with rasterio.open(tmp_path / "run/outputs/class_map.tif") as classes:
        calls, transform, crs = classes.read(1), classes.transform, classes.crs
    if product.place is not None:
        # What the map has where each pixel is: a known point for every pixel.
        column, row = (np.floor(axis).astype(int) for axis in cells(transform, *product.place))
        assert crs.to_epsg() == (4326 if product.place[0].max() < 360 else 32633)
        calls = calls[row, column]
    expected = product.valid.copy()
    for flag in UNSAFE:
        expected &= ~product.flags.get(flag, np.zeros_like(expected))
    np.testing.assert_array_equal(calls > 0, expected)
    assert (calls == known)[expected].mean() > 0.95
    page = (tmp_path / "run/outputs/report.html").read_text(encoding="utf-8")
    assert product.path.name in page


def test_emit__agrees_with_h5py_and_knows_its_lookup(tmp_path, scene):
    product = products.emit(tmp_path)
    opened = scene(str(product.path))
    assert opened.grid.transform is None
    with h5py.File(product.path) as file:
        stored = file["reflectance"][()][
            ..., file["sensor_band_parameters/good_wavelengths"][()] == 1
        ]
    values, valid = opened.read(0, opened.grid.height)
    np.testing.assert_array_equal(values[valid], stored[valid])
    found = geolocation_of(opened)
    name = str(product.path)
    assert found == Geolocation(
        "glt", *(LookupArray(name, f"location/glt_{axis}", -9999.0) for axis in "xy"),
        found.crs_wkt, (5e-4, 0.0, 12.99875, 0.0, -5e-4, 52.00025),
    )  # fmt: skip
    assert rasterio.crs.CRS.from_wkt(found.crs_wkt).to_epsg() == 4326
    # The folder of the granule is the same scene; without the mask file nothing is masked.
    check(scene(str(tmp_path)), product)
    for mask in tmp_path.glob("*MASK*"):
        mask.unlink()
    assert "no clouds are masked" in " ".join(describe_scene(scene(name)))
    check(scene(name), product, flagged=())


@pytest.mark.parametrize("level", ["L1B", "L1C", "L2A"])
def test_enmap__levels_and_ways_to_name_them(level, tmp_path, scene):
    product = products.enmap(tmp_path / "folder", level)
    stem = product.path / product.path.name
    opened = check(scene(f"{stem}-METADATA.XML"), product)
    archive = products.zipped(product.path, tmp_path / "dims_op_oc_1.zip")
    check(scene(str(archive)), product)
    assert set(scene(str(archive)).files) == {str(archive)}
    if level != "L1B":
        check(scene(f"{stem}-SPECTRAL_IMAGE.TIF"), product)
        with rasterio.open(f"{stem}-SPECTRAL_IMAGE.TIF") as dataset:
            assert opened.grid.transform == tuple(dataset.transform)[:6]
            assert opened.grid.crs_wkt == dataset.crs.to_wkt()
        with pytest.raises(SceneError, match=r"one image of both detectors"):
            scene(str(product.path), variable="SWIR")
        return
    # The detectors are not registered onto each other: one of them is the scene.
    assert opened.grid.transform is None
    other = scene(str(product.path), variable="SWIR")
    assert min(np.array(other.bands.wavelength)) == pytest.approx(905)
    assert scene(f"{stem}-SPECTRAL_IMAGE_SWIR.TIF").bands == other.bands


def test_enmap__bands_without_a_number_are_left_out(tmp_path, scene):
    product = products.enmap(tmp_path)
    opened = scene(str(product.path))
    assert [number for number, good in enumerate(opened.bands.good) if not good] == [8, 9]
    assert "2 bands" in " ".join(describe_scene(opened))
    # Without the statistics nothing tells of them, and every pixel lacks a number.
    (metadata,) = product.path.glob("*-METADATA.XML")
    metadata.write_text(metadata.read_text().replace("bandStatistics", "otherStatistics"))
    assert not scene(str(product.path)).read(0, 5)[1].any()
    assert scene(str(product.path), bad_bands=["9-10"]).read(4, 5)[1].any()


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_enmap__saturation_of_one_detector(tmp_path, scene):
    product = products.enmap(tmp_path, "L1B")
    other = scene(str(product.path), variable="SWIR", mask="saturated")
    expected = product.valid & ~products.marks(row=10)
    np.testing.assert_array_equal(other.read(0, other.grid.height)[1], expected)


def test_enmap__cloud_optimised_copies_of_the_portals(tmp_path, scene):
    product = products.enmap(tmp_path)
    for image in product.path.glob("*.TIF"):
        image.rename(image.with_name(f"{image.stem}_COG.tiff"))
    check(scene(str(product.path)), product)
    check(scene(f"{product.path / product.path.name}-SPECTRAL_IMAGE_COG.tiff"), product)


@pytest.mark.parametrize("centres", [True, False])
def test_prisma__corners_are_told_by_their_distance(centres, tmp_path, scene):
    product = products.prisma(tmp_path, by_centres=centres)
    opened = check(scene(str(product.path)), product)
    west, north = products.PLACE
    np.testing.assert_allclose(opened.grid.transform, (30, 0, west, 0, -30, north))
    assert rasterio.crs.CRS.from_wkt(opened.grid.crs_wkt).to_epsg() == 32633
    archive = products.zipped(tmp_path, tmp_path.parent / "prisma.zip", inside=False)
    check(scene(str(archive)), product)


@pytest.mark.parametrize("xml", [True, False])
def test_landsat__folder_tar_and_mtl(xml, tmp_path, scene):
    product = products.landsat(tmp_path / "folder", xml=xml)
    with tarfile.open(tmp_path / "scene.tar", "w") as archive:
        for file in product.path.iterdir():
            archive.add(file, file.name)
    check(scene(str(tmp_path / "scene.tar")), product)
    # As "tar cf again.tar ." packs it.
    with tarfile.open(tmp_path / "again.tar", "w") as archive:
        archive.add(product.path, arcname=".")
    check(scene(str(tmp_path / "again.tar")), product)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.add(product.path, arcname=product.path.name)
    with pytest.raises(SceneError, match=r"compressed tar file.*Unpack it"):
        scene(str(tmp_path / "packed.tar.gz"))
    check(scene(str(next(product.path.glob("*_MTL.*")))), product)
    opened = scene(str(product.path))
    with rasterio.open(next(product.path.glob("*_SR_B5.TIF"))) as dataset:
        stored = dataset.read(1)
    values, valid = opened.read(0, opened.grid.height)
    np.testing.assert_allclose(values[valid][:, 4], stored[valid] * 0.0000275 - 0.2, rtol=1e-5)


def test_landsat__bits_of_tm(tmp_path, scene):
    product = products.landsat(tmp_path, tm=True)
    for flag in product.flags:
        check(scene(str(product.path), mask=flag), product, flagged=(flag,))
    told = " ".join(describe_scene(check(scene(str(product.path)), product)))
    assert "not masked" not in told
    with pytest.raises(SceneError, match=r'does not mark "cirrus"'):
        scene(str(product.path), mask="cirrus")


def test_sentinel2__names_and_tags_of_the_first_baselines(tmp_path, scene):
    product = products.sentinel2(tmp_path, driver="GTiff", early=True)
    check(scene(str(product.path)), product)
    # Without a spacecraft that is known the wavelengths are not.
    metadata = product.path / "MTD_MSIL2A.xml"
    metadata.write_text(metadata.read_text().replace("Sentinel-2A", "Sentinel-2"))
    assert scene(str(product.path)).bands.wavelength is None


@pytest.mark.parametrize("level", ["L2A", "L1C"])
def test_sentinel2__three_resolutions_on_one_grid(level, tmp_path, scene):
    product = products.sentinel2(tmp_path, level, driver="GTiff")
    opened = check(scene(str(product.path)), product)
    assert opened.grid.transform == (10, 0, products.PLACE[0], 0, -10, products.PLACE[1])
    archive = products.zipped(product.path, tmp_path / "safe.zip")
    check(scene(str(archive)), product)
    check(scene(str(product.path / f"MTD_MSI{level}.xml")), product)
    # On the coarsest grid: means of what is there; a pixel with nothing there is missing.
    coarse = scene(str(product.path), grid="coarsest", mask="none")
    assert (coarse.grid.height, coarse.grid.transform[0]) == (4, 60)
    values, valid = coarse.read(0, 4)
    means = product.values.reshape(4, 6, 4, 6, -1).mean(axis=(1, 3))
    np.testing.assert_array_equal(valid, ~np.eye(4, dtype=bool) | (np.arange(4) > 0))
    np.testing.assert_allclose(values[valid], means[valid], atol=2e-5)
    assert "20" in " ".join(describe_scene(coarse))


def test_sentinel2__means_without_nodata_of_the_job(tmp_path, scene):
    product = products.sentinel2(tmp_path, driver="GTiff")
    path = next(product.path.rglob("*_B02_10m.tif"))
    with rasterio.open(path, "r+") as dataset:
        stored = dataset.read(1)
        stored[6:12, 6:12] = 1000
        stored[6, 6] = 60000
        dataset.write(stored, 1)
    opened = scene(str(product.path), grid=60, nodata=60000, mask="none", scale=1.0)
    band = opened.bands.names.index("B02")
    values, valid = opened.read(1, 2)
    assert valid[0, 1]
    assert values[0, 1, band] == 1000


def test_products__bad_bands_scale_and_nodata_of_the_job(tmp_path, scene):
    product = products.landsat(tmp_path)
    opened = scene(str(product.path), bad_bands=["1-2", "2000-2300 nm"], scale=1.0, mask="none")
    assert opened.bands.good == (False, False, True, True, True, True, False)
    with rasterio.open(next(product.path.glob("*_SR_B3.TIF"))) as dataset:
        stored = dataset.read(1)
    values, valid = opened.read(0, opened.grid.height)
    np.testing.assert_array_equal(values[valid][:, 0], stored[valid])
    one = float(stored[4, 4])
    assert not scene(str(product.path), nodata=one, mask="none").read(4, 5)[1][0, 4]


def test_masks__flags_and_files_together(tmp_path, scene):
    product = products.landsat(tmp_path / "product")
    kept = np.ones(product.valid.shape, "u1")
    kept[:, 0] = 0
    np.save(tmp_path / "mask.npy", kept)
    opened = scene(str(product.path), mask=["clouds", "mask.npy"])
    expected = product.valid & ~product.flags["clouds"] & (kept == 1)
    np.testing.assert_array_equal(opened.read(0, opened.grid.height)[1], expected)
    only = scene(str(product.path), mask="mask.npy")
    np.testing.assert_array_equal(only.read(0, only.grid.height)[1], product.valid & (kept == 1))
    with pytest.raises(SceneError, match=r'does not mark "haze".*clouds, cirrus'):
        scene(str(product.path), mask="haze")
    with pytest.raises(SceneError, match="contradict"):
        scene(str(product.path), mask=["none", "clouds"])


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"variable": "SWIR"}, "one image only"),
        ({"layout": "table"}, "table"),
        ({"columns": ["1"]}, "columns"),
        ({"grid": "coarsest"}, "have one"),
    ],
)
def test_products__keys_without_a_meaning_are_refused(keys, word, tmp_path, scene):
    product = products.landsat(tmp_path)
    with pytest.raises(SceneError, match=word):
        scene(str(product.path), **keys)


def test_products__two_in_one_folder_are_refused(tmp_path, scene):
    product = products.landsat(tmp_path)
    copy = tmp_path / "other"
    shutil.copytree(product.path, copy)
    for file in copy.iterdir():
        file.rename(file.with_name(file.name.replace("193023", "193024")))
    with pytest.raises(SceneError, match="2 products"):
        scene(str(tmp_path))


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_neon__map_info_and_gdal_agree(tmp_path, scene):
    product = products.neon(tmp_path)
    opened = scene(str(product.path))
    assert opened.grid.transform == (1, 0, products.PLACE[0], 0, -1, products.PLACE[1])
    with rasterio.open(f'HDF5:"{product.path}"://BART/Reflectance/Reflectance_Data') as dataset:
        # GDAL takes the first axis for bands.
        stored = dataset.read()
    values, valid = opened.read(0, opened.grid.height)
    np.testing.assert_allclose(values[valid][:, 0], stored[valid][:, 0] / 10000, rtol=1e-6)


@pytest.mark.parametrize("clouds", [0.75, 1.0])
def test_run__says_which_flags_leave_few_pixels(tmp_path, write_job, cli, clouds):
    product = products.neon(tmp_path / "product")
    with h5py.File(product.path, "a") as file:
        layer = file["BART/Reflectance/Metadata/Ancillary_Imagery/Haze_Cloud_Water_Map"]
        layer[:, : int(clouds * layer.shape[1])] = 15
    done = cli("run", write_job(scene={"path": str(product.path)}))
    if clouds < 1:
        assert re.search(r"of 288 pixels are valid \(\d+\.\d%\); by rows", done.stderr)
    else:
        assert done.exit_code == 2
        assert "no pixel is valid" in done.stderr
    assert f"flags leave out pixels: clouds on {clouds:.0%}" in done.stderr.replace("\n", " ")


def test_neon__a_copy_of_another_layer_masks_nothing(tmp_path, scene):
    product = products.neon(tmp_path, copied=True)
    opened = check(scene(str(product.path)), product)
    assert "no clouds are masked" in " ".join(describe_scene(opened))
    with h5py.File(product.path, "a") as file:
        layers = file["BART/Reflectance/Metadata/Ancillary_Imagery"]
        layers["Haze_Cloud_Water_Map"][4, 4] = 15
        product.flags["clouds"] = layers["Haze_Cloud_Water_Map"][()] == 15
        product.flags["cirrus"] = layers["Haze_Cloud_Water_Map"][()] == 3
    check(scene(str(product.path)), product)


@pytest.mark.parametrize("ortho", [True, False])
def test_aviris__map_grid_or_lookup_table(ortho, tmp_path, scene):
    product = products.aviris(tmp_path, ortho=ortho)
    opened = check(scene(str(product.path)), product)
    place = (3.1, 0.0, products.PLACE[0], 0.0, -3.1, products.PLACE[1])
    if ortho:
        assert opened.grid.transform == place
        assert geolocation_of(opened) is None
        return
    found = geolocation_of(opened)
    assert (found.kind, found.transform) == ("glt", place)
    assert (found.x.band, found.y.band) == (
        "geolocation_lookup_table/sample", "geolocation_lookup_table/line",
    )  # fmt: skip


def test_aviris__coordinates_of_the_lookup_table_are_not_those_of_the_cube(tmp_path, scene):
    product = products.aviris(tmp_path, ortho=False)
    with h5py.File(product.path, "a") as file:
        for name in ("easting", "northing"):
            file[name] = file[f"geolocation_lookup_table/{name}"][()]
    opened = check(scene(str(product.path)), product)
    assert opened.grid.transform is None
    assert geolocation_of(opened).kind == "glt"


@pytest.mark.parametrize("interleave", ["bil", "bip", "bsq"])
def test_envi__orders_of_bytes_and_bands(interleave, tmp_path, scene):
    product = products.envi(tmp_path, interleave=interleave, big=interleave != "bsq")
    opened = check(scene(str(product.path)), product)
    found = geolocation_of(opened)
    assert found.kind == "glt"
    assert found.transform == (5, 0, products.PLACE[0], 0, -5, products.PLACE[1])
    assert (found.x, found.y) == tuple(
        LookupArray(str(tmp_path / "ang20180814t224053_glt"), band, 0.0) for band in (1, 2)
    )
    # The header, and the folder of the flight line, are the same scene.
    for path in (f"{product.path}.hdr", str(tmp_path)):
        assert scene(path).bands == opened.bands
    told = " ".join(describe_scene(opened))
    assert "AVIRIS-NG" in told
    assert "wavelengths fall at" in told
    assert "bbl" in told


def test_envi__other_sensors_and_igm(tmp_path, scene):
    product = products.envi(
        tmp_path, "line03_VNIR.img", lookup="igm", sensor="HySpex", unit="Nanometers"
    )
    opened = check(scene(str(product.path)), product)
    found = geolocation_of(opened)
    assert (found.kind, found.transform) == ("igm", None)
    assert rasterio.crs.CRS.from_wkt(found.crs_wkt).to_epsg() == 4326
    assert "HySpex" in " ".join(describe_scene(opened))
    alone = products.envi(tmp_path / "alone", "hymap.bsq", lookup="", sensor="HyMap")
    assert geolocation_of(check(scene(str(alone.path)), alone)) is None


def test_envi__hyspex_by_its_id(tmp_path, scene):
    product = products.hyspex(tmp_path)
    opened = scene(str(product.path))
    assert "HySpex SWIR_384me_SN3122 (line_raw.hyspex)" in " ".join(describe_scene(opened))
    check(scene(str(product.path.with_suffix(".hdr"))), product)


def test_envi__classic_radiance_with_a_value_of_missing_pixels(tmp_path, scene):
    product = products.classic(tmp_path)
    header = tmp_path / f"{product.path.name}.hdr"
    header.write_text(header.read_text() + "data ignore value = -9999\n")
    product.valid[:] = True
    check(scene(str(product.path)), product)


def test_envi__endings_in_capitals(tmp_path, scene):
    product = products.classic(tmp_path)
    image = product.path.rename(tmp_path / "f201013t01p00r10rdn_e.IMG")
    header = (tmp_path / f"{product.path.name}.hdr").rename(image.with_suffix(".HDR"))
    for path in (image, header):
        check(scene(str(path)), product)


def test_pace__measured_wavelengths_before_nominal_ones(tmp_path, scene):
    product = products.pace(tmp_path, version="3.2")
    with h5py.File(product.path, "a") as file:
        del file["sensor_band_parameters/wavelength_3d"]
    check(scene(str(product.path)), product)
    with h5py.File(product.path, "a") as file:
        del file["geophysical_data/wavelength"]
        file["sensor_band_parameters/wavelength_3d"] = np.arange(400.0, 404)
    with pytest.raises(SceneError, match="have 4 numbers for 9 bands of Rrs"):
        scene(str(product.path))


def test_pace__igm_and_choice_of_the_cube(tmp_path, scene):
    product = products.pace(tmp_path)
    found = geolocation_of(scene(str(product.path), variable="rhos"))
    assert found.kind == "igm"
    assert (found.x.band, found.y.band) == ("navigation_data/longitude", "navigation_data/latitude")
    with pytest.raises(SceneError, match="has no Rrs"):
        scene(str(product.path), variable="Rrs")


def test_desis__zip_and_files(tmp_path, scene):
    product = products.desis(tmp_path / "folder")
    check(scene(str(products.zipped(product.path, tmp_path / "desis.zip", inside=False))), product)
    for end in ("METADATA.xml", "SPECTRAL_IMAGE.tif"):
        check(scene(str(next(product.path.glob(f"*-{end}")))), product)


def test_products__levels_that_are_not_read(tmp_path, scene):
    with h5py.File(tmp_path / "PRS_L1_STD.he5", "w") as file:
        file["HDFEOS/SWATHS/PRS_L1_HCO/Data Fields/VNIR_Cube"] = np.zeros((4, 5, 6), "u2")
    with pytest.raises(SceneError, match="is PRISMA L1"):
        scene(str(tmp_path / "PRS_L1_STD.he5"))
    product = products.landsat(tmp_path)
    for file in product.path.iterdir():
        file.rename(file.with_name(file.name.replace("L2SP", "L1TP")))
    with pytest.raises(SceneError, match="is Level 1"):
        scene(str(product.path))


def test_emit__radiance_of_early_files(tmp_path, scene):
    product = products.emit(tmp_path, level="L1B")
    with h5py.File(product.path, "a") as file:
        parameters = file["sensor_band_parameters"]
        parameters.move("wavelengths", "radiance_wl")
        parameters.move("fwhm", "radiance_fwhm")
    opened = check(scene(str(product.path)), product)
    assert "EMIT L1B radiance" in " ".join(describe_scene(opened))
    assert opened.bands.fwhm[0] == 8.5


MASK_NAMES = "sensor_band_parameters/mask_bands"


def test_emit__bands_of_the_mask_file_by_their_names(tmp_path, scene):
    product = products.emit(tmp_path, mask=2)
    (mask,) = tmp_path.glob("*MASK*")
    with h5py.File(mask, "a") as file:
        for name in ("mask", MASK_NAMES):
            file[name][...] = file[name][()][..., ::-1]
    told = " ".join(describe_scene(check(scene(str(product.path)), product)))
    assert "spectf cloud or dilated cloud or cloud of the mask file" in told
    with h5py.File(mask, "a") as file:
        file[MASK_NAMES][...] = "AOD550"
        del file["band_mask"]
    told = " ".join(describe_scene(scene(str(product.path), mask="none")))
    assert f"nothing is masked: {mask.name}" in told


def test_emit__bands_of_the_mask_file_without_names(tmp_path, scene):
    product = products.emit(tmp_path)
    (mask,) = tmp_path.glob("*MASK*")
    with h5py.File(mask, "a") as file:
        del file[MASK_NAMES]
    check(scene(str(product.path)), product)


def test_emit__the_later_of_two_mask_files(tmp_path, scene):
    products.emit(tmp_path, mask=1)
    product = products.emit(tmp_path, mask=2)
    check(scene(str(product.path)), product)
    # That of another scene is not taken.
    for mask in tmp_path.glob("*MASK*"):
        mask.rename(mask.with_name(mask.name.replace("_005.nc", "_006.nc")))
    assert "no clouds are masked" in " ".join(describe_scene(scene(str(product.path))))


def test_products__a_band_of_several_bands_is_refused(tmp_path, scene):
    product = products.landsat(tmp_path)
    products.write_tif(next(product.path.glob("*_SR_B5.TIF")), np.ones((3, 18, 16), "u2"))
    with pytest.raises(SceneError, match="has 3 bands"):
        scene(str(product.path))


def test_products__layers_that_lie_elsewhere_are_refused(tmp_path, scene):
    product = products.sentinel2(tmp_path / "sentinel2", driver="GTiff")
    (layer,) = product.path.rglob("*_SCL_20m.tif")
    products.write_tif(layer, np.ones((12, 12), "u1"), crs=None, transform=None)
    with pytest.raises(SceneError, match=r"SCL_20m\.tif: has no coordinate reference system"):
        scene(str(product.path))
    product = products.landsat(tmp_path / "landsat")
    products.write_tif(next(product.path.glob("*_QA_PIXEL.TIF")), np.ones((4, 5), "u2"))
    with pytest.raises(SceneError, match=r"QA_PIXEL bit 1, 3: .* has 4 x 5 pixels"):
        scene(str(product.path))


def test_envi__loops_of_links_beside_it(tmp_path, scene):
    product = products.envi(tmp_path, "line03_VNIR.img", lookup="igm", sensor="HySpex")
    header = tmp_path / "line03_VNIR_igm.hdr"
    header.unlink()
    header.symlink_to(header.name)
    with pytest.raises(SceneError, match=r'its IGM: scene\.geometry = "none" leaves it alone'):
        scene(str(product.path))
    assert geolocation_of(scene(str(product.path), geometry="none")) is None
