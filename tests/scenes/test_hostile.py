"""Input that cannot work is a SceneError that says what, where and how to mend it."""

import logging
import struct
from pathlib import Path

import numpy as np
import pytest
import rasterio
import zarr
from scipy.io import savemat

from eigenscape.datasets import cache
from eigenscape.errors import SceneError
from eigenscape.job.options import SceneOptions
from eigenscape.scenes.open import open_scene

CUBE = np.random.default_rng(0).integers(0, 1000, (60, 40, 12)).astype("uint16")


def cut(path, share=0.5):
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    "kind", ["tif", "deflate.tif", "img", "npy", "npz", "mat", "73.mat", "zarr"]
)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_file(tmp_path, write, scene, kind, share, capfd, caplog):
    caplog.set_level(logging.CRITICAL, "rasterio")
    path = tmp_path / f"scene.{kind}"
    bands = CUBE.transpose(2, 0, 1)
    if kind.endswith("tif"):
        write(path.name, bands, **({"compress": "deflate"} if "deflate" in kind else {}))
    elif kind == "img":
        write(path.name, bands, driver="ENVI")
    elif kind == "npy":
        np.save(path, CUBE)
    elif kind == "npz":
        np.savez_compressed(path, cube=CUBE)
    elif kind == "mat":
        savemat(path, {"cube": CUBE})
    elif kind == "73.mat":
        import h5py

        with h5py.File(path, "w", userblock_size=512) as file:
            file["cube"] = CUBE.T
    else:
        zarr.create_array(path, data=CUBE)
    cut(next(path.glob("c/0/0/0")) if kind == "zarr" else path, share)
    with pytest.raises(SceneError, match=r"truncated or damaged|file is truncated") as caught:
        scene(path.name).read(0, 60)
    assert path.name in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("none.tif", r"no such file.*Did you mean nine.tif"),
        ("indian-pine", r"Did you mean indian-pines"),
        ("empty.tif", r"0 bytes"),
        ("folder", r"is a directory"),
        (
            "words.tif",
            r"format is not supported.* needs an installed package with a reader of it\.$",
        ),
        ("words.mat", r"truncated or damaged"),
        ("words.npz", r"truncated or damaged"),
        (("nine.tif", "absent.tif"), r"absent.tif"),
        ((), r"list is empty"),
    ],
)
def test_bad_path(tmp_path, write, scene, path, words, capfd):
    write("nine.tif", CUBE[..., 0])
    (tmp_path / "empty.tif").touch()
    (tmp_path / "folder").mkdir()
    for name in ("words.tif", "words.mat", "words.npz"):
        (tmp_path / name).write_text("these are words, not numbers " * 40)
    with pytest.raises(SceneError, match=words):
        scene(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["absent.tif", "absent.gpkg", "absent.npy"])
def test_bad_labels_and_mask(write, labels, scene, tmp_path, name):
    path = write("scene.tif", CUBE.transpose(2, 0, 1))
    with pytest.raises(SceneError, match=f"{name}: no such file"):
        labels(path, labels=name)
    with pytest.raises(SceneError, match=f"{name}: no such file"):
        scene(path, mask=name)
    (tmp_path / name).write_text("words " * 100)
    with pytest.raises(SceneError, match="damaged"):
        labels(path, labels=name)


def test_unreadable_crs(write, scene, tmp_path):
    path = write("scene.tif", CUBE.transpose(2, 0, 1), crs=None)
    Path(path + ".aux.xml").write_text('<PAMDataset><SRS>GARBAGE["x"]</SRS></PAMDataset>')
    with pytest.raises(SceneError, match=r"cannot be read: GARBAGE.*gdal_edit.py -a_srs"):
        scene(path)
    envi = write("scene.img", CUBE.transpose(2, 0, 1), driver="ENVI")
    header = tmp_path / "scene.hdr"
    text = header.read_text()
    start = text.index("coordinate system string")
    end = text.index("}", start)
    header.write_text(text[:start] + "coordinate system string = {GARBAGE[1]" + text[end:])
    with pytest.raises(SceneError, match=r"cannot be read: GARBAGE"):
        scene(envi)


def test_complex_raster_and_variable(write, scene):
    with pytest.raises(SceneError, match="complex64"):
        scene(write("complex.tif", np.ones((2, 4, 4), "complex64")))
    with pytest.raises(SceneError, match=r"scene\.variable = 'x'"):
        scene(write("scene.tif", CUBE), variable="x")


def test_file_that_vanishes_between_open_and_read(write, scene):
    path = write("scene.tif", CUBE.transpose(2, 0, 1))
    opened = scene(path)
    Path(path).unlink()
    with pytest.raises(SceneError, match=r"scene\.tif"):
        opened.read(0, 3)


def test_registered_scene_without_its_package(scene, data_home, monkeypatch):
    monkeypatch.setattr(cache, "find_spec", lambda name: None)
    with pytest.raises(SceneError, match=r"eigenscape data fetch indian-pines.*\[examples\]"):
        scene("indian-pines")


def test_open_scene__unknown_epsg_code_in_geotiff_keys(tmp_path):
    path = tmp_path / "scene.tif"
    profile = {"driver": "GTiff", "height": 6, "width": 5, "count": 2, "dtype": "uint16"}
    with rasterio.open(
        path, "w", crs="EPSG:32633", transform=rasterio.Affine(30, 0, 3e5, 0, -30, 5e6), **profile
    ) as target:
        target.write(np.arange(60, dtype=np.uint16).reshape(2, 6, 5))
    data = path.read_bytes()
    known, unknown = (struct.pack("<HHHH", 3072, 0, 1, code) for code in (32633, 9999))
    assert known in data
    path.write_bytes(data.replace(known, unknown))
    with pytest.raises(SceneError, match="EPSG:9999"):
        open_scene(SceneOptions(path=str(path)), str)


def envi(tmp_path, change=None):
    """Write a small ENVI file and change its header's bytes."""
    CUBE.transpose(2, 0, 1).tofile(tmp_path / "scene.img")
    header = (
        b"ENVI\nsamples = 40\nlines = 60\nbands = 12\nheader offset = 0\ndata type = 12\n"
        b"interleave = bsq\nbyte order = 0\ndescription = {made}\n"
    )
    (tmp_path / "scene.hdr").write_bytes(change(header) if change else header)


@pytest.mark.parametrize("offset", ["1.5", "many", "-3", "9" * 25])
def test_envi_offset_that_is_none(tmp_path, scene, offset):
    envi(tmp_path, lambda header: header.replace(b"offset = 0", f"offset = {offset}".encode()))
    with pytest.raises(SceneError, match=r"scene\.img.*(header offset|truncated)"):
        scene("scene.img")


def test_envi_header_in_another_encoding(tmp_path, scene):
    envi(tmp_path)
    np.testing.assert_array_equal(scene("scene.img").read(0, 60)[0], CUBE)
    names = "band names = {" + ", ".join(["gem\u00e4\u00df"] * 12) + "}\n"
    envi(tmp_path, lambda header: header + names.encode("latin-1"))
    with pytest.raises(SceneError, match=r"scene\.img: its header is not in UTF-8"):
        scene("scene.img")
    envi(tmp_path, lambda header: header + names.encode())
    assert scene("scene.img").bands.names == ("gem\u00e4\u00df",) * 12


def test_messages_of_gdal_that_are_cut_within_a_letter(tmp_path, scene, capfd):
    """rasterio's log takes them for UTF-8, and printed a traceback beside the refusal."""
    (tmp_path / "scene.vrt").write_text(
        '<VRTDataset rasterXSize="16" rasterYSize="14"><VRTRasterBand dataType="Int16" band="1">'
        '<SimpleSource><SourceProperties \u00e9="16"/></SimpleSource></VRTRasterBand></VRTDataset>',
        encoding="utf-8",
    )
    with pytest.raises(SceneError, match=r"scene\.vrt"):
        scene("scene.vrt")
    assert "Traceback" not in capfd.readouterr().err


def test_objects_are_never_unpickled(tmp_path, scene):
    class Trap:
        def __reduce__(self):
            return (Path(tmp_path / "sprung").touch, ())

    objects = np.array([[Trap(), Trap()]], object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "b.npz", X=objects)
    np.savez(
        tmp_path / "c.npz",
        data=objects,
        indices=objects,
        indptr=objects,
        shape=[2, 2],
        format="csr",
    )
    for name, key in (("a.npy", None), ("b.npz", "X"), ("b.npz", None), ("c.npz", None)):
        with pytest.raises(SceneError, match=r"object|none that could be"):
            scene(name, variable=key).read(0, 1)
    assert not (tmp_path / "sprung").exists()


def test_npz_shorter_than_its_header_takes_no_memory(tmp_path, scene):
    import io
    import zipfile

    header = io.BytesIO()
    shape = (2**20, 2**10, 2**6)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cube.npy", header.getvalue() + bytes(1000))
    with pytest.raises(SceneError, match="shorter than its header says"):
        scene("a.npz").read(0, 1)


def test_more_pixels_than_blocks_can_list(tmp_path, scene):
    (tmp_path / "s.vrt").write_text(
        '<VRTDataset rasterXSize="2147483647" rasterYSize="2147483647">'
        '<VRTRasterBand dataType="Byte" band="1"/></VRTDataset>'
    )
    with pytest.raises(SceneError, match=r"2,147,483,647 x 2,147,483,647 pixels"):
        scene("s.vrt")


@pytest.mark.parametrize("version", [2, 3])
def test_npy__a_header_of_gigabytes_is_refused_before_room_is_made_for_it(
    tmp_path, scene, monkeypatch, version
):
    path = tmp_path / "scene.npy"
    np.save(path, CUBE)
    content = bytearray(path.read_bytes())
    content[6] = version
    path.write_bytes(content)
    monkeypatch.setattr(np, "load", None)  # which would make room
    with pytest.raises(SceneError, match=r"scene\.npy.*header is longer than the file"):
        scene(str(path))
