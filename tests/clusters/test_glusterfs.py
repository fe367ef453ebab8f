"""Runs on a real network file system: three machines, each with a cache of its own."""

import json
import sys

import pytest
import tomlkit

from eigenscape.job.jobfile import load_job
from eigenscape.workflow.spine import run

pytestmark = pytest.mark.glusterfs


def eigenscape(volume, *arguments):
    """Run the command on the first machine."""
    return volume.machines[0].run(
        sys.executable, "-m", "eigenscape", *arguments, cwd=volume.base, timeout=300
    )


@pytest.fixture
def job(write_tif, write_job, make_scene):
    """A job of several blocks in every stage; its file lies where all machines see it."""
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    formats = {"formats": ["geotiff", "png", "report"]}
    return write_job(scene={"labels": "labels.tif"}, output=formats, limits={"memory": "1GiB"})


def existing(tmp_path, volume):
    path = tmp_path / "existing.toml"
    table = {"kind": "existing", "address": volume.start_workers()}
    path.write_text(tomlkit.dumps(table), encoding="utf-8")
    return path


def files_of(directory):
    """Return what a finished run keeps: arrays and outputs, but the report, which says how long it took."""
    paths = [path for part in ("store.zarr", "outputs") for path in (directory / part).rglob("*")]
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in paths
        if path.is_file() and path.name != "report.html"
    }


def test_run__mounts_that_keep_stale_files_are_refused_by_name(stale_files, job, tmp_path):
    on, there = existing(tmp_path, stale_files), stale_files.shared / "run"
    for command in (
        ("run", job, "--on", on, "--run-dir", there),
        ("cluster", "check", on, "--run-dir", there),
    ):
        done = eigenscape(stale_files, *command)
        assert done.returncode == 2, done.stderr
        words = " ".join(done.stderr.split())
        for part in (
            "does not see there what others have written", "fuse.glusterfs (",
            "--attribute-timeout=0 --entry-timeout=0 --fopen-keep-cache=off", "performance.quick-read",
        ):  # fmt: skip
            assert part in words
        left = stale_files.machines[0].run("find", there, "-name", ".*tmp-*")
        assert left.stdout == ""


@pytest.mark.exhaustive
def test_run__the_same_bits_on_mounts_that_are_close_to_open(shared_files, job, tmp_path):
    expected = files_of(run(load_job(job), run_dir=tmp_path / "here" / "run").path)
    on = existing(tmp_path, shared_files)
    done = eigenscape(
        shared_files, "cluster", "check", on, "--run-dir", shared_files.shared, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["file_system"].startswith("fuse.glusterfs (")
    there = shared_files.shared / "run"
    done = eigenscape(shared_files, "run", job, "--on", on, "--run-dir", there)
    assert done.returncode == 0, done.stderr + shared_files.dask_log
    # Read by a machine that neither led nor worked: what lies on the server.
    found = files_of(shared_files.base / "brick" / "run")
    assert found.keys() == expected.keys()
    assert [name for name, content in expected.items() if found[name] != content] == []
