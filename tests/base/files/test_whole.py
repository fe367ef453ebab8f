import errno
import json
import os

import pytest

from eigenscape.base.files.whole import explain_write_errors, write_json, written_whole
from eigenscape.errors import OutputError


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("ENOSPC", "disk is full"),
        ("EDQUOT", "disk is full"),
        ("EFBIG", "larger than this process or the file system allows"),
        ("EROFS", "cannot be written"),
    ],
)
def test_explain_write_errors__says_where_and_what_to_do(tmp_path, number, words):
    code = getattr(errno, number)
    with (
        pytest.raises(OutputError, match=words) as caught,
        explain_write_errors(tmp_path),
    ):
        raise OSError(code, os.strerror(code))
    assert str(tmp_path) in str(caught.value)
    assert "output.directory" in str(caught.value)


def test_explain_write_errors__leaves_others_alone(tmp_path):
    with pytest.raises(FileNotFoundError), explain_write_errors(tmp_path):
        (tmp_path / "absent").read_text()


def test_write_json__old_or_new(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_json(path, {"old": 1})
    monkeypatch.setattr(json, "dump", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_json(path, {"new": 1})
    assert json.loads(path.read_text()) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_written_whole__puts_what_was_written_into_place(tmp_path):
    path = tmp_path / "x.npz"
    path.write_text("old")
    with written_whole(path) as temporary:
        # NumPy would add an ending that is not there.
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".npz")
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_written_whole__says_what_failed_when_nothing_was_written(tmp_path):
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "x"):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []
