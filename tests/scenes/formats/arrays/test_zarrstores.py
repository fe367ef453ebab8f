"""Zarr stores of others: codecs that run code are refused, chunks that are not there are missing pixels."""

import json

import numpy as np
import pytest
import zarr

from eigenscape.errors import SceneError
from eigenscape.scenes.describe import describe_scene


@pytest.fixture
def store(tmp_path):
    """Write a cube of 10 x 12 x 4 in chunks of 5 x 4 x 4; return the cube."""

    def write(name="s.zarr", **options):
        cube = np.random.default_rng(0).integers(1, 100, (10, 12, 4)).astype("int16")
        zarr.create_array(tmp_path / name, data=cube, chunks=(5, 4, 4), **options)
        return cube

    return write


@pytest.mark.parametrize("version", [2, 3])
def test_missing_chunks_are_missing_pixels(tmp_path, scene, store, version):
    cube = store(zarr_format=version)
    assert len(describe_scene(scene("s.zarr"))) == 1
    (tmp_path / "s.zarr" / ("1.2.0" if version == 2 else "c/1/2/0")).unlink()
    opened = scene("s.zarr")
    assert "1 of 6 chunks are not in the store" in describe_scene(opened)[1]
    expected = np.ones((10, 12), bool)
    expected[5:, 8:] = False
    for start, stop in ((0, 10), (3, 7), (6, 10), (0, 5)):
        values, valid = opened.read(start, stop)
        np.testing.assert_array_equal(valid, expected[start:stop])
        np.testing.assert_array_equal(values[valid], cube[start:stop][valid])
        assert not values[~valid].any()


@pytest.mark.parametrize("axes", ["time y x band", "y x time band", "band time x y"])
def test_an_axis_of_one_entry_is_left_out(tmp_path, scene, axes):
    cube = np.random.default_rng(0).integers(1, 100, (10, 12, 4)).astype("int16")
    names = axes.split()
    stored = cube[..., np.newaxis].transpose(
        [["y", "x", "band", "time"].index(one) for one in names]
    )
    chunks = tuple(min(5, size) for size in stored.shape)
    zarr.create_array(tmp_path / "s.zarr", data=stored, chunks=chunks, dimension_names=names)
    opened = scene("s.zarr")
    for start, stop in ((0, 10), (3, 7)):
        values, valid = opened.read(start, stop)
        np.testing.assert_array_equal(values, cube[start:stop])
        assert valid.all()
    (tmp_path / "s.zarr/c" / "/".join("1" if one == "y" else "0" for one in names)).unlink()
    missing = np.argwhere(~scene("s.zarr").read(0, 10)[1])
    assert missing.min(axis=0).tolist() == [5, 0]
    assert missing.max(axis=0).tolist() == [9, 4]


def test_missing_shards(tmp_path, scene, store):
    store(shards=(5, 12, 4))
    (tmp_path / "s.zarr" / "c" / "0" / "0" / "0").unlink()
    assert not scene("s.zarr").read(0, 10)[1][:5].any()
    assert scene("s.zarr").read(5, 10)[1].all()


def test_missing_chunks_of_labels_and_masks(tmp_path, scene, labels, store):
    store()
    zarr.create_array(
        tmp_path / "gt.zarr", data=np.ones((10, 12), "u1"), chunks=(5, 6), fill_value=7
    )
    np.save(tmp_path / "table.npy", np.ones((12, 3)))
    zarr.create_array(
        tmp_path / "list.zarr", data=np.ones((1, 12), "u1"), chunks=(1, 4), fill_value=7
    )
    (tmp_path / "gt.zarr" / "c" / "1" / "0").unlink()
    (tmp_path / "list.zarr" / "c" / "0" / "1").unlink()
    read = labels("s.zarr", labels="gt.zarr").read(0, 10)
    assert not read[5:, :6].any()
    assert (read[:5] == 1).all()
    assert (read[:, 6:] == 1).all()
    assert scene("s.zarr", mask="gt.zarr").read(0, 10)[1].sum() == 90
    given = labels("table.npy", labels="list.zarr").read(0, 12).ravel()
    np.testing.assert_array_equal(given, [1] * 4 + [0] * 4 + [1] * 4)


@pytest.mark.parametrize("place", ["compressor", "filters", "codecs"])
def test_codecs_that_unpickle_are_refused(tmp_path, scene, store, place):
    store(zarr_format=3 if place == "codecs" else 2)
    file = tmp_path / "s.zarr" / ("zarr.json" if place == "codecs" else ".zarray")
    metadata = json.loads(file.read_text())
    if place == "codecs":
        metadata["codecs"][-1] = {"name": "numcodecs.pickle", "configuration": {}}
    else:
        codec = {"id": "pickle", "protocol": 5}
        metadata[place] = codec if place == "compressor" else [codec]
    file.write_text(json.dumps(metadata))
    with pytest.raises(SceneError, match="pickle"):
        scene("s.zarr").read(0, 10)


def test_usual_codecs_are_read(tmp_path, scene, store):
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    for number, codec in enumerate((None, BloscCodec(), GzipCodec(), ZstdCodec())):
        cube = store(f"{number}.zarr", compressors=codec)
        np.testing.assert_array_equal(scene(f"{number}.zarr").read(0, 10)[0], cube)


def test_missing_chunks_of_a_table_are_missing_samples(tmp_path, scene):
    table = np.random.default_rng(0).integers(1, 100, (30, 6)).astype("int16")
    zarr.create_array(tmp_path / "t.zarr", data=table, chunks=(10, 3))
    (tmp_path / "t.zarr" / "c" / "1" / "1").unlink()
    values, valid = scene("t.zarr").read(0, 30)
    expected = np.ones(30, bool)
    expected[10:20] = False
    np.testing.assert_array_equal(valid.ravel(), expected)
    np.testing.assert_array_equal(values[expected, 0], table[expected])
