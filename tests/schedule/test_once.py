import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import tomlkit

from eigenscape.base.files.tables import read_table
from eigenscape.base.process.signals import StoppedBySignal, stopped_by_signals
from eigenscape.batch.sources import Source
from eigenscape.schedule.entry import Schedule, make_schedule
from eigenscape.schedule.once import LARGEST_LOG, OLD_LOGS, rotate, run_once
from eigenscape.store.lock import hold


@pytest.fixture
def schedule(tiny_job, monkeypatch):
    monkeypatch.chdir(tiny_job.parent)
    return make_schedule(Source(jobs=(tiny_job,)), keep=1)


@pytest.mark.slow
def test_run_once__logs_the_run_and_prunes(schedule, make_run):
    old, new = make_run("tiny", "1", 1), make_run("tiny", "2", 2)
    other = [make_run("other", key, 1) for key in "12"]
    assert run_once(schedule) == 2
    log = (schedule.directory / "schedule.log").read_text()
    lines = log.splitlines()
    assert "schedule begins: " in lines[0]
    assert "no such file" in log
    assert "schedule ends: exit status 2 after " in log
    assert lines[-1].endswith(f"schedule deleted: {old}")
    assert not old.exists()
    assert new.exists()
    assert all(path.exists() for path in other)


def test_run_once__does_not_start_beside_one_that_works(schedule):
    schedule.directory.mkdir(parents=True)
    with hold(schedule.directory, lambda _: None):
        assert run_once(schedule) == 0
    log = (schedule.directory / "schedule.log").read_text()
    assert "schedule not run: " in log
    assert "is being worked on by process" in log
    assert "begins" not in log


@pytest.mark.slow
def test_run_once__a_batch_in_a_directory_of_its_own(tmp_path, monkeypatch):
    """The lock and the log of the schedule are there before the batch."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.random.default_rng(0).random((16, 20, 8)).astype(np.float32))
    template = {
        "features": {"method": "none"}, "neighbors": {"method": "exact", "k": 6},
        "learn": {"method": "spectral-clustering", "clusters": 3}, "output": {"formats": []},
    }  # fmt: skip
    (tmp_path / "many.toml").write_text(tomlkit.dumps(template))
    nightly = make_schedule(Source(template=tmp_path / "many.toml", scenes="*.npy"), keep=1)
    for state in ("done", "skipped"):
        assert run_once(nightly) == 0, (nightly.directory / "schedule.log").read_text()
        (row,) = read_table(tmp_path / "runs" / "many" / "batch.csv")
        assert (row["scene"], row["state"]) == ("a", state)


def test_rotate__keeps_a_few_logs(tmp_path):
    log = tmp_path / "schedule.log"
    rotate(log)
    for number in range(OLD_LOGS + 2):
        log.write_text(str(number).ljust(LARGEST_LOG))
        rotate(log)
        assert not log.exists()
    log.write_text("short")
    rotate(log)
    kept = {path.name: path.read_text().strip() for path in tmp_path.iterdir()}
    newest = OLD_LOGS + 1
    assert kept == {
        "schedule.log": "short",
        **{f"schedule.log.{age}": str(newest + 1 - age) for age in range(1, OLD_LOGS + 1)},
    }


CHILD = """
import pathlib, signal, sys, time

def end(*_):
    pathlib.Path("cleaned").touch()
    sys.exit(7)

signal.signal(signal.SIGTERM, end)
pathlib.Path("ready").touch()
time.sleep(60)
"""


def test_run_once__lets_the_run_end_by_itself(schedule, tmp_path, monkeypatch):
    monkeypatch.setattr(Schedule, "command", lambda self: [sys.executable, "-c", CHILD])

    def stop():
        end = time.monotonic() + 30
        while not (schedule.home / "ready").exists() and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(StoppedBySignal), stopped_by_signals():
        run_once(schedule)
    thread.join()
    assert (schedule.home / "cleaned").exists()
    assert ": exit status 7" in (schedule.directory / "schedule.log").read_text()
