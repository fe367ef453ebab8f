"""Every kind of file, from a job file through the command line to outputs on the right grid."""

import json

import h5py
import numpy as np
import pytest
import rasterio
import zarr
from scipy.io import savemat

NORTH_UP = rasterio.Affine(30, 0, 364095, 0, -30, 5809965)
UTM = rasterio.crs.CRS.from_epsg(32633)
WORDS = "ignore::rasterio.errors.NotGeoreferencedWarning"


def centre(row, column):
    """Return x and y; affine's operators changed between its versions 2 and 3."""
    return 364095 + 30 * (column + 0.5), 5809965 - 30 * (row + 0.5)


@pytest.fixture
def full(make_scene):
    """The small scene without a corner that lacks data."""
    return make_scene(hole=False)


@pytest.fixture
def check(cli, write_job, full):
    """Run [scene]; check that the class map lies on the grid and agrees with the labels."""

    def work(crs=UTM, transform=NORTH_UP, truth=None, **scene):
        # Files are looked at: the quickest solver for so few pixels.
        job = write_job(scene=scene, spectrum={"solver": "lanczos"}, learn={"trials": 2})
        result = cli("run", job, "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        truth = full.labels if truth is None else truth
        for name in ("class_map", "confidence", "eigenvectors"):
            with rasterio.open(found["outputs"][name]) as dataset:
                assert (dataset.height, dataset.width) == (30, 40)
                assert dataset.crs == crs
                assert dataset.transform.almost_equals(transform, 1e-6)
                values = dataset.read(1)
            if name == "class_map":
                classes = values
            else:
                assert np.isfinite(values).all()
        assert (classes > 0).all()
        given = truth > 0
        assert (classes == truth)[given].mean() > 0.95
        assert set(np.unique(classes)) == set(np.unique(truth[given]))
        return found

    return work


BARE = {"crs": None, "transform": rasterio.Affine.identity()}


@pytest.mark.filterwarnings(WORDS)
def test_formats__mat_of_version_5(check, full, tmp_path):
    savemat(tmp_path / "scene.mat", {"cube": full.cube, "gt": full.labels, "other": full.cube[:5]})
    check(path="scene.mat", variable="cube", labels="scene.mat", labels_variable="gt", **BARE)


@pytest.mark.filterwarnings(WORDS)
def test_formats__mat_of_version_73(check, full, tmp_path):
    for name, arrays in {"scene.mat": {"cube": full.cube}, "gt.mat": {"gt": full.labels}}.items():
        with h5py.File(tmp_path / name, "w", userblock_size=512) as file:
            for key, array in arrays.items():
                stored = file.create_dataset(key, data=array.T)
                stored.attrs["MATLAB_class"] = np.bytes_("double")
    check(path="scene.mat", labels="gt.mat", **BARE)


@pytest.mark.mostly_slow(1)
@pytest.mark.filterwarnings(WORDS)
@pytest.mark.parametrize("ending", ["npy", "npz", "zarr"])
def test_formats__numpy_and_zarr(check, full, tmp_path, ending):
    for name, array in {"scene": full.cube, "gt": full.labels}.items():
        path = tmp_path / f"{name}.{ending}"
        if ending == "npy":
            np.save(path, array)
        elif ending == "npz":
            np.savez(path, values=array)
        else:
            zarr.save_array(path, array)
    check(path=f"scene.{ending}", labels=f"gt.{ending}", **BARE)


@pytest.mark.filterwarnings(WORDS)
def test_formats__cube_and_labels_in_one_npz(check, full, tmp_path):
    np.savez(tmp_path / "scene.npz", cube=full.cube, gt=full.labels)
    check(path="scene.npz", labels_variable="gt", **BARE)


@pytest.mark.mostly_slow(3)
@pytest.mark.filterwarnings(WORDS)
@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
@pytest.mark.parametrize("mapped", [True, False])
def test_formats__envi(check, full, write_tif, tmp_path, interleave, mapped):
    order = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    full.cube.astype("<i2").transpose(order).tofile(tmp_path / "scene.img")
    header = (
        "ENVI\nsamples = 40\nlines = 30\nbands = 20\nheader offset = 0\ndata type = 2\n"
        f"interleave = {interleave}\nbyte order = 0\n"
        "wavelength units = Nanometers\n"
        f"wavelength = {{{', '.join(str(400 + 50 * band) for band in range(20))}}}\n"
    )
    if mapped:
        header += "map info = {UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}\n"
    (tmp_path / "scene.hdr").write_text(header)
    profile = {} if mapped else {"crs": None, "transform": None}
    write_tif("gt.tif", full.labels, **profile)
    check(path="scene.img", labels="gt.tif", **({} if mapped else BARE))


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(
    "transform",
    [
        rasterio.Affine(26, 15, 364095, 15, -26, 5809965),
        rasterio.Affine(30, 0, 364095, 0, 30, 5809965),
        rasterio.Affine(10, 0, 364095.5, 0, -20, 5809965.25),
    ],
    ids=["rotated", "south-up", "oblong"],
)
def test_formats__grids_that_are_not_north_up(check, full, write_tif, transform):
    write_tif("scene.tif", full.cube, transform=transform)
    write_tif("gt.tif", full.labels, transform=transform)
    check(path="scene.tif", labels="gt.tif", transform=transform)


def test_formats__south_up_labels_on_a_north_up_scene(check, full, write_tif):
    write_tif("scene.tif", full.cube)
    flipped = rasterio.Affine(30, 0, 364095, 0, 30, 5809965 - 30 * 30)
    write_tif("gt.tif", full.labels[::-1].copy(), transform=flipped)
    check(path="scene.tif", labels="gt.tif")


def test_formats__int16_with_scale_and_nodata(check, full, write_tif, tmp_path):
    path = write_tif("scene.tif", full.cube.astype(np.int16), nodata=-9999)
    with rasterio.open(path, "r+") as dataset:
        dataset.scales = [0.0001] * 20
    write_tif("gt.tif", full.labels)
    found = check(path="scene.tif", labels="gt.tif")
    values = zarr.open_array(f"{found['run']}/store.zarr/samples/values", mode="r")[...]
    np.testing.assert_allclose(values, full.cube.reshape(-1, 20) * 1e-4, rtol=1e-5)


def test_formats__list_of_single_bands(check, full, write_tif):
    names = [f"B{band:02d}.tif" for band in range(20)]
    for band, name in enumerate(names):
        write_tif(name, full.cube[..., band])
    write_tif("gt.tif", full.labels)
    check(path=names, labels="gt.tif")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("kind", ["points", "polygons"])
@pytest.mark.parametrize("ending", ["gpkg", "geojson"])
def test_formats__vectors_in_another_crs(check, full, write_tif, tmp_path, kind, ending):
    import geopandas
    from shapely import Point, box

    write_tif("scene.tif", full.cube)
    labels = np.zeros_like(full.labels)
    shapes, classes = [], []
    for row, column in zip(*np.nonzero(full.labels), strict=True):
        if (row * 7 + column) % 5:
            continue
        x, y = centre(row, column)
        shapes.append(Point(x, y) if kind == "points" else box(x - 12, y - 12, x + 12, y + 12))
        classes.append(int(full.labels[row, column]))
        labels[row, column] = classes[-1]
    table = geopandas.GeoDataFrame({"kind": classes}, geometry=shapes, crs=UTM)
    table.to_crs("EPSG:4326").to_file(tmp_path / f"gt.{ending}")
    found = check(path="scene.tif", labels=f"gt.{ending}", labels_field="kind", truth=labels)
    assert found["scores"]["training_pixels"]["samples"] == (labels > 0).sum()


def test_formats__class_names_in_vectors(check, full, write_tif, tmp_path, cli, write_job):
    import geopandas
    from shapely import Point

    write_tif("scene.tif", full.cube)
    rows = [
        (*map(int, place), int(full.labels[place]))
        for place in zip(*np.nonzero(full.labels), strict=True)
    ]
    names = {1: "ash", 2: "beech", 3: "cedar", 4: "dogwood"}
    table = geopandas.GeoDataFrame(
        {"tree": [names[number] for _, _, number in rows]},
        geometry=[Point(*centre(row, column)) for row, column, _ in rows],
        crs=UTM,
    )
    table.to_file(tmp_path / "gt.gpkg")
    found = check(path="scene.tif", labels="gt.gpkg", labels_field="tree")
    with open(found["outputs"]["legend"], encoding="utf-8") as stream:
        text = stream.read()
    assert all(name in text for name in names.values())


def test_formats__labels_that_touch_a_part_of_the_scene(check, full, write_tif):
    write_tif("scene.tif", full.cube)
    moved = rasterio.Affine(30, 0, 364095 - 5 * 30, 0, -30, 5809965 - 10 * 30)
    beyond = np.ones((30, 40), np.uint8)
    beyond[:20, 5:] = full.labels[10:, :35]
    expected = np.zeros_like(full.labels)
    expected[10:, :35] = full.labels[10:, :35]
    write_tif("gt.tif", beyond, transform=moved)
    check(path="scene.tif", labels="gt.tif", truth=expected)


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("coarse", [2, 5])
def test_formats__coarse_labels(cli, full, write_tif, write_job, coarse):
    write_tif("scene.tif", full.cube)
    truth = full.labels[::coarse, ::coarse].copy()
    write_tif(
        "gt.tif", truth, transform=rasterio.Affine(30 * coarse, 0, 364095, 0, -30 * coarse, 5809965)
    )
    result = cli("run", write_job(scene={"labels": "gt.tif"}), "--json")
    assert result.exit_code == 0, result.stderr
    scores = json.loads(result.stdout)["scores"]
    assert scores["training_pixels"]["samples"] == (truth > 0).sum() * coarse**2


def test_formats__class_numbers_above_255(check, full, write_tif):
    write_tif("scene.tif", full.cube)
    numbers = np.array([0, 7, 300, 40_000, 65_535], np.uint16)[full.labels]
    write_tif("gt.tif", numbers)
    check(path="scene.tif", labels="gt.tif", truth=numbers)


def test_formats__nodata_of_the_labels_is_no_class(check, full, write_tif):
    write_tif("scene.tif", full.cube)
    write_tif("gt.tif", np.where(full.labels == 0, 255, full.labels).astype(np.uint8), nodata=255)
    check(path="scene.tif", labels="gt.tif")
