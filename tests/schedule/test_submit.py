import json

import pytest

from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.submission import read_submission
from eigenscape.errors import BusyError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.schedule import submit as submitting
from eigenscape.schedule.submit import submit
from eigenscape.workflow.stages import stage_keys


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Return a cluster file of a queue that takes no job."""
    monkeypatch.setattr(
        submitting,
        "enqueue",
        lambda path, submission: submitting.write_submission(path, submission, job_id="1"),
    )
    driver = {"memory": "4GiB"}
    table = {"kind": "slurm", "memory": "4GiB", "cores": 1, "walltime": "01:00:00"}
    return parse_cluster({**table, "driver": driver}, "cluster.toml")


def test_submit__refuses_another_job_for_the_directory_of_one_in_the_queue(
    written, tmp_path, queue, monkeypatch
):
    monkeypatch.setattr(type(queue), "job_state", lambda job_id: "waiting")
    file, target = tmp_path / "job.toml", tmp_path / "run"
    file.write_text('scene.path = "scene.tif"\nscene.labels = "labels.tif"\nneighbors.k = 4')
    _, first = submit(load_job(file), queue, run_dir=target)
    # More memory changes no result.
    again = load_job(file, ["limits.memory=3GiB"])
    assert submit(again, queue, run_dir=target) == (target, first)
    other = load_job(file, ["neighbors.k=5"])
    with pytest.raises(BusyError, match=r"job 1 \(waiting\) is to compute another job there"):
        submit(other, queue, run_dir=target)
    assert read_submission(target) == first
    (tmp_path / "scene.tif").rename(tmp_path / "moved.tif")
    with pytest.raises(BusyError, match="another job there"):
        submit(load_job(file, ["scene.path=moved.tif"]), queue, run_dir=target)


@pytest.mark.parametrize("methods", ["", "neighbors.k = 4", 'learn.method = "k-nn"\nlearn.k = 3'])
def test_submit__the_driver_finds_the_job_as_it_was_given(written, tmp_path, queue, methods):
    file = tmp_path / "job.toml"
    file.write_text(f'scene.path = "scene.tif"\nscene.labels = "labels.tif"\n{methods}')
    job = load_job(file)
    path, _ = submit(job, queue, run_dir=tmp_path / "run")
    stored = json.loads(json.dumps(read_submission(path).job))
    found = parse_job(stored["table"], name=stored["name"], base=tmp_path)
    assert found.open == job.open == (not methods)
    assert stage_keys(found) == stage_keys(job)
