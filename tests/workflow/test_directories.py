"""Directories of runs: their state, and what else is a directory of ours."""

import os
import subprocess
import sys

import pytest

from eigenscape import run
from eigenscape.errors import InputError
from eigenscape.job.jobfile import parse_job
from eigenscape.store.run import Run
from eigenscape.workflow.directories import is_batch, is_run, is_study, run_directory, status
from eigenscape.workflow.stages import STAGES

NAMES = [stage.name for stage in STAGES]


def test_status__of_a_run(finished_run):
    result = run(finished_run)
    found = status(result.path)
    assert (found["state"], found["holder"], found["name"]) == ("finished", None, "job")
    assert [stage["name"] for stage in found["stages"]] == NAMES
    assert all(stage["state"] == "finished" for stage in found["stages"])


def test_status__says_who_works_on_it(finished_run):
    path = run(finished_run).path
    directory = Run(path)
    del directory.manifest["stages"]["export"]
    directory.save_manifest()
    with Run(path).lock(print):
        found = status(path)
    assert f"process {os.getpid()} on " in found["holder"]
    assert found["state"] == f"unfinished: {found['holder']} works on it"
    assert status(path)["state"] == "unfinished: the same `eigenscape run` continues it"


def test_kinds__by_the_files_of_a_directory(tmp_path):
    kinds = {"manifest.json": is_run, "batch.csv": is_batch, "study.json": is_study}
    for name in kinds:
        directory = tmp_path / name.partition(".")[0]
        directory.mkdir()
        (directory / name).touch()
        assert [is_one(directory) for is_one in kinds.values()] == [one == name for one in kinds]


def test_status__loads_nothing_that_computes():
    """It is asked for again and again while a run is at work, which has better use for the processor."""
    code = "import sys, eigenscape.cli.overview; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "dask",
        "distributed",
        "h5py",
        "matplotlib",
        "numba",
        "pandas",
        "scipy",
        "sklearn",
        "zarr",
    }
    assert not heavy & set(done.stdout.split())


def test_run_directory__refuses_what_is_no_path():
    job = parse_job({"scene": {"path": "scene.tif"}})
    with pytest.raises(InputError, match="of type int: give a run directory"):
        run_directory(job, {}, 3)
