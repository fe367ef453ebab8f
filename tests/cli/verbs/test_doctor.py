"""``eigenscape doctor``: ready here, and what it asks for where something is missing."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from eigenscape.workflow import doctor


def test_doctor__says_what_is_here_and_leaves_a_directory_as_it_was(cli, tmp_path):
    done = cli("doctor", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["schema"], found["ready"], found["problems"]) == (1, True, [])
    assert found["versions"]["GDAL"][0].isdigit()
    assert found["formats"]["GTiff"]
    assert found["machine"]["cores"] >= 1
    assert found["kernels"]["writable"]
    plain = cli("doctor")
    assert plain.exit_code == 0, plain.output
    assert plain.stdout.rstrip().endswith("jobs can run")
    assert "GDAL" in plain.stdout


def test_doctor__status_2_and_what_to_do(cli, monkeypatch):
    monkeypatch.setattr(doctor, "memory_limit", lambda: 300 * 2**20)
    monkeypatch.setattr(doctor, "NEEDED_FORMATS", ("GTiff", "Papyrus"))
    monkeypatch.setattr(
        doctor, "installed_version", lambda package: None if package == "zarr" else "1.0"
    )
    done = cli("doctor", "--json")
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert not found["ready"]
    text = "\n".join(found["problems"])
    assert "lacks the formats Papyrus" in text
    assert "300.0 MiB of memory is free" in text
    assert "Required packages are missing: zarr" in text
    done = cli("doctor")
    assert done.exit_code == 2
    assert "to do: GDAL" in done.stdout


def test_doctor__names_the_extra_of_what_is_missing(cli, monkeypatch):
    monkeypatch.setattr(
        doctor, "installed_version", lambda package: None if package == "pyamg" else "1.0"
    )
    assert "pip install 'eigenscape[amg]'" in cli("doctor").stdout


def test_memory_limit__of_both_versions_and_of_groups_above(monkeypatch, tmp_path):
    group, root = tmp_path / "cgroup", tmp_path / "fs"
    below = root / "user" / "job"
    below.mkdir(parents=True)
    (below / "memory.max").write_text("max\n")
    (below.parent / "memory.max").write_text("1073741824\n")
    (root / "memory" / "old").mkdir(parents=True)
    (root / "memory" / "old" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    places = {
        "/proc/self/cgroup": group,
        "/sys/fs/cgroup": root,
        "/sys/fs/cgroup/memory": root / "memory",
    }
    monkeypatch.setattr(doctor, "Path", lambda path: places[path])
    group.write_text("0::/user/job\n4:memory:/old\n")
    assert doctor.memory_limit() == 2**30
    group.write_text("4:memory:/old\n")
    assert doctor.memory_limit() is None


@pytest.mark.slow
def test_doctor__tries_a_directory_by_two_processes(tmp_path):
    found = doctor.diagnose(tmp_path / "new")
    assert not found.problems
    assert found.directory["free"] > 0
    assert found.directory["write_mib_s"] > 0
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    assert doctor.diagnose(tmp_path / "file").problems


@pytest.mark.exhaustive
@pytest.mark.slow
def test_doctor__compiles_what_a_run_needs(tmp_path):
    scene = tmp_path / "scene.npy"
    np.save(scene, np.random.default_rng(0).random((48, 48, 6), np.float32))
    (tmp_path / "job.toml").write_text(f'scene = {{ path = "{scene}", layout = "image" }}')
    compiled = kernels_of("doctor", "--compile")
    assert len(compiled) > 40
    assert kernels_of("run", str(tmp_path / "job.toml")) <= compiled


def kernels_of(*arguments):
    """Return the files of compiled kernels that a command loads or compiles.

    Not with a cache of its own: what is compiled on this machine already need not be compiled again.
    """
    done = subprocess.run(
        [sys.executable, "-m", "eigenscape", *arguments],
        env=os.environ | {"NUMBA_DEBUG_CACHE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"\[cache\] data (?:loaded from|saved to) '(.*)'", done.stdout))
