"""Strips by the blocks of files: a block is decoded once where the memory allows, with the same samples."""

import h5py
import numpy as np
import pytest
from rasterio._env import get_gdal_config

from eigenscape.base.blocks import blocks
from eigenscape.errors import SceneError
from eigenscape.scenes.formats.rasters.handles import chunk_cache_bytes, kept_open
from eigenscape.scenes.ingest.storage import block_row_bytes, decoding_bytes, strips_of
from inputs import products

HEIGHT, WIDTH, BANDS = 64, 32, 3
ROW = WIDTH * BANDS * 16
"""Bytes that a row takes while it is read."""


@pytest.fixture(params=["band", "pixel"])
def tiled(request, scene, write_tif, make_scene, tmp_path):
    cube = make_scene(HEIGHT, WIDTH, BANDS).cube
    write_tif(
        "tiled.tif", cube, tiled=True, blockxsize=16, blockysize=16, interleave=request.param,
        compress="deflate",
    )  # fmt: skip
    return request.param, scene(str(tmp_path / "tiled.tif"))


def rows_of(cut):
    return [stop - start for group in cut.groups for start, stop in group]


def test_strips_of__whole_blocks_where_they_fit(tiled):
    _, opened = tiled
    assert rows_of(strips_of(opened, 10**9)) == [64]
    assert rows_of(strips_of(opened, 40 * ROW)) == [32, 32]
    assert rows_of(strips_of(opened, 16 * ROW)) == [16] * 4
    assert all(len(group) == 1 for group in strips_of(opened, 16 * ROW).groups)


def test_strips_of__strips_of_a_row_of_blocks_together(tiled):
    kind, opened = tiled
    whole = 16 * WIDTH * BANDS * 4
    assert block_row_bytes(opened) == whole
    assert decoding_bytes(opened) == 2 * 16 * 16 * 4 * (BANDS if kind == "pixel" else 1)
    cut = strips_of(opened, 2 * whole)
    assert cut.kept_bytes == whole
    assert cut.rows == whole // ROW
    assert [(group[0][0], group[-1][1]) for group in cut.groups] == blocks(HEIGHT, 16)
    # Where the blocks do not fit, each strip decodes its own.
    small = strips_of(opened, 4 * whole // 3 - 1)
    assert (small.kept_bytes, set(map(len, small.groups))) == (0, {1})
    assert strips_of(opened, 0).rows == 1


def test_strips_of__chunks_of_a_product(tmp_path, scene):
    product = products.emit(tmp_path)
    opened = scene(str(product.path), drop_wavelengths="none")
    # Chunks of 4 rows, all columns, 12 bands; the mask file is stored in one piece.
    assert block_row_bytes(opened) == 4 * 16 * 12 * 4
    row = 16 * 12 * 16
    assert rows_of(strips_of(opened, 4 * row)) == [4, 4, 4, 4, 2]
    assert strips_of(opened, 3 * row).kept_bytes == 4 * 16 * 12 * 4
    assert strips_of(opened, 4 * 16 * 12 * 5).kept_bytes == 0
    with kept_open(10**6, 2):
        assert chunk_cache_bytes() == 2 * 10**6
        whole = np.concatenate([opened.read(*one)[0] for one in blocks(18, 3)])
    np.testing.assert_array_equal(whole, opened.read(0, 18)[0])
    assert chunk_cache_bytes() == 0


def test_kept_open__a_file_is_opened_once(tmp_path, scene, monkeypatch):
    product = products.neon(tmp_path / "product")
    opened = scene(str(product.path))
    count, init = [0], h5py.File.__init__

    def counted(self, *arguments, **keys):
        count[0] += isinstance(arguments[0], str)
        init(self, *arguments, **keys)

    monkeypatch.setattr(h5py.File, "__init__", counted)
    with kept_open(0, 1):
        for one in blocks(18, 3):
            opened.read(*one)
    assert count == [1]


def test_kept_open__bounds_the_cache_and_gives_it_back(tiled):
    _, opened = tiled
    before = get_gdal_config("GDAL_CACHEMAX")
    with kept_open(10**8, 3):
        assert get_gdal_config("GDAL_CACHEMAX") == 3 * 10**8
        with kept_open(0, 1):
            opened.read(0, 4)
        assert get_gdal_config("GDAL_CACHEMAX") == 3 * 10**8
    assert get_gdal_config("GDAL_CACHEMAX") == before


def test_kept_open__errors_name_their_file(tmp_path, scene, write_tif, make_scene):
    small = make_scene(HEIGHT, WIDTH, BANDS)
    for name in ("first.tif", "second.tif"):
        write_tif(name, small.cube, tiled=True, blockxsize=16, blockysize=16)
    first, second = (scene(str(tmp_path / name)) for name in ("first.tif", "second.tif"))
    whole = (tmp_path / "first.tif").read_bytes()
    (tmp_path / "first.tif").write_bytes(whole[: len(whole) // 2])

    def read():
        with kept_open(0, 1):
            second.read(0, 4)
            first.read(0, HEIGHT)

    with pytest.raises(SceneError, match=r"first\.tif"):
        read()
    second.read(0, HEIGHT)
