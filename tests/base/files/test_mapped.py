import numpy as np
import pytest

from eigenscape.base.files.mapped import attach_memmap, create_memmap


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_attach_memmap__a_file_that_was_cut_off_is_neither_mapped_nor_lengthened(tmp_path, mode):
    path = tmp_path / "data"
    create_memmap(path, (10, 3), np.float32)
    assert attach_memmap(path, (10, 3), np.float32, mode).shape == (10, 3)
    with path.open("r+b") as stream:
        stream.truncate(100)
    with pytest.raises(ValueError, match="mmap length is greater than file size"):
        attach_memmap(path, (10, 3), np.float32, mode)
    assert path.stat().st_size == 100
