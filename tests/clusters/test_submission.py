import os
import signal
import time

import filelock
import pytest

from eigenscape.clusters import ClusterOptions
from eigenscape.clusters.kinds.slurm import SlurmOptions
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.submission import (
    Submission,
    changing,
    describe_driver,
    read_submission,
    write_submission,
)
from eigenscape.errors import ClusterError, InputError, MemoryLimitError, StoreError
from eigenscape.job.jobfile import load_job, parse_job
from eigenscape.schedule import driver
from eigenscape.schedule.submit import cancel, driven, submit
from eigenscape.workflow.directories import status

CLUSTER = {"kind": "slurm", "interface": "lo", "walltime": "00:10:00"}


def made(path, **changes):
    submission = Submission("slurm", "eig-1", "eig-1-w", {}, dict(CLUSTER))
    (path / "driver").mkdir(parents=True)
    with changing(path) as nothing:
        assert nothing is None
        return write_submission(path, submission, job_id="7", jobs=("7",), **changes)


def test_driver__is_not_submitted_again_if_nothing_comes_of_it(tmp_path, capsys):
    options = parse_cluster({**CLUSTER, "driver": {"attempts": 2}}, "cluster.toml")
    made(tmp_path, state="running", stalled=1)
    status = driver._hand_over(tmp_path, options, driver.progress(tmp_path), again=True)
    found = read_submission(tmp_path)
    assert (status, found.state, found.stalled, found.jobs) == (1, "failed", 2, ("7",))
    assert "2 jobs in a row" in found.message
    assert "2 jobs in a row" in capsys.readouterr().err


def test_driver__stays_away_where_another_job_works(tmp_path, monkeypatch, capsys):
    made(tmp_path, state="running")
    monkeypatch.setenv("SLURM_JOB_ID", "6")
    assert driver.main(tmp_path, print) == 0
    assert "job 7 does the work" in capsys.readouterr().err
    with changing(tmp_path) as found:
        write_submission(tmp_path, found, state="cancelled")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert driver.main(tmp_path, print) == 0
    assert read_submission(tmp_path).state == "cancelled"


def test_driver__goes_on_when_the_queue_starts_its_job_again(tmp_path, monkeypatch):
    made(tmp_path, state="running")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    options = parse_cluster(CLUSTER, "cluster.toml")
    assert driver._hand_over(tmp_path, options, (0, 0), again=False) == 1
    assert read_submission(tmp_path).state == "cancelled"
    found = driver._claim(tmp_path)
    assert (found.state, found.message) == ("running", "")


def test_driver__a_job_that_nobody_named_takes_over_after_a_while(tmp_path, monkeypatch):
    made(tmp_path, state="submitting")
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    monkeypatch.setattr(driver, "EXPECTED_S", 0.3)
    assert driver._claim(tmp_path).state == "running"


def test_driver__stops_before_the_walltime_ends():
    def left(**table):
        return driver._seconds_left(parse_cluster({**CLUSTER, "driver": table}, "cluster.toml"))

    assert left() == 480  # a fifth before the end
    assert left(walltime="05:00:00") == 5 * 3600 - 120
    assert left(stop_before=30) == 570


def test_driven__alone_keeps_within_the_job_of_the_driver():
    job = parse_job({"scene": {"path": "scene.tif"}, "limits": {"memory": "2GiB"}})
    table = {"alone": True, "cores": 3, "memory": "2GiB"}
    fitted, on = driven(job, parse_cluster({**CLUSTER, "driver": table}, "cluster.toml"))
    assert (on.kind, fitted.limits.threads, fitted.limits.memory_bytes) == ("threads", 3, 3 * 2**29)


@pytest.mark.parametrize(("signal_", "again"), [(signal.SIGALRM, True), (signal.SIGTERM, False)])
def test_driver__hands_over_once_before_anything_is_taken_down(signal_, again):
    seen, before = [], [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGTERM)]

    def hand_over(value):
        seen.append(value)
        return 5

    def work():
        with driver._stopping(60, hand_over):
            try:
                signal.raise_signal(signal_)
            finally:
                seen.append("down")
                signal.raise_signal(signal.SIGTERM)

    try:
        with pytest.raises(driver._Stopped) as stopped:
            work()
    finally:
        for number, handler in zip((signal.SIGALRM, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert (stopped.value.status, seen) == (5, [again, "down"])
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_progress__counts_stages_and_blocks(tmp_path):
    assert driver.progress(tmp_path) == (0, 0)
    (tmp_path / "work" / "graph-1").mkdir(parents=True)
    (tmp_path / "work" / "graph-1" / "journal.jsonl").write_text("{}\n{}\n")
    assert driver.progress(tmp_path) == (0, 2)


def test_submit__refuses_what_cannot_work_before_it_waits_in_the_queue(
    write_job, written, tmp_path, monkeypatch
):
    job = load_job(write_job())
    with pytest.raises(ClusterError, match="submits no jobs"):
        submit(job, ClusterOptions())
    slurm = parse_cluster(CLUSTER, "cluster.toml")
    small = load_job(write_job(), ["limits.memory=210MiB"])
    with pytest.raises(MemoryLimitError, match=r"limits.memory = 210.0 MiB"):
        submit(small, slurm, run_dir=tmp_path / "no")
    tight = parse_cluster({**CLUSTER, "driver": {"memory": "128MiB"}}, "cluster.toml")
    needed = (
        r"\[driver\] memory = 128MiB: the driver of a run .* takes up to 22\d.* Set it to 256MiB"
    )
    with pytest.raises(MemoryLimitError, match=needed):
        submit(job, tight, run_dir=tmp_path / "no")
    assert not (tmp_path / "no").exists()
    with pytest.raises(InputError, match="no driver of it was submitted"):
        cancel(tmp_path)
    with pytest.raises(ClusterError, match=r"driver.walltime = '00:00:30': a job of less than"):
        parse_cluster({**CLUSTER, "driver": {"walltime": "00:00:30"}}, "cluster.toml")
    with pytest.raises(ClusterError, match=r"driver.wall = .*Keys of \[driver\]: walltime"):
        parse_cluster({**CLUSTER, "driver": {"wall": 3}}, "cluster.toml")
    # No such command here: nothing looks as if it waited.
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClusterError, match="sbatch"):
        submit(job, slurm, run_dir=tmp_path / "run")
    found = status(tmp_path / "run")
    assert (found["driver"]["driver"], found["driver"]["job_id"]) == ("failed", None)
    (tmp_path / "run" / "submission.json").write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        status(tmp_path / "run")


@pytest.fixture
def queue_says(monkeypatch):
    """Return a function that sets the state of every job in the queue."""

    def says(state, reason=""):
        monkeypatch.setattr(SlurmOptions, "job_state", lambda job_id: state)
        monkeypatch.setattr(SlurmOptions, "job_reason", lambda job_id: reason)

    return says


@pytest.mark.parametrize(
    ("state", "began"),
    [("running", "was killed, or lost with its node"), ("submitted", "never began")],
)
def test_describe_driver__of_one_that_noted_no_end(
    tmp_path, monkeypatch, queue_says, cli, state, began
):
    made(tmp_path, state=state)
    (tmp_path / "driver" / "job-7.err").write_text("slurmstepd: error: oom_kill event\n")
    queue_says("gone")
    assert describe_driver(tmp_path)["driver"] == state  # a queue may show it later
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    found = status(tmp_path)
    why = f"job 7 is no longer in the queue: it {began}. The last line of its output: slurmstepd: error: "
    why += "oom_kill event"
    assert (found["driver"]["driver"], found["driver"]["message"]) == ("ended", why)
    assert (
        found["state"]
        == f"unfinished: its driver ended ({why}); the same `eigenscape submit` continues it"
    )
    assert f"driver       ended: job 7 of slurm (gone), 1 submitted. {why}" in " ".join(
        cli("status", tmp_path).stdout.split(" ")
    )
    # Its process lives: the queue alone has forgotten it.
    with filelock.FileLock(tmp_path / "driver" / "lock"):
        assert status(tmp_path)["driver"]["driver"] == state
    # It ends by itself while the queue is asked.
    found = read_submission(tmp_path)

    def ends(job_id):
        write_submission(tmp_path, found, state="finished")
        return "gone"

    monkeypatch.setattr(SlurmOptions, "job_state", ends)
    assert describe_driver(tmp_path)["driver"] == "finished"


@pytest.mark.parametrize(
    ("job", "driver", "left", "message"),
    [
        ("waiting", "submitted", "job 7 of its driver is waiting", ""),
        ("running", "running", "job 7 of its driver is running", ""),
        ("failed", "submitted", "the same `eigenscape submit` continues it", "bad node"),
        ("unknown", "running", "the same `eigenscape submit`", "squeue does not answer here"),
        ("gone", "cancelled", "the same `eigenscape submit` continues it", ""),
    ],
)
def test_status__says_what_becomes_of_a_run_with_a_driver(
    tmp_path, queue_says, job, driver, left, message
):
    made(tmp_path, state=driver)
    queue_says(job, "bad node")
    found = status(tmp_path)
    assert found["state"].startswith(f"unfinished: {left}")
    assert (found["driver"]["driver"], found["driver"]["message"]) == (driver, message)


@pytest.mark.parametrize(
    "others", [lambda file: file.chmod(0o666), lambda file: os.chown(file, 4321, -1)]
)
def test_changing__a_file_that_others_may_have_written(tmp_path, others):
    if os.geteuid() != 0:
        pytest.skip("needs the right to give files away")
    made(tmp_path, state="running")
    others(tmp_path / "submission.json")
    for work in (lambda: cancel(tmp_path), lambda: driver.main(tmp_path, print)):
        with pytest.raises(
            ClusterError, match=r"lines of shell in it run as you\. Take a run directory"
        ):
            work()
    assert read_submission(tmp_path).state == "running"  # who may read it may look


def test_submit__a_run_directory_that_a_script_cannot_name(tmp_path, written, write_job):
    job = load_job(write_job(scene={"labels": "labels.tif"}))
    on = parse_cluster(CLUSTER, "cluster.toml")
    for name in ("a b", "$(touch ran)", "100%", "a\nb"):
        with pytest.raises(ClusterError, match=r"the run directory has .* in its path"):
            submit(job, on, run_dir=tmp_path / "runs" / name)
    assert not (tmp_path / "runs").exists()
