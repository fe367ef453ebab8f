"""Tables and images in arrays: which of the two a two-dimensional array is, and what goes with it."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import describe_scene

SIZES = [(100, 3), (3000, 20), (140_000, 2)]


def save(path, array, **others):
    """Save an array as `X` beside others, in the way of the file's ending."""
    if path.suffix == ".npz":
        np.savez(path, X=array, **others)
    elif path.suffix == ".mat":
        savemat(path, {"X": array, **others})
    elif path.suffix == ".zarr":
        group = zarr.open_group(path, mode="w")
        for name, item in {"X": array, **others}.items():
            group.create_array(name, data=item, chunks=(1000, *item.shape[1:]))
    else:
        np.save(path, array)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("ending", ["npy", "npz", "mat", "zarr"])
def test_two_dimensions_are_a_table(tmp_path, scene, rng, shape, ending):
    X = rng.normal(size=shape)
    save(tmp_path / f"t.{ending}", X)
    opened = pickle.loads(pickle.dumps(scene(f"t.{ending}")))
    assert (opened.grid.height, opened.grid.width, opened.bands.count) == (shape[0], 1, shape[1])
    assert opened.grid.is_table
    size = f"{shape[0]:,} samples x {shape[1]} features"
    said = describe_scene(opened)
    assert said[0] == f"table of {size} (t.{ending})"
    assert all("array X of t." in note and "samples x features" in note for note in said[1:])
    assert len(said) == 1 + (ending != "npy")
    for start, stop in ((0, shape[0]), (7, 8), (shape[0] - 50, shape[0])):
        values, valid = opened.read(start, stop)
        np.testing.assert_array_equal(values[:, 0], X[start:stop].astype(np.float32))
        assert valid.all()


def test_an_image_says_so(tmp_path, scene, rng):
    np.save(tmp_path / "plane.npy", rng.normal(size=(30, 20)))
    np.save(tmp_path / "cube.npy", rng.normal(size=(30, 20, 5)))
    for layout in ("image", "auto"):
        assert describe_scene(scene("cube.npy", layout=layout)) == [
            "image of 30 rows x 20 columns x 5 bands (cube.npy)"
        ]
    opened = scene("plane.npy", layout="image")
    assert describe_scene(opened) == ["image of 30 rows x 20 columns x 1 band (plane.npy)"]
    assert (opened.grid.width, opened.bands.count) == (20, 1)


def test_samples_one_pixel_wide_are_a_table_as_before(tmp_path, scene, rng):
    X = rng.normal(size=(90, 4)).astype(np.float32)
    np.save(tmp_path / "t.npy", X[:, np.newaxis])
    for layout in ("auto", "table"):
        opened = scene("t.npy", layout=layout)
        assert (opened.grid.is_table, opened.bands.count) == (True, 4)
        np.testing.assert_array_equal(opened.read(0, 90)[0][:, 0], X)


@pytest.mark.parametrize(
    ("shape", "layout", "words"),
    [
        ((9, 7, 3), "table", r"\(9, 7, 3\).*layout = \"table\".*reshape"),
        ((9, 1, 3), "image", r"\(9, 1, 3\).*one pixel wide.*9 samples"),
        ((9, 1), "image", "one pixel wide"),
        ((9,), "auto", r"shape \(9,\).*samples x features"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(tmp_path, scene, shape, layout, words):
    np.save(tmp_path / "a.npy", np.ones(shape))
    with pytest.raises(SceneError, match=words):
        scene("a.npy", layout=layout)


def test_a_layout_of_files_that_have_one_is_refused(tmp_path, scene, write, rng):
    write("scene.tif", rng.integers(0, 9, (3, 20, 13)).astype("int16"))
    sp.save_npz(tmp_path / "words.npz", sp.csr_array(np.eye(5)))
    assert scene("scene.tif", layout="image").bands.count == 3
    assert scene("words.npz", layout="table").grid.is_table
    with pytest.raises(SceneError, match=r"layout = \"table\" is for arrays"):
        scene("scene.tif", layout="table")
    with pytest.raises(SceneError, match="a sparse matrix is a table"):
        scene("words.npz", layout="image")
    for name in ("scene.tif", "words.npz"):
        with pytest.raises(SceneError, match=r"scene.columns.*CSV or Parquet"):
            scene(name, columns=[1])


@pytest.mark.parametrize("ending", ["npz", "mat", "zarr"])
def test_a_cube_comes_before_tables_and_tables_before_lists(tmp_path, scene, labels, rng, ending):
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 4, (60, 1))
    save(tmp_path / f"xy.{ending}", X, y=y)
    opened = scene(f"xy.{ending}")
    assert (opened.grid.height, opened.bands.count) == (60, 5)
    for keys in ({"labels": f"xy.{ending}"}, {"labels_variable": "y"}):
        np.testing.assert_array_equal(labels(f"xy.{ending}", **keys).read(3, 60), y[3:])
    save(tmp_path / f"all.{ending}", X, y=y, cube=np.ones((4, 5, 6)), gt=np.ones((4, 5)))
    assert scene(f"all.{ending}").bands.count == 6
    with pytest.raises(SceneError, match=r"2 that could be a table.*scene.variable"):
        scene(f"all.{ending}", layout="table")
    assert scene(f"all.{ending}", variable="X").grid.is_table
    save(tmp_path / f"two.{ending}", X, gt=np.ones((60, 5)))
    assert scene(f"two.{ending}", labels_variable="gt").bands.count == 5


@pytest.mark.parametrize("shape", [(60,), (60, 1), (1, 60)])
@pytest.mark.parametrize("ending", ["npy", "npz", "mat", "zarr"])
def test_labels_and_masks_of_a_table_are_a_list(tmp_path, scene, labels, rng, shape, ending):
    np.save(tmp_path / "t.npy", rng.normal(size=(60, 5)))
    y = rng.integers(0, 4, shape)
    save(tmp_path / f"y.{ending}", y)
    np.testing.assert_array_equal(labels("t.npy", labels=f"y.{ending}").read(5, 9).T, [y.flat[5:9]])
    _, valid = scene("t.npy", mask=f"y.{ending}").read(0, 60)
    np.testing.assert_array_equal(valid.ravel(), y.ravel() != 0)


@pytest.mark.parametrize("ending", ["npy", "npz", "mat", "zarr"])
def test_labels_and_masks_may_be_images_of_one_band(tmp_path, scene, labels, rng, ending):
    np.save(tmp_path / "s.npy", rng.normal(size=(6, 7, 3)))
    y = rng.integers(0, 4, (6, 7, 1))
    save(tmp_path / f"y.{ending}", y)
    found = labels("s.npy", labels=f"y.{ending}").read(2, 5)
    np.testing.assert_array_equal(found, y[2:5, :, 0])
    np.testing.assert_array_equal(scene("s.npy", mask=f"y.{ending}").read(0, 6)[1], y[..., 0] != 0)


@pytest.mark.parametrize("shape", [(59,), (59, 1), (60, 5)])
def test_labels_and_masks_of_another_size_are_refused(tmp_path, scene, labels, shape):
    np.save(tmp_path / "t.npy", np.ones((60, 5)))
    np.save(tmp_path / "y.npy", np.ones(shape, int))
    words = r"table of 60 samples\. Give one number for each"
    hint = r'.*layout = "image"' if shape == (60, 5) else ""
    with pytest.raises(SceneError, match=words + hint):
        labels("t.npy", labels="y.npy")
    with pytest.raises(SceneError, match=words):
        scene("t.npy", mask="y.npy")
    with pytest.raises(SceneError, match=r"labels_field = 'y'.*CSV or Parquet"):
        labels("t.npy", labels_field="y")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_table_and_image_of_the_same_numbers_agree(tmp_path, scene, data):
    """A table says of its rows what an image of one column says of its pixels, whatever the window."""
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 6))
    kind = data.draw(st.sampled_from(["f4", "f8", "u1", "i2", ">f4", "?"]))
    X = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 4, (rows, columns))
    X = X.astype(kind)
    if X.dtype.kind == "f":
        X.flat[data.draw(st.integers(0, X.size - 1))] = np.nan
    keys = {
        "nodata": data.draw(st.sampled_from([None, 0.0, 3.0])),
        "scale": data.draw(st.sampled_from(["auto", 0.5])),
        "bad_bands": [1] if columns > 1 else [],
    }
    np.save(tmp_path / "table.npy", X)
    np.save(tmp_path / "thin.npy", np.stack([X, X], axis=1))
    start = data.draw(st.integers(0, rows - 1))
    window = start, data.draw(st.integers(start + 1, rows))
    values, valid = scene("table.npy", **keys).read(*window)
    other, known = scene("thin.npy", **keys).read(*window)
    np.testing.assert_array_equal(values[:, 0], other[:, 0])
    np.testing.assert_array_equal(valid[:, 0], known[:, 0])


def test_more_bands_than_a_manifest_can_say_are_refused(tmp_path, scene):
    with open(tmp_path / "a.npy", "wb") as stream:
        header = {"descr": "<i2", "fortran_order": False, "shape": (3, 4, 2**33)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + 3 * 4 * 2**34)
    with pytest.raises(SceneError, match=r"8,589,934,592 bands; 1,048,576 can be used"):
        scene("a.npy")
