"""Streams that are closed, cannot be written, or lack characters."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eigenscape.store.verification import verify
from eigenscape.workflow.directories import status


def command(*arguments, **keys):
    keys = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keys}
    return subprocess.run(
        [sys.executable, "-m", "eigenscape", *map(str, arguments)],
        text=True, timeout=120, check=False, **keys,
    )  # fmt: skip


def in_shell(text, directory):
    """Run a line of bash in which `$E` is the command line."""
    return subprocess.run(
        ["bash", "-c", text], env={**os.environ, "E": f"{sys.executable} -m eigenscape"},
        cwd=directory, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.mostly_slow(2)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["schema"], ["--help"], ["status", "."]])
def test_main__says_that_stdout_cannot_be_written(tmp_path, arguments, unbuffered):
    (tmp_path / "batch.csv").write_text("scene,state\n")
    around = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = command(*arguments, stdout=full, env=around, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("eigenscape: stdout cannot be written (")
    assert len(done.stderr.splitlines()) == 1


def test_main__keeps_the_exit_status_of_an_error(tmp_path):
    done = command("status", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no run directory" in done.stderr


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_main__escapes_characters_that_stdout_lacks(tmp_path, flag):
    path = tmp_path / "r\u00fc"
    path.mkdir()
    (path / "batch.csv").write_text("scene,state\n")
    done = command("status", path, *flag, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert ("r\\u00fc" if flag else "r\\xfc") in done.stdout


def test_main__ends_as_others_do_where_nobody_reads_any_more(tmp_path):
    done = in_shell("$E schema | head -1; echo ${PIPESTATUS[0]}", tmp_path)
    assert (done.stdout, done.stderr) == ("{\n141\n", "")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize(("closed", "printed"), [(">&-", ""), ("<&- >&- 2>&-", ""), ("2>&-", "{")])
def test_main__with_closed_streams(tmp_path, closed, printed):
    done = in_shell(f"$E schema {closed}", tmp_path)
    assert done.returncode == 0
    assert done.stdout[:1] == printed
    assert done.stderr == ""


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_main__keeps_stdout_free_of_messages_that_stderr_lost(tmp_path, stderr):
    done = in_shell(f"$E plan none.toml --json {stderr}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.mostly_slow(1)
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2> >(head -1 >/dev/null)"])
def test_run__goes_on_where_its_progress_cannot_be_printed(finished_run, tmp_path, stderr):
    shutil.rmtree(tmp_path / "runs")
    done = in_shell(f"$E run job.toml --json {stderr}", tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["converged"]
    (run,) = (tmp_path / "runs").iterdir()
    assert status(run)["state"] == "finished"
    # No file took the place of the closed stream.
    assert verify(run)["whole"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_run__is_finished_where_its_result_cannot_be_printed(finished_run, tmp_path):
    done = in_shell("$E run job.toml > /dev/full", tmp_path)
    assert done.returncode == 2
    assert "stdout cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert status(run)["state"] == "finished"


def test_main__leaves_open_a_stream_that_only_sys_holds(tmp_path):
    code = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")
sys.argv = ["eigenscape", "schema", "result"]
from eigenscape.cli.app import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)
