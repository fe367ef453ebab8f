import pickle

import h5py
import numpy as np
import pytest
import zarr
from scipy.io import savemat

from eigenscape.errors import SceneError
from eigenscape.scenes.formats.arrays.arrayfiles import _load_whole

CUBE = np.random.default_rng(0).integers(0, 1000, (11, 7, 4)).astype("uint16")
GT = np.random.default_rng(1).integers(0, 4, (11, 7)).astype("uint8")


def save_mat73(path, **arrays):
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array.T, chunks=True).attrs["MATLAB_class"] = np.bytes_(
                {"u": "uint16", "f": "double"}[array.dtype.kind]
            )


def save_zarr(path, **arrays):
    group = zarr.open_group(path, mode="w", zarr_format=2 if "v2" in str(path) else 3)
    for name, array in arrays.items():
        group.create_array(name, data=array, chunks=(3, *array.shape[1:]))


def save(path, **arrays):
    name = path.name
    if name.endswith("73.mat"):
        save_mat73(path, **arrays)
    elif name.endswith(".mat"):
        savemat(path, arrays, do_compression=True)
    elif name.endswith(".npz"):
        np.savez_compressed(path, **arrays)
    else:
        save_zarr(path, **arrays)


CONTAINERS = ["five.mat", "73.mat", "cube.npz", "v3.zarr", "v2.zarr"]


@pytest.mark.parametrize("name", CONTAINERS)
def test_only_cube_and_only_plane_are_found(tmp_path, scene, labels, name):
    save(tmp_path / name, cube=CUBE, gt=GT)
    opened = scene(name, bad_bands=[2])
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == (11, 7, 3)
    assert (opened.grid.crs_wkt, opened.grid.transform) == (None, None)
    for start, stop in ((0, 11), (2, 7), (10, 11)):
        values, valid = pickle.loads(pickle.dumps(opened)).read(start, stop)
        np.testing.assert_array_equal(values, CUBE[start:stop][..., [0, 2, 3]])
        assert valid.all()
    assert opened.files == (str(tmp_path / name),)
    np.testing.assert_array_equal(labels(name, labels=name).read(4, 9), GT[4:9])
    np.testing.assert_array_equal(labels(name, labels_variable="gt").read(0, 11), GT)


@pytest.mark.parametrize("name", CONTAINERS)
def test_several_cubes_are_listed(tmp_path, scene, name):
    save(tmp_path / name, cube=CUBE, other=CUBE[:5])
    with pytest.raises(SceneError, match=r"2 that could be.*scene.variable.*11 x 7 x 4"):
        scene(name)
    assert scene(name, variable="other").grid.height == 5
    with pytest.raises(SceneError, match=r"no array 'third'.*cube \("):
        scene(name, variable="third")


def test_npy_zarr_array_and_order(tmp_path, scene):
    np.save(tmp_path / "c.npy", CUBE)
    np.save(tmp_path / "f.npy", np.asfortranarray(CUBE.astype(">f4")))
    zarr.save_array(tmp_path / "a.zarr", CUBE)
    for name in ("c.npy", "f.npy", "a.zarr"):
        np.testing.assert_array_equal(scene(name).read(3, 8)[0], CUBE[3:8])


def test_row_step_follows_chunks(tmp_path, scene):
    save_zarr(tmp_path / "chunked.zarr", cube=CUBE)
    assert scene("chunked.zarr").row_step == 3


def test_two_dimensions_of_an_image_are_one_band(tmp_path, scene):
    np.save(tmp_path / "plane.npy", GT)
    opened = scene("plane.npy", layout="image")
    assert opened.bands.good == (True,)
    np.testing.assert_array_equal(opened.read(0, 11)[0][..., 0], GT)


def test_nodata_scale_and_not_finite(tmp_path, scene):
    array = CUBE.astype("float64")
    array[0, 0, 0], array[1, 1, 1], array[2, 2, 2], array[3, 3, 3] = -1, np.nan, np.inf, 1e300
    np.save(tmp_path / "cube.npy", array)
    values, valid = scene("cube.npy", nodata=-1, scale=0.5).read(0, 11)
    assert set(zip(*np.nonzero(~valid), strict=True)) == {(0, 0), (1, 1), (2, 2), (3, 3)}
    np.testing.assert_array_equal(values[valid], CUBE[valid] * np.float32(0.5))


def test_compressed_files_are_decompressed_once(tmp_path, scene):
    save(tmp_path / "cube.npz", cube=CUBE)
    opened = scene("cube.npz")
    _load_whole.cache_clear()
    for row in range(11):
        opened.read(row, row + 1)
    assert _load_whole.cache_info().misses == 1


def test_wrong_shapes_and_types(tmp_path, scene):
    np.save(tmp_path / "line.npy", CUBE.ravel())
    np.save(tmp_path / "complex.npy", CUBE.astype(complex))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    save(tmp_path / "words.npz", names=np.array(["a", "b"]))
    for name, words in (
        ("line.npy", "rows x columns x bands"),
        ("complex.npy", "complex128"),
        ("objects.npy", "cannot be read"),
        ("words.npz", "none that could be a cube or a table"),
    ):
        with pytest.raises(SceneError, match=words):
            scene(name)


def test_labels_in_arrays(tmp_path, scene, labels):
    np.save(tmp_path / "cube.npy", CUBE)
    save(tmp_path / "gt.mat", gt=GT.astype(float), other=np.ones((3, 3)))
    np.testing.assert_array_equal(labels("cube.npy", labels="gt.mat").read(0, 11), GT)
    save(tmp_path / "two.npz", one=GT, two=GT, small=GT[:3])
    with pytest.raises(SceneError, match=r"2 that could be of the scene's size.*labels_variable"):
        labels("cube.npy", labels="two.npz")
    with pytest.raises(SceneError, match=r"labels has the size 3 x 7, the scene 11 x 7"):
        labels("cube.npy", labels="two.npz", labels_variable="small")


def test_labels_variable_in_a_raster(write, labels):
    path = write("scene.tif", CUBE.transpose(2, 0, 1))
    with pytest.raises(SceneError, match=r"scene\.labels_variable = 'gt'"):
        labels(path, labels_variable="gt")
    assert labels(path) is None


def test_url(tmp_path, write, scene):
    np.save(tmp_path / "cube.npy", CUBE)
    write("scene.tif", CUBE.transpose(2, 0, 1))
    for name in ("cube.npy", "scene.tif"):
        url = f"file://{tmp_path / name}"
        np.testing.assert_array_equal(scene(url).read(2, 5)[0], CUBE[2:5])
    for name in ("absent.npy", "absent.tif"):
        with pytest.raises(SceneError, match=name):
            scene(f"file://{tmp_path / name}")
