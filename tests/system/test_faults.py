"""Runs that are doubled, interrupted or out of disk. Those that are killed: tests/system/test_kills.py."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import rasterio

from eigenscape.store.run import Run
from forks import Fork

pytestmark = pytest.mark.slow

PARTS = [
    "class_map.tif",
    "class_map.tif.aux.xml",
    "confidence.tif",
    "eigenvectors.tif",
    "legend.csv",
]


def start(*arguments):
    return Fork(["-m", "eigenscape", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def files_of(path):
    return {
        str(file.relative_to(path)) for file in path.rglob("*")
        if file.is_file() and file.name not in ("log.jsonl", "lock")
    }  # fmt: skip


@pytest.fixture
def job(write_tif, write_job, make_scene):
    """A job of several blocks in every stage, with the iterative solver."""
    scene = make_scene(110, 100, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    return write_job(scene={"labels": "labels.tif"})


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Return a function that runs the job of the tests undisturbed, once: its directory and seconds."""
    path, seconds = tmp_path_factory.mktemp("calm") / "run", []

    def run(job):
        if not seconds:
            begin = time.monotonic()
            assert finish(start("run", job, "--run-dir", path))[0] == 0
            seconds.append(time.monotonic() - begin)
        return path, seconds[0]

    return run


def assert_same_run(one, other):
    for name in PARTS:
        if name.endswith(".tif"):
            with (
                rasterio.open(one / "outputs" / name) as a,
                rasterio.open(other / "outputs" / name) as b,
            ):
                np.testing.assert_array_equal(a.read(), b.read())
        else:
            assert (one / "outputs" / name).read_bytes() == (other / "outputs" / name).read_bytes()
    values = [Run(path).open("spectrum/value")[...] for path in (one, other)]
    np.testing.assert_array_equal(values[0], values[1])
    assert files_of(one) == files_of(other)
    assert not (one / "work").exists()


def wait_for_first_stage(path, process):
    while not (path / "store.zarr" / "samples").exists():
        assert process.poll() is None
        time.sleep(0.02)


def test_run__two_processes_at_once(job, tmp_path):
    path = tmp_path / "run"
    first = start("run", job, "--run-dir", path, "--json")
    wait_for_first_stage(path, first)
    # Or the first would be done before the second has begun.
    first.send_signal(signal.SIGSTOP)
    second = start("run", job, "--run-dir", path, "--json")
    said = second.stderr.readline()
    while said and "being worked on" not in said:
        said = second.stderr.readline()
    first.send_signal(signal.SIGCONT)
    results = [finish(first), finish(second)]
    assert [status for status, *_ in results] == [0, 0]
    one, two = (json.loads(out) for _, out, _ in results)
    assert f"is being worked on by process {first.pid} on " in said
    assert "being worked on" not in results[0][2]
    assert all(stage["reused"] for stage in two["stages"])
    assert (one["scores"], one["outputs"]) == (two["scores"], two["outputs"])


def test_run__two_jobs_side_by_side(job, tmp_path):
    """Both take over what the other finished, or not; neither may spoil the other."""
    one = start("run", job, "--json")
    two = start("run", job, "--json", "--set", "learn.train=0.5")
    results = [finish(one), finish(two)]
    assert [status for status, *_ in results] == [0, 0], results[1][2]
    paths = [json.loads(out)["run"] for _, out, _ in results]
    assert paths[0] != paths[1]
    values = [Run(tmp_path / path).open("spectrum/value")[...] for path in paths]
    np.testing.assert_array_equal(values[0], values[1])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_run__interrupted(job, tmp_path, name):
    path = tmp_path / "run"
    process = start("run", job, "--run-dir", path)
    wait_for_first_stage(path, process)
    process.send_signal(getattr(signal, name))
    status, _, err = finish(process)
    if name == "SIGINT":
        assert status == 130
        assert "stopped. The same command continues from here." in err
        assert "Traceback" not in err
    assert status != 0
    status, out, _ = finish(start("run", job, "--run-dir", path, "--json"))
    assert status == 0
    assert json.loads(out)["stages"][0]["reused"]


@pytest.fixture
def little_disk(tmp_path):
    """A disk whose size can be changed."""
    path = tmp_path / "disk"
    path.mkdir()

    def mount(*options):
        return subprocess.run(
            ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(path)],
            capture_output=True, check=False,
        ).returncode  # fmt: skip

    if os.geteuid() != 0 or mount("size=256k") != 0:
        pytest.skip("needs the right to mount a tmpfs")
    yield path, lambda size: mount("remount", f"size={size}")
    subprocess.run(["umount", str(path)], check=True)


@pytest.mark.mostly_exhaustive(1)
@pytest.mark.parametrize("size", ["8k", "2m", "2400k"])
def test_run__full_disk(job, calm, little_disk, size):
    disk, resize = little_disk
    assert resize(size) == 0
    arguments = ("run", job, "--run-dir", disk / "run", "--json")
    status, out, err = finish(start(*arguments))
    assert status == 2, err
    assert out == ""
    message = err.splitlines()[-1]
    assert "Traceback" not in err
    assert f"{disk / 'run'}: the disk is full" in message
    assert "free some space" in message
    assert not list((disk / "run").glob("outputs/*"))
    if (disk / "run" / "manifest.json").exists():
        run = Run(disk / "run")
        for stage, record in run.manifest["stages"].items():
            assert run.is_finished(stage, record["key"])
    assert resize("64m") == 0
    status, _, err = finish(start(*arguments))
    assert status == 0, err
    assert_same_run(disk / "run", calm(job)[0])
