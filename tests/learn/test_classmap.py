import numpy as np
import pytest

from eigenscape.learn.classmap import ClassMap, class_numbers
from eigenscape.store.arrays import open_array
from eigenscape.store.workspace import Workspace


def test_class_numbers__of_places_and_of_none():
    places = np.array([2, 0, -1, 1, -5])
    np.testing.assert_array_equal(class_numbers(places, [4, 9, 65535]), [65535, 4, 0, 9, 0])
    assert class_numbers(places, [4, 9, 65535]).dtype == np.uint16


@pytest.mark.parametrize("entropy", [True, False])
def test_class_map__blocks_make_up_the_arrays(tmp_path, rng, entropy, monkeypatch):
    monkeypatch.setattr("eigenscape.base.memory.ROW_TILE", 64)
    monkeypatch.setattr("eigenscape.store.arrays.ROW_TILE", 64)
    monkeypatch.setattr("eigenscape.store.arrays._CHUNK_ROWS", 64)
    workspace = Workspace(tmp_path)
    class_map = ClassMap.create(workspace, 500, entropy=entropy)
    names = ["class", "confidence", "entropy"][: 3 if entropy else 2]
    assert workspace.arrays() == tuple(sorted(f"labels/{name}" for name in names))
    values = [rng.integers(0, 9, 500).astype(np.uint16), *rng.random((2, 500), np.float32)]
    values = values[: len(names)]
    ranges = class_map.blocks(64 * 100, 100)
    assert len(ranges) > 4
    for start, stop in ranges:
        class_map.write(start, *(value[start:stop] for value in values))
    for path, name, value in zip(class_map.paths, names, values, strict=True):
        stored = open_array(path)
        assert path.endswith(f"labels/{name}")
        assert stored.dtype == value.dtype
        np.testing.assert_array_equal(stored[...], value)
    # An earlier attempt's arrays stay.
    again = ClassMap.create(workspace, 500, entropy=entropy)
    np.testing.assert_array_equal(open_array(again.paths[0])[...], values[0])


def test_class_map__every_array_is_written(tmp_path):
    class_map = ClassMap.create(Workspace(tmp_path), 10)
    with pytest.raises(ValueError, match="shorter"):
        class_map.write(0, np.zeros(10), np.zeros(10))
