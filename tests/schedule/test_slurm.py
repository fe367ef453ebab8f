"""Drivers in a real SLURM: submitted, submitted again, cancelled."""

import json
import os
import time

import numpy as np
import psutil
import pytest
import tomlkit

from eigenscape.clusters import submission
from eigenscape.clusters.submission import read_submission
from eigenscape.job.jobfile import load_job
from eigenscape.store.run import Run, hold
from eigenscape.workflow.spine import run

pytestmark = pytest.mark.slurm


@pytest.fixture
def cluster_file(tmp_path):
    """Write a cluster file for workers of one core on loopback."""

    def write(**driver):
        table = {
            "kind": "slurm", "cores": 1, "memory": "1500MiB", "walltime": "00:10:00",
            "interface": "lo", "log_directory": str(tmp_path / "logs"),
            "environment": [f"export PYTHONPATH={os.environ.get('PYTHONPATH', '')}"],
            "driver": {"memory": "1500MiB", **driver},
        }  # fmt: skip
        path = tmp_path / "cluster.toml"
        path.write_text(tomlkit.dumps(table), encoding="utf-8")
        return path

    return write


@pytest.fixture
def job(write_tif, write_job, make_scene):
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    return write_job(
        scene={"labels": "labels.tif"}, output={"formats": []}, learn={"trials": 2},
        limits={"threads": 1, "memory": "1GiB"},
    )  # fmt: skip


def wait_for(told, path, seconds=90):
    """Wait until something is so; say what the driver printed if it never is."""
    end = time.monotonic() + seconds
    while not told():
        printed = "\n".join(file.read_text() for file in sorted((path / "driver").glob("*.err")))
        assert time.monotonic() < end, printed
        time.sleep(0.2)


def submitted(cli, job, cluster, target):
    done = cli("submit", job, "--on", cluster, "--run-dir", target, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["job_id"]


def test_submit__the_driver_submits_itself_until_the_run_is_finished(
    slurm, cli, job, cluster_file, tmp_path
):
    target = tmp_path / "run"
    # It stops some seconds after it has begun, as at the end of its walltime.
    cluster = cluster_file(alone=True, walltime="00:01:00", stop_before=52.0, attempts=9)
    target.mkdir()
    with hold(target, print):
        first = submitted(cli, job, cluster, target)
        again = cli("submit", job, "--on", cluster, "--run-dir", target)
        assert again.stdout.strip() == first
        assert "in the queue already" in again.stderr
        wait_for(lambda: ", at work" in cli("status", target).stdout, target)
        wait_for(lambda: len(read_submission(target).jobs) > 1, target)
    wait_for(lambda: read_submission(target).over, target)
    found = json.loads(cli("status", target, "--json").stdout)
    assert found["state"] == "finished"
    driver = found["driver"]
    assert not driver["at_work"]
    assert (driver["driver"], driver["exit_status"]) == ("finished", 0)
    assert driver["jobs"][0] == first
    here = run(load_job(job), run_dir=tmp_path / "here").path
    for name in ("spectrum/value", "labels/class", "labels/confidence"):
        np.testing.assert_array_equal(Run(target).open(name)[...], Run(here).open(name)[...])
    assert "finished: job" in cli("status", target).stdout


def test_status__of_a_driver_that_was_killed(slurm, cli, job, cluster_file, tmp_path, monkeypatch):
    monkeypatch.setattr(submission, "_LAG_S", 1.0)
    target = tmp_path / "run"
    target.mkdir()
    with hold(target, print):
        number = submitted(cli, job, cluster_file(alone=True), target)
        wait_for(lambda: ", at work" in cli("status", target).stdout, target)
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "eigenscape.cli.driver" in words and str(target) in words:
            process.kill()

    def driver():
        return json.loads(cli("status", target, "--json").stdout)["driver"]["driver"]

    wait_for(lambda: driver() == "ended", target)
    text = cli("status", target).stdout
    assert f"job {number} is no longer in the queue: it was killed, or lost with its node" in text
    assert "the same `eigenscape submit` continues it" in text
    submitted(cli, job, cluster_file(alone=True), target)
    wait_for(lambda: read_submission(target).over, target)
    assert driver() == "finished"


def test_cancel__ends_the_driver_and_its_workers_and_nothing_else(
    slurm, cli, job, cluster_file, tmp_path
):
    target = tmp_path / "run"
    other = slurm.call("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 300")
    driver = submitted(cli, job, cluster_file(), target)
    name = read_submission(target).worker_name

    def workers():
        return slurm.call("squeue", "-h", "-o", "%A", f"--name={name}").split()

    def queued():
        return slurm.call("squeue", "-h", "-o", "%A").split()

    wait_for(workers, target)
    done = cli("cancel", target)
    assert done.exit_code == 0
    assert "cancelled" in done.stdout
    wait_for(lambda: driver not in queued() and not workers(), target)
    assert other in queued()
    found = json.loads(cli("status", target, "--json").stdout)
    assert found["driver"]["driver"] == "cancelled"
    # The same command goes on, with workers in jobs of their own.
    submitted(cli, job, cluster_file(), target)
    wait_for(lambda: read_submission(target).over, target)
    assert read_submission(target).state == "finished"
    wait_for(lambda: not workers(), target)
    slurm.call("scancel", other)
