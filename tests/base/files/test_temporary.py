"""Temporary directories of processes that live, and of those that were killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import eigenscape
from eigenscape.base.files import temporary
from eigenscape.base.files.temporary import sweep, temporary_place
from eigenscape.estimators.folders import RunFolder

HOLD = """
import sys, time, tempfile
from pathlib import Path
from eigenscape.base.files import temporary
tempfile.tempdir = sys.argv[1]
temporary.SHARED = Path(sys.argv[2])
import numpy as np
import eigenscape
from eigenscape.estimators import folders
folders.SHARED = temporary.SHARED
small = eigenscape.LaplacianEigenmaps(1).fit(np.random.default_rng(0).normal(size=(40, 3)))
large = folders.RunFolder()
(large.path / "file").write_text("text")
print(small.run_, large.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A place for temporary files and one for shared memory, of this process and its children."""
    made = tmp_path / "tmp", tmp_path / "shm"
    for place in made:
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made[0]))
    monkeypatch.setattr(temporary, "SHARED", made[1])
    return made


@pytest.fixture
def holder(places):
    """A process that has fitted an estimator and holds it; and where its files lie."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, *map(str, places)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process, [Path(text) for text in process.stdout.readline().split()]
        process.kill()


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_fit__sweeps_what_killed_processes_left(places, holder, end):
    process, left = holder
    assert [path.parents[1] for path in left] == list(reversed(places))
    model = eigenscape.LaplacianEigenmaps(1).fit(np.random.default_rng(1).normal(size=(40, 3)))
    assert all(path.is_dir() for path in left), "nothing of a living process is deleted"
    process.send_signal(end)
    process.wait(60)
    assert all(path.is_dir() for path in left), "it had no time to delete them"
    eigenscape.eigenpairs(csr_array(np.ones((5, 5)) - np.eye(5)), 1)
    assert not any(path.parent.exists() for path in left)
    assert model.run_.is_dir()
    assert model.transform(np.zeros((1, 3))).shape == (1, 1)


@pytest.mark.slow
def test_exit__leaves_nothing(places, holder):
    process, left = holder
    process.stdin.close()
    assert process.wait(60) == 0
    assert not any(path.exists() for path in left)
    assert not any(list(place.iterdir()) for place in places)


def test_sweep__leaves_what_is_not_its_own(places):
    place = places[0]
    kept = [place / name for name in ("other-1", "eigenscape-no-lock", "eigenscape-file")]
    kept[0].mkdir()
    (kept[0] / "lock").touch()
    kept[1].mkdir()
    kept[2].touch()
    target = place / "elsewhere"
    target.mkdir()
    (target / "lock").touch()
    (place / "eigenscape-link").symlink_to(target)
    own = temporary_place()
    dead = place / "eigenscape-dead"
    dead.mkdir()
    (dead / "lock").touch()
    sweep(place)
    sweep(place / "nowhere")
    assert not dead.exists()
    assert all(path.exists() for path in [*kept, target, own, place / "eigenscape-link"])


def test_sweep__spares_other_users(places, monkeypatch):
    home = places[0] / "eigenscape-theirs"
    home.mkdir()
    (home / "lock").touch()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    sweep(places[0])
    assert home.exists()


def test_temporary_place__one_for_a_process_and_again_if_it_was_deleted(places):
    first = temporary_place()
    assert temporary_place() == first
    (first / "lock").unlink()
    assert temporary_place() != first


def test_temporary_place__of_a_fork_is_its_own(places):
    folder = RunFolder()
    child = os.fork()
    if child == 0:
        try:
            own = RunFolder().path.parent != folder.path.parent and folder.path.exists()
        finally:
            os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert folder.path.exists()
