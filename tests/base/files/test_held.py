"""Who holds a lock, asked by a user who may only read it, or not even that."""

import errno
import fcntl

import filelock
import pytest

from eigenscape.base.files.held import is_held
from eigenscape.errors import StoreError
from machines.users import another_user, shared_directory


@pytest.fixture
def shared():
    with shared_directory() as path:
        yield path


def test_is_held__is_seen_with_permission_to_read(shared):
    file = shared / "lock"
    assert not is_held(file)
    with filelock.FileLock(file):
        file.chmod(0o444)
        with another_user():
            assert is_held(file)
    with another_user():
        assert not is_held(file)
    file.chmod(0o600)
    with another_user(), pytest.raises(StoreError, match=r"lock: cannot be read .*Ask its owner"):
        is_held(file)


def test_is_held__two_who_ask_do_not_meet(tmp_path):
    file = tmp_path / "lock"
    file.touch()
    with file.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not is_held(file)


def test_is_held__says_that_a_file_system_has_no_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / "lock").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match=r"cannot be locked .No locks available.*with locks"):
        is_held(tmp_path / "lock")
