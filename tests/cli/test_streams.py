"""A stdout that cannot be written, or that lacks characters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def command(*arguments, **keys):
    keys = {"stdout": subprocess.PIPE, **keys}
    return subprocess.run(
        [sys.executable, "-m", "eigenscape", *map(str, arguments)],
        stderr=subprocess.PIPE, text=True, timeout=120, check=False, **keys,
    )  # fmt: skip


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


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_main__escapes_characters_that_stdout_lacks(tmp_path, flag):
    path = tmp_path / "r\u00fc"
    path.mkdir()
    (path / "batch.csv").write_text("scene,state\n")
    done = command("status", path, *flag, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert ("r\\u00fc" if flag else "r\\xfc") in done.stdout
