"""Files of several rasters: the one of most bands, or the one that is named."""

import re
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from rasterio.crs import CRS
from scipy.io import netcdf_file

from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.describe import describe_scene
from eigenscape.scenes.open import chosen_variable

CUBE = np.random.default_rng(0).integers(0, 1000, (5, 7, 8)).astype("int16")


@pytest.fixture(params=["nc", "h5"])
def container(request, tmp_path):
    """Write a cube beside abundances and a quality layer, in a folder with a blank in its name."""
    folder = tmp_path / "a b"
    folder.mkdir()
    arrays = {"radiance": CUBE, "abundance": CUBE[:3] * 2, "quality": CUBE[0]}
    path = folder / f"s.{request.param}"
    if request.param == "h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[f"group/{name}"] = array
        return path
    with netcdf_file(path, "w") as file:
        for name, size in (("b", 5), ("a", 3), ("y", 7), ("x", 8)):
            file.createDimension(name, size)
        for name, axes in {"radiance": "byx", "abundance": "ayx", "quality": "yx"}.items():
            file.createVariable(name, "i2", tuple(axes))[:] = arrays[name]
    return path


def test_the_most_bands_are_taken_and_said(scene, container):
    opened = scene(str(container))
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE.transpose(1, 2, 0))
    said = describe_scene(opened)
    assert said[0] == f"image of 7 rows x 8 columns x 5 bands ({container.name})"
    assert "radiance of s." in str(said)
    assert re.search(r"5 x 7 x 8\b.*, bands x rows x columns \(the most bands; for ", str(said))
    named = chosen_variable(SceneOptions(path=str(container)), str)
    assert named in ("radiance", "group/radiance")
    assert scene(str(container), variable=named).bands.count == 5


def test_the_order_of_axes_without_names_is_said_of_the_only_array(scene, tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["cube"] = CUBE
    opened = scene("s.h5")
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE.transpose(1, 2, 0))
    assert "raster cube of s.h5: 5 x 7 x 8, bands x rows x columns" in describe_scene(opened)


def test_another_is_taken_by_its_name(scene, container):
    assert scene(str(container), variable="abundance").bands.count == 3
    with pytest.raises(
        SceneError, match=r"no raster 'x' \(scene.variable\).*radiance \(5 x 7 x 8\)"
    ):
        scene(str(container), variable="x")


def test_equals_are_refused(scene, tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for name in ("one", "two"):
            file[name] = CUBE
    with pytest.raises(SceneError, match=r"2 that could be the scene. Name it in scene\.variable"):
        scene("s.h5")


def write_netcdf(path, sizes, axes, values, places=True):
    """Write a variable with coordinates as xarray does: without the attributes of CF."""
    with netcdf_file(path, "w") as file:
        for name, size in sizes.items():
            file.createDimension(name, size)
        for name, start, step in (("y", 5000.0, -30.0), ("x", 400.0, 20.0)):
            if places:
                coordinate = file.createVariable(name, "f8", (name,))
                coordinate[:] = start + step * np.arange(sizes[name])
        mapping = file.createVariable("spatial_ref", "i4", ())
        mapping.crs_wkt = mapping.spatial_ref = CRS.from_epsg(32633).to_wkt()
        variable = file.createVariable("refl", "i2", axes)
        variable[:] = values
        variable.grid_mapping = "spatial_ref"


def test_netcdf__coordinates_place_the_scene_and_order_its_rows(scene, tmp_path):
    path, sizes = tmp_path / "s.nc", {"b": 5, "y": 7, "x": 8}
    write_netcdf(path, sizes, ("b", "y", "x"), CUBE)
    opened = scene(str(path))
    assert opened.grid.transform == (20, 0, 390, 0, -30, 5015)
    assert opened.grid.crs_wkt is not None
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE.transpose(1, 2, 0))
    write_netcdf(path, sizes, ("b", "y", "x"), CUBE, places=False)
    opened = scene(str(path))
    assert "s.nc: has a coordinate system but no transform" in str(describe_scene(opened))
    np.testing.assert_array_equal(opened.read(0, 7)[0], CUBE.transpose(1, 2, 0))


@pytest.mark.slow
def test_netcdf__rows_without_coordinates_are_read_from_the_top_beside_others(scene, tmp_path):
    """The order of rows is a setting of the whole process while GDAL opens a file, here of four axes."""
    sizes = {"t": 2, "b": 5, "y": 7, "x": 8}
    upwards = [str(tmp_path / f"{n}.nc") for n in range(4)]
    cube = np.stack([CUBE, CUBE + 1])
    for number, path in enumerate(upwards):
        write_netcdf(path, sizes, tuple(sizes), cube[:, :, ::-1], places=number % 2)
        if number % 2:
            with netcdf_file(path, "a") as file:
                file.variables["y"][:] = 4820 + 30.0 * np.arange(7)

    def read(number):
        return scene(upwards[number % 4]).read(0, 7)[0]

    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(read, range(80))):
            expected = cube if number % 2 else cube[:, :, ::-1]
            np.testing.assert_array_equal(found, np.concatenate(expected).transpose(1, 2, 0))


def test_netcdf__four_axes_in_another_order_are_refused(scene, tmp_path):
    path = tmp_path / "s.nc"
    sizes = {"t": 2, "b": 5, "y": 7, "x": 8}
    cube = np.stack([CUBE, CUBE]).transpose(0, 2, 3, 1)
    write_netcdf(path, sizes, ("t", "y", "x", "b"), cube)
    with pytest.raises(SceneError, match="its axis y stands before two others"):
        scene(str(path))


@pytest.fixture
def several(tmp_path):
    """Write a cube beside two layers of its size, one that is turned, and one of another size."""
    path = str(tmp_path / "s.nc")
    with netcdf_file(path, "w") as file:
        for name, size in (("b", 5), ("y", 7), ("x", 8), ("z", 6)):
            file.createDimension(name, size)
        layer = np.arange(56).reshape(7, 8) % 3 + 1
        arrays = {
            "refl": ("yxb", CUBE.transpose(1, 2, 0)), "kind": ("yx", layer),
            "cloud": ("yx", layer * 0), "turned": ("xy", layer.T), "other": ("yz", layer[:, :6]),
        }  # fmt: skip
        for name, (axes, values) in arrays.items():
            file.createVariable(name, "i2", tuple(axes))[...] = values
    return path, layer


def test_labels__one_of_several_rasters_is_named(labels, several):
    path, layer = several
    for keys in ({"labels": path}, {}):
        opened = labels(path, labels_variable="kind", **keys)
        np.testing.assert_array_equal(opened.read(0, 7), layer)
        assert opened.notes == ("labels: raster kind of s.nc",)
    with pytest.raises(SceneError, match=r"has no raster 'kid' \(scene.labels_variable\)"):
        labels(path, labels=path, labels_variable="kid")


def test_labels__those_that_fit_are_listed(labels, several):
    path, _ = several
    with pytest.raises(
        SceneError, match=r"scene.labels_variable. .*, 7 x 8, with one band: cloud, kind, turned$"
    ):
        labels(path, labels=path)


def test_labels__columns_before_rows_are_refused(labels, several):
    path, _ = several
    with pytest.raises(SceneError, match=r'the axes \(x, y\).*\.transpose\("y", "x"\)'):
        labels(path, labels=path, labels_variable="turned")


@pytest.mark.parametrize("key", ["mask", "labels"])
def test_columns_before_rows_are_refused_of_a_square_scene(scene, labels, tmp_path, key):
    np.save(tmp_path / "s.npy", CUBE[..., :7].transpose(1, 2, 0))
    with netcdf_file(tmp_path / "m.nc", "w") as file:
        for name in ("y", "x"):
            file.createDimension(name, 7)
        file.createVariable("m", "i2", ("x", "y"))[...] = np.ones((7, 7))
    opener = scene if key == "mask" else labels
    with pytest.raises(SceneError, match=rf"{key}, the array m, has the axes \(x, y\)"):
        opener("s.npy", **{key: "m.nc"})


def test_labels__of_an_hdf_file_are_named(labels, tmp_path):
    path = str(tmp_path / "s.h5")
    with h5py.File(path, "w") as file:
        file["group/radiance"], file["group/kind"], file["quality"] = CUBE, CUBE[0] % 3, CUBE[1]
    opened = labels(path, labels=path, labels_variable="kind")
    np.testing.assert_array_equal(opened.read(0, 7), CUBE[0] % 3)
