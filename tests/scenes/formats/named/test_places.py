"""Zarr stores of xarray, and our own class maps: their coordinates say where the pixels are."""

import numpy as np
import pytest
import rasterio
import xarray
import zarr

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.grids import same_crs
from eigenscape.scenes.types import Grid

UTM = rasterio.CRS.from_epsg(32633).to_wkt()


@pytest.fixture
def dataset():
    """Return a cube, its labels and a grid mapping as rioxarray has them."""
    cube = np.random.default_rng(0).random((4, 5, 3), np.float32)
    places = {"y": 5000.0 - 30 * np.arange(4), "x": 400.0 + 20 * np.arange(5)}
    found = xarray.Dataset(
        {"refl": (("y", "x", "band"), cube), "kind": (("y", "x"), np.ones((4, 5), "uint8"))},
        {**places, "spatial_ref": ((), 0, {"crs_wkt": UTM})},
    )
    for name in ("refl", "kind"):
        found[name].encoding["grid_mapping"] = "spatial_ref"
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_zarr__coordinates_place_the_scene(tmp_path, scene, dataset, version):
    dataset.to_zarr(tmp_path / "s.zarr", zarr_format=version, consolidated=False)
    opened = scene("s.zarr", variable="refl")
    assert opened.grid.transform == (20, 0, 390, 0, -30, 5015)
    assert same_crs(opened.grid, Grid(4, 5, UTM))
    np.testing.assert_array_equal(opened.read(0, 4)[0], dataset.refl)


def test_zarr__coordinates_in_kilometres(tmp_path, scene, dataset):
    distances = {name: (name, dataset[name].values / 1000, {"units": "km"}) for name in ("y", "x")}
    dataset.assign_coords(distances).to_zarr(tmp_path / "s.zarr", consolidated=False)
    transform = scene("s.zarr", variable="refl").grid.transform
    assert transform == pytest.approx((20, 0, 390, 0, -30, 5015))


def test_zarr__a_rotated_grid_and_uneven_coordinates(tmp_path, scene, dataset):
    dataset.spatial_ref.attrs["GeoTransform"] = "400 20 5 5000 4 -30"
    dataset.to_zarr(tmp_path / "s.zarr", consolidated=False)
    assert scene("s.zarr").grid.transform == (20, 5, 400, 4, -30, 5000)
    uneven = dataset.assign_coords(x=[0.0, 1, 2, 3, 9])
    del uneven.spatial_ref.attrs["GeoTransform"]
    uneven.to_zarr(tmp_path / "u.zarr", consolidated=False)
    opened = scene("u.zarr")
    assert opened.grid.transform is None
    assert "the place of the pixels is not known: their coordinates are not an even" in str(
        describe_scene(opened)
    )


@pytest.mark.mostly_slow(3)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("axes", ["band y x", "y band x", "x y band", "x band y"])
def test_zarr__axes_in_another_order_are_read_by_their_names(
    tmp_path, scene, dataset, axes, version
):
    chunked = {"refl": {"chunks": [{"x": 3, "y": 3, "band": 2}[name] for name in axes.split()]}}
    turned = dataset.transpose(*axes.split())
    turned.to_zarr(tmp_path / "s.zarr", zarr_format=version, consolidated=False, encoding=chunked)
    opened = scene("s.zarr", variable="refl")
    assert (opened.grid.height, opened.grid.width, opened.row_step) == (4, 5, 3)
    assert opened.grid.transform == (20, 0, 390, 0, -30, 5015)
    np.testing.assert_array_equal(opened.read(1, 4)[0], dataset.refl[1:4])
    # The chunk of the last two columns and of the last row, for one pair of bands.
    place = [{"x": "1", "y": "1", "band": "0"}[name] for name in axes.split()]
    name = ".".join(place) if version == 2 else "/".join(["c", *place])
    (tmp_path / "s.zarr" / "refl" / name).unlink()
    expected = np.ones((3, 5), bool)
    expected[2, 3:] = False
    np.testing.assert_array_equal(scene("s.zarr", variable="refl").read(1, 4)[1], expected)


def test_zarr__axes_of_a_swath_are_known_by_their_names(tmp_path, scene, dataset):
    swath = dataset[["refl"]].drop_vars(["x", "y"]).rename(y="downtrack", x="crosstrack")
    swath.transpose("band", ...).to_zarr(tmp_path / "s.zarr", consolidated=False)
    opened = scene("s.zarr", variable="refl")
    assert opened.grid.transform is None
    np.testing.assert_array_equal(opened.read(0, 4)[0], dataset.refl)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "encoding",
    [
        {"dtype": "int16", "scale_factor": 0.5, "add_offset": -3.0, "_FillValue": -9999},
        {"dtype": "float32", "_FillValue": -9999.0},
    ],
)
def test_zarr__packed_numbers_are_values(tmp_path, scene, dataset, encoding, version):
    wanted = (dataset.refl * 20).round().where(dataset.x > 400) / 2
    whole = dataset.assign(refl=wanted)
    whole.refl.encoding["grid_mapping"] = "spatial_ref"
    of_refl = {"refl": encoding}
    whole.to_zarr(tmp_path / "s.zarr", zarr_format=version, consolidated=False, encoding=of_refl)
    values, valid = scene("s.zarr", variable="refl").read(0, 4)
    np.testing.assert_array_equal(valid, [[False, *[True] * 4]] * 4)
    np.testing.assert_array_equal(values[valid], wanted.values[valid])
    plain = scene("s.zarr", variable="refl", scale=1.0).read(0, 4)[0]
    offset, factor = encoding.get("add_offset", 0), encoding.get("scale_factor", 1)
    np.testing.assert_array_equal(plain[valid] * factor + offset, wanted.values[valid])


@pytest.mark.parametrize("version", [2, 3])
def test_zarr__unsigned_numbers_and_the_valid_range(tmp_path, scene, dataset, version):
    unsigned = np.random.default_rng(1).integers(0, 2**16, (4, 5, 3)).astype("u2")
    stored = dataset.assign(refl=(("y", "x", "band"), unsigned.view("i2")))
    stored.to_zarr(tmp_path / "s.zarr", zarr_format=version, consolidated=False)
    attributes = {"_Unsigned": "true", "scale_factor": 0.5, "valid_range": [9000, -1]}
    zarr.open(tmp_path / "s.zarr")["refl"].attrs.update(attributes)
    opened = scene("s.zarr", variable="refl")
    values, valid = opened.read(0, 4)
    np.testing.assert_array_equal(valid, (unsigned >= 9000).all(axis=-1))
    np.testing.assert_array_equal(values[valid], unsigned[valid] * 0.5)
    assert "values outside of 9000 to 65535 are missing" in str(describe_scene(opened))


def test_zarr__the_valid_range_of_real_numbers(tmp_path, scene, dataset):
    dataset.refl.attrs["valid_max"] = 0.9
    dataset.to_zarr(tmp_path / "s.zarr", consolidated=False)
    valid = scene("s.zarr", variable="refl").read(0, 4)[1]
    np.testing.assert_array_equal(valid, (dataset.refl <= 0.9).all("band"))


def test_zarr__a_fill_value_that_is_no_number_is_refused(tmp_path, scene, dataset):
    dataset.to_zarr(tmp_path / "s.zarr", consolidated=False)
    zarr.open(tmp_path / "s.zarr")["refl"].attrs["missing_value"] = "none"
    with pytest.raises(SceneError, match=r"the array refl has a scale_factor.*'none'"):
        scene("s.zarr", variable="refl")


def test_zarr__labels_that_lie_elsewhere_are_refused(tmp_path, scene, labels, dataset):
    dataset.to_zarr(tmp_path / "s.zarr", consolidated=False)
    keys = {"variable": "refl", "labels_variable": "kind"}
    assert labels("s.zarr", labels="s.zarr", **keys).read(0, 4).all()
    dataset.sortby("y").to_zarr(tmp_path / "turned.zarr", consolidated=False)
    with pytest.raises(SceneError, match="lies elsewhere"):
        labels("s.zarr", labels="turned.zarr", **keys)


def test_zarr__degrees_of_a_grid_mapping_without_wkt_are_wgs84(tmp_path, scene, dataset):
    dataset.spatial_ref.attrs = {"grid_mapping_name": "latitude_longitude"}
    dataset.to_zarr(tmp_path / "s.zarr", consolidated=False)
    assert same_crs(scene("s.zarr").grid, Grid(4, 5, rasterio.CRS.from_epsg(4326).to_wkt()))
    dataset.spatial_ref.attrs = {"grid_mapping_name": "sinusoidal"}
    dataset.to_zarr(tmp_path / "u.zarr", consolidated=False)
    opened = scene("u.zarr")
    assert opened.grid.crs_wkt is None
    assert "the grid mapping 'sinusoidal' has no crs_wkt" in str(describe_scene(opened))
