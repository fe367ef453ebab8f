import json

import numpy as np
import pytest

from eigenscape.base.files.sums import (
    crc_of,
    damaged,
    file_sum,
    holds,
    json_sum,
    range_sum,
    size_in,
    whole_sum,
)


def test_crc_of__is_crc32c_and_goes_on():
    assert crc_of(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert crc_of(b"56789", crc_of(b"1234")) == crc_of(b"123456789")
    array = np.arange(12, dtype="i2").reshape(3, 4)
    assert crc_of(array) == crc_of(array.tobytes())
    assert crc_of(array[:, ::2]) == crc_of(array[:, ::2].tobytes())
    assert crc_of(np.zeros((0, 3)), 7) == crc_of(b"", 7) == 7


@pytest.mark.parametrize("size", [0, 1, 2**17 - 1, 2**17, 2**17 + 1, 500_000])
def test_file_sum__of_any_size(tmp_path, size):
    content = np.random.default_rng(size).bytes(size)
    (tmp_path / "a").write_bytes(content)
    assert file_sum(tmp_path / "a") == whole_sum(size, crc_of(content))
    assert size_in(file_sum(tmp_path / "a")) == size


def test_holds__whole_files_and_ranges(tmp_path):
    path, content = tmp_path / "a", bytes(range(200))
    path.write_bytes(content)
    ranges = [range_sum(0, 50, crc_of(content[:50])), range_sum(70, 200, crc_of(content[70:]))]
    assert holds(path, ranges)
    assert holds(path, [file_sum(path)])
    assert holds(path, ["3:00000000", file_sum(path)])
    path.write_bytes(content[:60] + b"!" + content[61:])
    assert holds(path, ranges)
    path.write_bytes(content[:80] + b"!" + content[81:])
    assert not holds(path, ranges)
    path.write_bytes(content[:150])
    assert not holds(path, ranges)
    path.unlink()
    assert not holds(path, ranges)
    assert not holds(path, ["0:00000000"])


def test_damaged__names_files_in_their_order(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name)
    sums = {name: [file_sum(tmp_path / name)] for name in "cba"}
    assert damaged(tmp_path, sums) == []
    assert damaged(tmp_path, {}) == []
    (tmp_path / "a").write_text("x")
    (tmp_path / "c").unlink()
    assert damaged(tmp_path, sums) == ["c", "a"]


def test_json_sum__does_not_depend_on_the_layout():
    assert json_sum({"a": 1, "b": [2.5]}) == json_sum({"b": [2.5], "a": 1})
    assert json_sum({"a": 1}) != json_sum({"a": 2})


def test_json_sum__is_that_of_what_a_file_gives_back():
    """Numbers as keys sort as texts once they were written: "10" before "2"."""
    value = {number: "class" for number in range(1, 17)}
    assert json_sum(value) == json_sum(json.loads(json.dumps(value)))
