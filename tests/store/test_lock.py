import errno
import fcntl
import shutil
import threading
from contextlib import ExitStack
from pathlib import Path

import filelock
import pytest

from eigenscape.errors import OutputError
from eigenscape.store.lock import hold, lock_holder
from machines.users import another_user, shared_directory


def test_hold__makes_a_directory_again_that_its_holder_deletes(tmp_path):
    directory, waiting = tmp_path / "run", threading.Event()
    directory.mkdir()
    found = []

    def work():
        with hold(directory, lambda sentence: waiting.set()):
            found.append(lock_holder(directory))

    with filelock.FileLock(directory / "lock"):
        thread = threading.Thread(target=work)
        thread.start()
        assert waiting.wait(10)
        hidden = directory.rename(tmp_path / ".deleted")
        shutil.rmtree(hidden)
    thread.join(10)
    assert not thread.is_alive()
    assert len(found) == 1
    assert found[0].startswith("process ")
    assert lock_holder(directory) is None


def test_hold__explains_a_full_disk(tmp_path, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OutputError, match="the disk is full"), hold(tmp_path, print):
        pass
    monkeypatch.undo()
    assert lock_holder(tmp_path) is None


@pytest.mark.parametrize("held", [True, False])
def test_hold__a_lock_of_another_user_is_refused_with_its_holder(held):
    with shared_directory() as path, ExitStack() as stack:
        path.chmod(0o777)
        hold_it = hold(path, print)
        hold_it.__enter__()
        (path / "lock").chmod(0o644)
        if held:
            stack.callback(hold_it.__exit__, None, None, None)
        else:
            hold_it.__exit__(None, None, None)
        words = r"process \d+ on .* works in it" if held else "no process works in it"
        refused = pytest.raises(OutputError, match=rf"belongs to another user.*; {words}\. Set")
        with another_user(), refused, hold(path, print):
            pass


def test_hold__does_not_wait_for_a_process_that_only_asks(tmp_path):
    (tmp_path / "lock").touch()
    said = []
    with (tmp_path / "lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        timer = threading.Timer(0.2, fcntl.flock, (asking, fcntl.LOCK_UN))
        timer.start()
        with hold(tmp_path, said.append):
            pass
        timer.join()
    assert said == []
