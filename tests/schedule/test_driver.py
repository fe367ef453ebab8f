import signal

import pytest

from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.submission import Submission, read_submission, write_submission
from eigenscape.schedule import driver

CLUSTER = {"kind": "slurm", "memory": "4GiB", "cores": 1, "walltime": "01:00:00"}


def submission(table):
    """Return what is known of a job that was submitted."""
    return Submission(
        kind="slurm", name="eig", worker_name="eig-w", cluster=CLUSTER,
        job={"table": table, "name": "job", "base": "/"},
    )  # fmt: skip


def test_work__says_that_the_job_cannot_be_read(tmp_path):
    found = submission({"scene": {"path": "a.tif", "removed": 1}})
    options = parse_cluster(CLUSTER, "cluster.toml")
    status, message = driver._work(tmp_path, found, options, print)
    assert status == 2
    assert "removed" in message


def test_main__a_job_of_another_version_has_failed(tmp_path, monkeypatch):
    (tmp_path / "driver").mkdir()
    write_submission(tmp_path, submission({"scene": {"path": "a.tif", "removed": 1}}))
    before = signal.getsignal(signal.SIGTERM)
    assert driver.main(tmp_path, print) == 2
    found = read_submission(tmp_path)
    assert (found.state, found.exit_status) == ("failed", 2)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGALRM])
def test_stopping__hands_over_once(number):
    handed = []
    before = signal.getsignal(signal.SIGALRM)

    def hand_over(again):
        handed.append(again)
        return 5

    kept = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(driver._Stopped) as caught, driver._stopping(60, hand_over):
            signal.raise_signal(number)
        assert caught.value.status == 5
        assert handed == [number == signal.SIGALRM]
        # What is taken down is not interrupted.
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        signal.signal(signal.SIGTERM, kept)
