"""Directories of runs: their state, and what else is a directory of ours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eigenscape import apply, load_job, run, run_study
from eigenscape.base.process.progress import Silent
from eigenscape.batch.run import run_batch
from eigenscape.batch.sources import Source
from eigenscape.clusters import ClusterOptions
from eigenscape.errors import InputError, OutputError
from eigenscape.job.jobfile import parse_job
from eigenscape.store.manifest import is_run
from eigenscape.store.run import Run
from eigenscape.workflow import directories
from eigenscape.workflow.choice.kept import forget_trials
from eigenscape.workflow.directories import (
    WIDER_FILE,
    WINDOW_FILE,
    is_batch,
    is_ours,
    is_study,
    run_directory,
    status,
)
from eigenscape.workflow.runner import Runner
from eigenscape.workflow.stages import STAGES, Stage

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


def test_run_dir__with_files_of_the_user_is_refused(written, write_job, tmp_path, cli):
    job = write_job(scene={"labels": "labels.tif"})
    job.write_text(f"# my precious notes\n{job.read_text()}")
    legend = tmp_path / "outputs" / "legend.csv"
    legend.parent.mkdir()
    legend.write_text("mine")

    def there():
        # Not when a file was read last.
        stats = {path: path.stat() for path in tmp_path.rglob("*")}
        return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}

    before = there()
    for verb in ("run", "plan", "tune"):
        done = cli(verb, job, "--run-dir", tmp_path)
        assert done.exit_code == 2, verb
        mark = "tune.json" if verb == "tune" else "manifest.json"
        assert f"holds job.toml, labels.tif, outputs and 1 more, and no {mark}" in done.stderr
        assert "Give a new or an empty directory with --run-dir" in done.stderr
    assert there() == before


def test_run_dir__of_a_run_killed_at_once_is_continued(written, write_job, tmp_path):
    job = write_job(scene={"labels": "labels.tif"})
    path = tmp_path / "killed"
    (path / "work" / "ingest-0").mkdir(parents=True)
    (path / "lock").write_text("process 1 on somewhere since then\n")
    (path / "log.jsonl").touch()
    (path / ".gitignore").write_text("*")
    assert Path(run(job, run_dir=path).path) == path
    assert status(path)["state"] == "finished"


def test_run_dir__work_of_the_user_is_no_run(written, write_job, tmp_path):
    (tmp_path / "other" / "work").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"other: holds work, and no manifest\.json"):
        run(write_job(scene={"labels": "labels.tif"}), run_dir=tmp_path / "other")


@pytest.mark.slow
def test_run_dir__the_copy_of_the_job_is_replaced_unless_changed_by_hand(finished_run):
    path = run(finished_run).path
    copy = path / "job.toml"
    run(load_job(copy, ["neighbors.k=9"]), run_dir=path)
    assert load_job(copy).neighbors.k == 9
    edited = f"# my notes\n{copy.read_text()}"
    copy.write_text(edited)
    with pytest.raises(OutputError, match=r"job\.toml: is the job file itself"):
        run(copy, run_dir=path)
    assert copy.read_text() == edited
    # Of another job it is a copy that has changed: `verify` says so, and a run writes it again.
    run(finished_run, run_dir=path)
    assert not copy.read_text().startswith("# my notes")


def test_study_dir__with_files_of_the_user_is_refused(written, write_job, tmp_path):
    job = write_job(scene={"labels": "labels.tif"}, study={"grid": {"neighbors.k": [5, 6]}})
    text = job.read_text()
    with pytest.raises(OutputError, match=r"holds job.toml, labels.tif, .*no study\.json"):
        run_study(job, run_dir=tmp_path)
    assert job.read_text() == text
    assert not (tmp_path / "lock").exists()


def test_batch_dir__with_files_of_the_user_is_refused(written, write_job, tmp_path):
    job = write_job(scene={"labels": "labels.tif"})
    (tmp_path / "schedules").mkdir()  # a schedule of ours makes no directory ours
    with pytest.raises(
        OutputError, match=r"holds job.toml, labels.tif, scene.tif, and no batch\.csv"
    ):
        run_batch(Source((job,)), run_dir=tmp_path)
    assert not (tmp_path / "scenes").exists()


def test_apply__refuses_files_of_the_user_and_the_run_itself(finished_run, tmp_path):
    path = run(finished_run).path
    with pytest.raises(OutputError, match=r"holds job.toml, .*no manifest\.json"):
        apply(path, tmp_path / "scene.tif", run_dir=tmp_path)
    with pytest.raises(OutputError, match="the directory of the run itself"):
        apply(path, tmp_path / "scene.tif", run_dir=path)
    assert status(path)["state"] == "finished"


def test_choice__trials_beside_files_of_the_user(tmp_path):
    mine = tmp_path / "first-choice" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    forget_trials(tmp_path / "first")
    assert mine.exists()


@pytest.mark.parametrize("name", ["variants", WINDOW_FILE, WIDER_FILE])
def test_choice__all_that_it_writes_is_ours_and_goes_with_it(tmp_path, name):
    trials = tmp_path / "first-choice"
    trials.mkdir()
    for file in ("lock", name):
        (trials / file).touch()
    assert is_ours(trials)
    forget_trials(tmp_path / "first")
    assert not trials.exists()


def test_status__says_why_a_run_stopped(written, write_job, write_tif, tmp_path, cli):
    write_tif("flat.tif", np.ones((30, 40, 20), np.float32))
    job = write_job(scene={"path": "flat.tif", "labels": "labels.tif"})
    directory = tmp_path / "run"
    done = cli("run", job, "--run-dir", directory)
    assert done.exit_code == 2
    message = done.stderr.splitlines()[-1].removeprefix("eigenscape: ")
    assert "all valid pixels are identical" in message
    found = status(directory)
    assert found["error"] == message
    assert found["state"] == f"stopped by an error: {message}"
    assert f"stopped by an error: {message}" in cli("status", directory).stdout
    with Run(directory).lock(print):
        assert status(directory)["error"] is None
        assert "works on it" in status(directory)["state"]
    # The next attempt is about itself: here one that is killed, and one that ends well.
    log = directory / "log.jsonl"
    before = log.read_text()
    log.write_text(before + before.splitlines(keepends=True)[0])
    assert status(directory)["state"] == "unfinished: the same `eigenscape run` continues it"
    log.write_text(before + '{"event": "err')
    assert status(directory)["error"] is None
    log.write_text(before)
    run(load_job(job, ["scene.path=scene.tif"]), run_dir=directory)
    assert (status(directory)["state"], status(directory)["error"]) == ("finished", None)


def test_status__names_the_kind_of_a_foreign_error(written, write_job, tmp_path):
    def fail(context):
        raise RuntimeError("the code is wrong")

    job = load_job(write_job(scene={"labels": "labels.tif"}))
    stages = (Stage("ingest", fail, lambda job: [], ()),)
    runner = Runner(job, stages, {"ingest": "0"})
    with pytest.raises(RuntimeError):
        runner.run(tmp_path / "run", ClusterOptions(), Silent())
    assert status(tmp_path / "run")["error"] == "RuntimeError: the code is wrong"


def test_status__a_run_that_ends_meanwhile_is_finished(finished_run, monkeypatch):
    path = run(load_job(finished_run)).path
    manifest = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text("")

    def holder_that_ends(path):
        (path / "manifest.json").write_text(manifest)

    monkeypatch.setattr(directories, "lock_holder", holder_that_ends)
    assert status(path)["state"] == "finished"
