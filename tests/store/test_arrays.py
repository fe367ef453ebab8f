import os
from contextlib import nullcontext

import numpy as np
import pytest

from eigenscape.base.files.mapped import (
    attach_memmap,
    clear_scratch,
    create_memmap,
    read_raw,
    save_array,
    save_raw,
    scratch_arrays,
    write_range,
)
from eigenscape.base.memory import ROW_TILE
from eigenscape.store.arrays import attach_whole, chunk_rows, open_array, open_memmap
from eigenscape.store.workspace import Workspace


def test_create_memmap__of_two_at_a_time_neither_takes_back_what_the_other_has(
    tmp_path, monkeypatch
):
    path = tmp_path / "x"
    create_memmap(path, (10,), np.float32)
    attach_memmap(path, (10,), np.float32, "r+")[:5] = 1
    # What a network file system says of a name may be older than the file.
    monkeypatch.setattr("pathlib.Path.exists", lambda self: False)
    create_memmap(path, (10,), np.float32)
    np.testing.assert_array_equal(attach_memmap(path, (10,), np.float32), [1] * 5 + [0] * 5)
    monkeypatch.undo()
    # One that was begun with another size gets its own.
    create_memmap(path, (4,), np.float32)
    assert path.stat().st_size == 16


@pytest.mark.parametrize("mapped", [True, False])
def test_scratch_arrays__are_gone_after_the_block_whatever_happens(tmp_path, mapped):
    def fail():
        with scratch_arrays(tmp_path if mapped else None) as zeros:
            one, two = (zeros((3, 2), np.float32) for _ in range(2))
            one[:] = 1
            np.testing.assert_array_equal(two, np.zeros((3, 2)))
            assert len(list(tmp_path.iterdir())) == 2 * mapped
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_clear_scratch__of_killed_tasks_alone(tmp_path):
    scratch = scratch_arrays(tmp_path)
    scratch.__enter__()((2,), np.float32)
    (tmp_path / "row.npy").touch()
    clear_scratch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["row.npy"]
    scratch.__exit__(None, None, None)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5), (0, 4)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.bool_, np.uint16])
def test_save_array__as_numpy_reads_it(tmp_path, rng, shape, dtype):
    array = (4 * rng.random(shape)).astype(dtype)
    save_array(tmp_path / "x.npy", array)
    found = np.load(tmp_path / "x.npy")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array)


def test_save_array__of_a_view(tmp_path):
    array = np.arange(24).reshape(4, 6)[::2, 1:4]
    save_array(tmp_path / "x.npy", array)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), array)


def test_save_array__never_passes_over_a_full_disk(monkeypatch):
    monkeypatch.setattr("eigenscape.base.files.mapped.written_whole", nullcontext)
    with pytest.raises(OSError, match="No space left"):
        save_array("/dev/full", np.arange(3))


@pytest.mark.parametrize("older", [True, False])
def test_save_array__is_whole_or_did_not_happen(tmp_path, monkeypatch, older):
    path = tmp_path / "x.npy"
    if older:
        save_array(path, np.arange(5))
    write_header = np.lib.format.write_array_header_1_0

    def fail_after(stream, header):
        write_header(stream, header)
        raise OSError("in the midst")

    monkeypatch.setattr("numpy.lib.format.write_array_header_1_0", fail_after)
    with pytest.raises(OSError, match="in the midst"):
        save_array(path, np.arange(1000))
    assert list(tmp_path.iterdir()) == ([path] if older else [])
    if older:
        np.testing.assert_array_equal(np.load(path), np.arange(5))


def test_create_memmap__reserves_its_space(tmp_path):
    path = tmp_path / "raw"
    create_memmap(path, (1000, 7), np.float32)
    assert path.stat().st_blocks * 512 >= 28_000
    attach_memmap(path, (1000, 7), np.float32, "r+")[999] = 5
    create_memmap(path, (1000, 7), np.float32)  # kept: the second attempt finds the first's work
    assert attach_memmap(path, (1000, 7), np.float32)[999, 6] == 5


@pytest.mark.parametrize("width", [None, 1, 5])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64])
def test_read_raw__returns_a_range_of_what_was_saved(tmp_path, rng, width, dtype):
    array = (100 * rng.random((30,) if width is None else (30, width))).astype(dtype)
    save_raw(tmp_path / "raw", array)
    for start, stop in ((0, 30), (3, 17), (29, 30), (4, 4), (30, 30)):
        found = read_raw(tmp_path / "raw", dtype, start, stop, width)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, array[start:stop])
    # What was read can be changed.
    found = read_raw(tmp_path / "raw", dtype, 0, 30, width)
    found += 1


def test_read_raw__of_no_rows(tmp_path):
    save_raw(tmp_path / "raw", np.zeros((0, 4), np.float32))
    assert (tmp_path / "raw").stat().st_size == 0
    assert read_raw(tmp_path / "raw", np.float32, 0, 0, 4).shape == (0, 4)


def test_save_raw__of_a_view_and_over_an_older_file(tmp_path):
    save_raw(tmp_path / "raw", np.arange(1000))
    array = np.arange(24).reshape(4, 6)[::2, 1:4]
    save_raw(tmp_path / "raw", array)
    assert (tmp_path / "raw").stat().st_size == array.nbytes
    np.testing.assert_array_equal(read_raw(tmp_path / "raw", array.dtype, 0, 2, 3), array)


def test_save_raw__never_passes_over_a_full_disk():
    with pytest.raises(OSError, match="No space left"):
        save_raw("/dev/full", np.arange(3))


@pytest.mark.parametrize("shape", [(7,), (7, 3), (0,)])
def test_attach_whole__writes_what_zarr_and_maps_read(tmp_path, shape):
    workspace = Workspace(tmp_path / "work")
    path = workspace.create_array("x", shape, np.float32, whole=True)
    np.testing.assert_array_equal(open_memmap(path), np.zeros(shape))
    attach_whole(path)[2:5] = 8
    # Another task goes on where this one ended.
    attach_whole(path)[5:] = 9
    expected = np.zeros(shape, np.float32)
    expected[2:5], expected[5:] = 8, 9
    np.testing.assert_array_equal(open_array(path)[...], expected)
    np.testing.assert_array_equal(open_memmap(path), expected)


@pytest.mark.parametrize("rows", [1, 4096, 10**5, 10**6, 10**8, 10**10])
@pytest.mark.parametrize("row_bytes", [1, 4, 440, 4000, 10**6])
def test_chunk_rows__whole_tiles_and_few_chunks(rows, row_bytes):
    chunk = chunk_rows(rows, row_bytes)
    assert chunk % ROW_TILE == 0
    assert rows / chunk <= 520 or chunk == ROW_TILE
    # About 8 MiB, unless one tile is larger or there would be too many chunks.
    assert chunk * row_bytes <= 12 * 2**20 or chunk == ROW_TILE or rows / chunk > 340


def test_chunk_rows__eight_mebibytes():
    assert chunk_rows(10**6, 440) * 440 == pytest.approx(8 * 2**20, rel=0.15)


def test_open_memmap__whole_empty_and_fill(tmp_path):
    workspace = Workspace(tmp_path / "work")
    path = workspace.create_array("x", (7, 3), np.int32, whole=True)
    np.testing.assert_array_equal(open_memmap(path), np.zeros((7, 3)))
    values = np.arange(21, dtype=np.int32).reshape(7, 3)
    open_array(path)[...] = values
    mapped = open_memmap(path)
    np.testing.assert_array_equal(mapped, values)
    assert not mapped.flags.writeable
    empty = workspace.create_array("e", (0,), np.int32, whole=True)
    assert open_memmap(empty).shape == (0,)


@pytest.mark.parametrize(("shape", "dtype"), [((9, 3), "f4"), ((9,), "f8"), ((9, 2), "?")])
@pytest.mark.parametrize(("start", "stop"), [(0, 9), (2, 5), (8, 9), (4, 4)])
def test_write_range__changes_these_rows_alone(tmp_path, rng, shape, dtype, start, stop):
    path = tmp_path / "raw"
    create_memmap(path, shape, dtype)
    expected = rng.integers(0, 2, shape).astype(dtype)
    attach_memmap(path, shape, dtype, "r+")[:] = expected
    rows = rng.integers(0, 2, (stop - start, *shape[1:])).astype(dtype)
    expected[start:stop] = rows
    write_range(path, start, np.asfortranarray(rows))
    np.testing.assert_array_equal(attach_memmap(path, shape, dtype), expected)
    assert path.stat().st_size == expected.nbytes


def test_write_range__goes_on_where_the_system_stopped(tmp_path, monkeypatch):
    path, pwrite = tmp_path / "raw", os.pwrite
    create_memmap(path, (40, 5), "f4")
    monkeypatch.setattr("os.pwrite", lambda file, data, place: pwrite(file, data[:77], place))
    rows = np.arange(150, dtype="f4").reshape(30, 5)
    write_range(path, 10, rows)
    np.testing.assert_array_equal(attach_memmap(path, (40, 5), "f4")[10:], rows)


def test_write_range__never_passes_over_a_full_disk():
    with pytest.raises(OSError, match="No space left"):
        write_range("/dev/full", 0, np.ones(5))


def test_open_memmap__leaves_other_files_alone(tmp_path):
    path = Workspace(tmp_path / "work").create_array("x", (7, 3), np.int32, whole=True)
    attach_whole(path)[:] = 5
    # A file that was deleted while it was open stays on NFS.
    for folder in ("c", "c/0"):
        (tmp_path / "work" / "store" / "x" / folder / ".nfs0001").write_bytes(bytes(200))
    np.testing.assert_array_equal(open_memmap(path), np.full((7, 3), 5))
