"""Ctrl-C, SIGTERM and SIGHUP stop a command in the same way; a second Ctrl-C ends the process."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from eigenscape.base.files.tables import read_table
from eigenscape.base.process.signals import StoppedBySignal, stopped_by_signals
from eigenscape.store.lock import lock_holder
from eigenscape.workflow.directories import status
from forks import Fork
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

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
LATER = (signal.SIGTERM, signal.SIGHUP)


def start(code, *arguments, before=()):
    return subprocess.Popen(
        [*before, sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def give(*arguments):
    return Fork(["-m", "eigenscape", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("number", SIGNALS)
def test_signals__once(number):
    process = start(SLOW.format(leaving=0))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == SIGNALS[number]
    again = " again" if number == signal.SIGINT else ""
    assert f"eigenscape: stopping ... (Ctrl-C{again} ends it at once)" in err
    assert "eigenscape: stopped. The same command continues from here." in err


@pytest.mark.parametrize("number", LATER)
def test_signals__a_second_one_but_ctrl_c_is_ignored(number):
    """Terminals, shells and ``timeout`` send these twice."""
    process = start(SLOW.format(leaving=1))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "leaving\n"
    for later in LATER:
        process.send_signal(later)
    _, err = process.communicate(timeout=60)
    assert process.returncode == SIGNALS[number]
    assert err.count("eigenscape: stopping ...") == 1
    assert "eigenscape: stopped. The same command continues from here." in err


def test_signals__nohup_is_respected():
    process = start(SLOW.format(leaving=0), before=["nohup"])
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_signals__forks_are_ended_as_ever():
    fork = multiprocessing.get_context("fork")
    forked = fork.Event()

    def work():
        # Python drops signals that come while it forks.
        forked.set()
        time.sleep(60)

    with stopped_by_signals():
        child = fork.Process(target=work)
        child.start()
        assert forked.wait(20)
        child.terminate()
        child.join(20)
        assert child.exitcode == -signal.SIGTERM


@pytest.mark.parametrize("place", ["callback", "finalizer"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_signals__where_python_drops_exceptions(place):
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
        with pytest.raises(StoppedBySignal), stopped_by_signals():
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
@pytest.mark.parametrize("number", SIGNALS)
def test_signals__reach_workers_too_and_the_driver_alone_answers(
    written, write_job, tmp_path, number
):
    (tmp_path / "local.toml").write_text("kind = 'local'\nworkers = 2\n", encoding="utf-8")
    job = write_job(scene={"labels": "labels.tif"})
    run = tmp_path / "run"
    process = give("run", job, "--on", tmp_path / "local.toml", "--run-dir", run)
    wait_until(lambda: (run / "store.zarr" / "samples").exists())
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == SIGNALS[number], err
    assert "eigenscape: stopping ..." in err
    assert "Traceback" not in err
    assert lock_holder(run) is None
    assert status(run)["state"].startswith("unfinished")
    assert psutil.wait_procs(family, timeout=20)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", LATER)
def test_signals__studies_write_their_table(written, write_job, tmp_path, number):
    study = {"grid": {"neighbors.k": list(range(4, 20))}}
    job = write_job(scene={"labels": "labels.tif"}, study=study)
    process = give("run", job, "--run-dir", tmp_path / "study")
    variants = tmp_path / "study" / "variants"
    # With a map of the second, the first is noted as finished.
    wait_until(lambda: len({*variants.glob("*/outputs/class_map.tif")}) > 1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == SIGNALS[number], err
    states = {row["state"] for row in read_table(tmp_path / "study" / "table.csv")}
    assert states == {"finished", "to do"}


def test_signals__answers_of_callers_stay():
    def own(*_):
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        with stopped_by_signals():
            assert signal.getsignal(signal.SIGINT) is own
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(StoppedBySignal), stopped_by_signals():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
