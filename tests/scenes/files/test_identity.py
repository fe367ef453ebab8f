import os
import warnings

import numpy as np
import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning

from eigenscape.errors import SceneError
from eigenscape.scenes.files.identity import file_identity, told_links


@pytest.fixture
def identify(tmp_path):
    return lambda name: file_identity(name, lambda path: str(tmp_path / path))


def rewrite(path, text):
    """Change the content, but neither the size nor the time of change."""
    state = path.stat()
    path.write_bytes(text)
    assert path.stat().st_size == state.st_size
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_file_identity__follows_content_and_time(tmp_path, identify):
    path = tmp_path / "a.dat"
    path.write_bytes(b"one")
    first = identify("a.dat")
    assert identify("a.dat") == first
    rewrite(path, b"two")
    second = identify("a.dat")
    assert second != first
    os.utime(path, (1, 1))
    assert identify("a.dat") != second
    path.write_bytes(b"three")
    assert identify("a.dat") != first


def test_file_identity__sees_the_end_of_a_large_file(tmp_path, identify):
    path = tmp_path / "a.dat"
    path.write_bytes(bytes(300_000))
    first = identify("a.dat")
    rewrite(path, bytes(299_999) + b"x")
    assert identify("a.dat") != first


def test_file_identity__a_moved_file_is_the_same(tmp_path, identify):
    path = tmp_path / "a.dat"
    path.write_bytes(b"one")
    (tmp_path / "a.hdr").write_text("header")
    first = identify("a.dat")
    (tmp_path / "deep").mkdir()
    for name in ("dat", "hdr"):
        (tmp_path / f"a.{name}").rename(tmp_path / "deep" / f"b.{name}")
    assert identify("deep/b.dat") == first


@pytest.mark.parametrize("name", ["a.hdr", "a.tfw", "a.prj", "a.dbf", "a.XML"])
def test_file_identity__sidecars_count(tmp_path, identify, name):
    (tmp_path / "a.dat").write_bytes(b"one")
    alone = identify("a.dat")
    (tmp_path / name).write_text("header")
    beside = identify("a.dat")
    assert beside != alone
    (tmp_path / name).write_text("header of another length")
    assert identify("a.dat") != beside


@pytest.mark.parametrize("name", ["a.dat.hdr", "a.dat.aux.xml", "a.dat.msk"])
def test_file_identity__sidecars_named_after_the_whole_file_count(tmp_path, identify, name):
    (tmp_path / "a.dat").write_bytes(b"one")
    alone = identify("a.dat")
    (tmp_path / name).write_text("header")
    assert identify("a.dat") != alone


def test_file_identity__sidecars_of_a_name_without_ending_count(tmp_path, identify):
    (tmp_path / "scene").write_bytes(b"one")
    alone = identify("scene")
    (tmp_path / "scene.hdr").write_text("header")
    assert identify("scene") != alone


RPC = "".join(
    f"{name}: 1\n"
    for name in (
        *(f"{one}_{kind}" for one in ("LINE", "SAMP", "LAT", "LONG", "HEIGHT") for kind in ("OFF", "SCALE")),
        *(f"{one}_{part}_COEFF_{number}" for one in ("LINE", "SAMP") for part in ("NUM", "DEN")
          for number in range(1, 21)),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "name", "other", "text"),
    [
        ("GTiff", "a.tif", "a.wld", "30\n0\n0\n-30\n500015\n5999985\n"),
        ("GTiff", "a.tif", "a.tifw", "30\n0\n0\n-30\n500015\n5999985\n"),
        ("PNG", "a.png", "a.pgw", "30\n0\n0\n-30\n500015\n5999985\n"),
        ("GTiff", "a.tif", "a_RPC.TXT", RPC),
    ],
    ids=["wld", "tifw", "pgw", "RPC"],
)
def test_file_identity__what_gdal_reads_beside_a_raster_counts(
    tmp_path, identify, driver, name, other, text
):
    write_raster(tmp_path / name, driver)
    alone = identify(name)
    (tmp_path / other).write_text(text)
    beside = identify(name)
    assert beside != alone
    rewrite(tmp_path / other, text.replace("1", "2").encode())
    assert identify(name) != beside


@pytest.mark.parametrize(
    ("driver", "written", "given", "data"),
    [
        ("ENVI", "a.dat", "a.hdr", "a.dat"),
        ("RRASTER", "a.grd", "a.grd", "a.gri"),
    ],
)
def test_file_identity__data_beside_a_header_count(tmp_path, driver, written, given, data):
    def identify():
        return file_identity(given, lambda path: str(tmp_path / path), "scene.labels")

    write_raster(tmp_path / written, driver)
    first = identify()
    rewrite(tmp_path / data, bytes(len((tmp_path / data).read_bytes())))
    assert identify() != first


def test_file_identity__a_name_that_is_not_utf_8(tmp_path, identify):
    name = os.fsdecode(b"b\xff.npy")
    (tmp_path / name).write_bytes(b"one")
    assert identify(name)


def write_raster(path, driver):
    """Write a raster of 4 x 5 pixels that lies nowhere."""
    # Said of what is written, and no fault of it.
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    with rasterio.open(path, "w", driver=driver, height=4, width=5, count=1, dtype="uint8") as file:
        file.write(np.full((1, 4, 5), 3, np.uint8))


def test_told_links__names_what_only_the_target_has_beside_it(tmp_path):
    (tmp_path / "store").mkdir()
    write_raster(tmp_path / "store" / "1.tif", "GTiff")
    link = tmp_path / "a.tif"
    link.symlink_to("store/1.tif")
    assert told_links([str(link)]) == ()
    (tmp_path / "store" / "1.tfw").write_text("30\n0\n0\n-30\n500015\n5999985\n")
    assert told_links([str(tmp_path / "store" / "1.tif")]) == ()
    (said,) = told_links([str(link)])
    assert said.startswith(f"{link} is a symbolic link, and 1.tfw beside its target is not read.")
    (tmp_path / "a.tfw").symlink_to("store/1.tfw")
    assert told_links([str(link)]) == ()


def test_file_identity__other_files_do_not_count(tmp_path, identify):
    (tmp_path / "a[1].dat").write_bytes(b"one")
    first = identify("a[1].dat")
    for name in ("a[1].txt", "b.hdr", "a1.hdr", "a[1]b.hdr", "a[1].py"):
        (tmp_path / name).write_text("x")
    assert identify("a[1].dat") == first


def test_file_identity__directory(tmp_path, identify):
    folder = tmp_path / "a.zarr" / "c"
    folder.mkdir(parents=True)
    np.save(folder / "0.npy", np.zeros(3))
    first = identify("a.zarr")
    np.save(folder / "1.npy", np.zeros(3))
    second = identify("a.zarr")
    assert second != first
    rewrite(folder / "1.npy", (folder / "1.npy").read_bytes()[:-1] + b"\1")
    assert identify("a.zarr") != second


def test_file_identity__url_and_data_set():
    assert file_identity("s3://bucket/a.tif", str) != file_identity("s3://bucket/b.tif", str)
    pytest.importorskip("tensorly")
    first = file_identity("indian-pines", str)
    assert file_identity("indian-pines", lambda path: f"/elsewhere/{path}") == first


def test_file_identity__absent_file(identify):
    with pytest.raises(SceneError, match=r"absent\.tif"):
        identify("absent.tif")
    with pytest.raises(SceneError, match=r"indian-pines"):
        identify("indian-pins")


def test_file_identity__sees_a_stretch_in_the_midst_of_a_large_file(tmp_path, identify):
    path, size = tmp_path / "a.dat", 5_000_000
    path.write_bytes(bytes(size))
    first, stretch = identify("a.dat"), size // 64
    for start in (70_000, 1_234_567, size - 66_000 - stretch):
        rewrite(path, bytes(start) + b"x" * stretch + bytes(size - start - stretch))
        assert identify("a.dat") != first


def test_file_identity__full_sees_every_byte_and_no_time(tmp_path):
    path = tmp_path / "a.dat"

    def identify():
        return file_identity("a.dat", lambda name: str(tmp_path / name), full=True)

    path.write_bytes(bytes(5_000_000))
    first = identify()
    os.utime(path, (1, 1))
    assert identify() == first
    rewrite(path, bytes(1_000_000) + b"x" + bytes(3_999_999))
    assert identify() != first


@pytest.mark.parametrize("full", [False, True])
def test_file_identity__of_a_directory(tmp_path, full):
    (tmp_path / "a.zarr" / "c").mkdir(parents=True)
    for number in range(100):
        (tmp_path / "a.zarr" / "c" / str(number)).write_bytes(bytes(200_000))

    def identify():
        return file_identity("a.zarr", lambda name: str(tmp_path / name), full=full)

    first = identify()
    assert identify() == first
    # One block of each file at least: the one in its midst.
    rewrite(tmp_path / "a.zarr" / "c" / "7", bytes(99_000) + b"x" * 2000 + bytes(99_000))
    assert identify() != first


def test_file_identity__of_a_vrt_is_that_of_its_sources_too(tmp_path, identify):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.tif").write_bytes(b"one")
    for name, source in (("a.vrt", "deep/a.vrt"), ("deep/a.vrt", "b.tif")):
        (tmp_path / name).write_text(
            f'<VRTDataset><SourceFilename relativeToVRT="1">{source}</SourceFilename></VRTDataset>'
        )
    first = identify("a.vrt")
    assert identify("a.vrt") == first
    rewrite(tmp_path / "deep" / "b.tif", b"two")
    assert identify("a.vrt") != first
