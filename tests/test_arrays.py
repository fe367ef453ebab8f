import numpy as np
import pytest

from eigenscape.arrays import attach_memmap, create_memmap, save_array


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


def test_save_array__never_passes_over_a_full_disk():
    with pytest.raises(OSError, match="No space left"):
        save_array("/dev/full", np.arange(3))


def test_create_memmap__reserves_its_space(tmp_path):
    path = tmp_path / "raw"
    create_memmap(path, (1000, 7), np.float32)
    assert path.stat().st_blocks * 512 >= 28_000
    attach_memmap(path, (1000, 7), np.float32, "r+")[999] = 5
    create_memmap(path, (1000, 7), np.float32)  # kept: the second attempt finds the first's work
    assert attach_memmap(path, (1000, 7), np.float32)[999, 6] == 5
