"""Ctrl-C: answered at once, and a second one ends the process."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest

from eigenscape.base.process.signals import stopped_by_ctrl_c
from waiting import wait_until

SLOW = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import typer
from eigenscape.cli.arguments import exit_status
def command():
    with exit_status():
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            print("leaving", flush=True)
            time.sleep({leaving})
typer.run(command)
"""
RUN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from eigenscape.cli.app import main
if __name__ == "__main__":
    main()
"""


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_ctrl_c__once():
    process = start(SLOW.format(leaving=0))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "eigenscape: stopping ... (Ctrl-C again ends it at once)" in err
    assert "eigenscape: stopped. The same command continues from here." in err


@pytest.mark.parametrize("place", ["callback", "finalizer"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c__where_python_drops_exceptions(place):
    """A callback of the garbage collector, a finalizer: the signal comes again once they are left."""

    def interrupted(phase="start", _=None):
        if phase == "start":
            signal.raise_signal(signal.SIGINT)

    def let_it_come():
        if place == "callback":
            gc.callbacks.append(interrupted)
            gc.collect()
            gc.callbacks.remove(interrupted)
        else:
            Final()
        time.sleep(10)

    class Final:
        def __del__(self):
            interrupted()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c():
            let_it_come()
    finally:
        gc.callbacks[:] = [one for one in gc.callbacks if one is not interrupted]
        gc.enable()
        signal.signal(signal.SIGINT, before)


def test_ctrl_c__twice():
    process = start(SLOW.format(leaving=60))
    assert process.stdout.readline() == "ready\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "leaving\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 20
    assert process.returncode == 130
    assert "ended. What is finished is kept" in err


@pytest.mark.slow
def test_ctrl_c__reaches_workers_too_and_the_driver_alone_answers(written, write_job, tmp_path):
    (tmp_path / "local.toml").write_text("kind = 'local'\nworkers = 2\n", encoding="utf-8")
    job = write_job(scene={"labels": "labels.tif"})
    arguments = ("run", job, "--on", tmp_path / "local.toml", "--run-dir", tmp_path / "run")
    process = start(RUN, *arguments)
    wait_until(lambda: (tmp_path / "run" / "store.zarr" / "samples").exists())
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "eigenscape: stopping ..." in err
    assert "Traceback" not in err


def test_ctrl_c__answers_of_callers_stay():
    def own(*_):
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        with stopped_by_ctrl_c():
            assert signal.getsignal(signal.SIGINT) is own
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
