import numpy as np
import pytest

from eigenscape.store.arrays import chunk_rows, open_array, write_rows
from eigenscape.store.run import Run


def test_workspace__second_attempt_finds_the_array_and_its_content(tmp_path):
    first = Run(tmp_path).workspace("learn", "aa")
    with first.recorded():
        path = first.create_array("a/b", (5, 2), np.float32, dims=("sample", "mode"))
        write_rows(path, 0, np.full((5, 2), 3))
    second = Run(tmp_path).workspace("learn", "aa")
    assert second.create_array("a/b", (5, 2), np.float32) == path
    np.testing.assert_array_equal(open_array(path)[...], 3)
    assert open_array(path).metadata.dimension_names == ("sample", "mode")
    assert second.arrays() == ("a/b",)


def test_workspace__of_another_key_is_thrown_away(tmp_path):
    run = Run(tmp_path)
    old = run.workspace("learn", "aa")
    old.journal.finish({"x": 1}, {})
    other = run.workspace("learnt", "aa")
    new = run.workspace("learn", "bb")
    assert new.finished_blocks() == {}
    assert not old.path.exists()
    assert new.path.exists()
    assert other.path.exists()


def test_create_array__chunks(tmp_path):
    workspace = Run(tmp_path).workspace("learn", "aa")
    rows = 3 * 2**20
    long = open_array(workspace.create_array("long", (rows, 2), np.float32))
    assert long.chunks == (chunk_rows(rows, 8), 2)
    whole = open_array(workspace.create_array("whole", (rows,), np.float32, whole=True))
    assert whole.chunks == (rows,)
    empty = open_array(workspace.create_array("empty", (0, 3), np.float32))
    assert empty[...].shape == (0, 3)


def test_journal__keeps_results_and_outlives_a_torn_line(tmp_path):
    workspace = Run(tmp_path).workspace("learn", "aa")
    assert workspace.finished_blocks() == {}
    workspace.journal.finish({"read/0-5": {"samples": 3}}, {})
    workspace.journal.finish({"read/5-9": None}, {})
    with (workspace.path / "journal.jsonl").open("a") as stream:
        stream.write('{"block": "read/9-1')
    again = Run(tmp_path).workspace("learn", "aa")
    assert again.finished_blocks() == {"read/0-5": {"samples": 3}, "read/5-9": None}
    again.journal.finish({"read/9-12": 7}, {})
    found = Run(tmp_path).workspace("learn", "aa").finished_blocks()
    assert found == {"read/0-5": {"samples": 3}, "read/5-9": None, "read/9-12": 7}


@pytest.mark.parametrize("torn", ["{", '{"block": "b", "result": [1, 2', "\x00\x00", "\n\n"])
def test_journal__ignores_lines_that_are_no_entry(tmp_path, torn):
    workspace = Run(tmp_path).workspace("learn", "aa")
    workspace.journal.finish({"a": 1}, {})
    with (workspace.path / "journal.jsonl").open("a") as stream:
        stream.write(torn)
    assert Run(tmp_path).workspace("learn", "aa").finished_blocks() == {"a": 1}
