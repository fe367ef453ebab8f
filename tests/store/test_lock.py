import errno
import shutil
import threading
from pathlib import Path

import filelock
import pytest

from eigenscape.errors import OutputError
from eigenscape.store.lock import hold, lock_holder


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
