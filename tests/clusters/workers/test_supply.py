"""Jobs of a real SLURM that are lost, refused, held or suspended: said, and replaced."""

import sys
import threading
import time

import cloudpickle
import pytest
import tomlkit

from eigenscape.clusters import connect
from eigenscape.clusters.loading import parse_cluster
from eigenscape.clusters.workers import supply, watch
from eigenscape.clusters.workers.refusals import is_hopeless
from eigenscape.clusters.workers.reports import last_line
from waiting import wait_until

pytestmark = pytest.mark.slurm

GIB = 2**30

# No worker can import this module by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A cluster file for loopback; the queue is asked often."""
    monkeypatch.setattr(supply, "ASK_S", 1.0)
    monkeypatch.setattr(supply, "AWAY_S", 1.0)
    monkeypatch.setattr(watch, "_SAY_S", 1.0)
    return {
        "kind": "slurm", "cores": 1, "memory": "1500MiB", "interface": "lo", "walltime": "00:10:00",
        "log_directory": str(tmp_path / "logs"),
    }  # fmt: skip


def open_for(table, said, **keys):
    return connect(parse_cluster({**table, **keys}, "slurm.toml"), None, GIB, said.append)


def partition(slurm, state):
    slurm.call("scontrol", "update", "PartitionName=debug", f"State={state}")


def later(seconds, function, *arguments):
    timer = threading.Timer(seconds, function, arguments)
    timer.start()
    return timer


def slowly(number):
    time.sleep(0.3)
    return number


def test_check__a_python_that_is_not_there(slurm, table, cli, tmp_path):
    path = tmp_path / "slurm.toml"
    path.write_text(tomlkit.dumps({**table, "python": "/nowhere/python"}), encoding="utf-8")
    result = cli("cluster", "check", path, "--run-dir", tmp_path / "r")
    assert result.exit_code == 2
    # Each of three jobs is told of, with its number and what it printed; the last ends it.
    said = [line for line in result.stderr.splitlines() if " ended before its worker came." in line]
    assert len({line.partition(" ended")[0].split()[-1] for line in said}) == 3
    assert said[-1].startswith("eigenscape: job ")
    for line in said:
        assert "The last line of its log: " in line
        assert "/nowhere/python: No such file or directory" in line
    wait_until(lambda: slurm.call("squeue", "-h") == "")


@pytest.mark.exhaustive
def test_connect__a_partition_that_is_away_for_a_while(slurm, table):
    said = []
    partition(slurm, "INACTIVE")
    timer = later(4.0, partition, slurm, "UP")
    try:
        with open_for(table, said) as executor:
            assert executor.width == 1
            timer.join()
            # Its only job is lost while the partition is away once more.
            partition(slurm, "INACTIVE")
            slurm.call("scancel", *slurm.jobs())
            timer = later(4.0, partition, slurm, "UP")
            heard = []
            executor.run(abs, list(range(8)), lambda index, result, peak: heard.append(result))
            assert sorted(heard) == list(range(8))
    finally:
        timer.join()
        partition(slurm, "UP")
    assert "sbatch refused the job: sbatch: error: Batch job submission failed" in said[0]
    assert any(line.startswith("no worker for ") and "submitted again" in line for line in said)


def test_connect__a_node_that_is_drained(slurm, table):
    said = []
    slurm.call("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=disk")

    def resume():
        wait_until(lambda: any("DRAINED" in line for line in said))
        slurm.call("scontrol", "update", "NodeName=n1", "State=RESUME")

    timer = later(0.0, resume)
    try:
        with open_for(table, said):
            pass
    finally:
        timer.join()
    assert any("waiting (PENDING: Nodes required for job are DOWN" in line for line in said)


@pytest.mark.exhaustive
def test_run__one_of_two_jobs_is_lost_while_the_queue_refuses(slurm, table):
    said = []
    with open_for(table, said, jobs=2) as executor:
        wait_until(lambda: executor.width == 2)
        lost = slurm.jobs()[0]
        partition(slurm, "INACTIVE")
        slurm.call("scancel", lost)
        timer = later(4.0, partition, slurm, "UP")
        try:
            executor.run(lambda number: slowly(number), list(range(30)), lambda *_: None)
            wait_until(lambda: executor.width == 2)
        finally:
            timer.join()
            partition(slurm, "UP")
        assert lost not in slurm.jobs()
    assert f"job {lost} of workers is lost: another takes its place" in said


@pytest.mark.exhaustive
def test_run__a_job_that_is_suspended(slurm, table, monkeypatch):
    monkeypatch.setattr(watch, "SILENT_S", 12.0)
    monkeypatch.setattr(watch, "_KILL_S", 3.0)
    said = []
    with open_for(table, said, jobs=2) as executor:
        wait_until(lambda: executor.width == 2)
        suspended = slurm.jobs()[0]
        timer = later(1.0, slurm.call, "scontrol", "suspend", suspended)
        heard = []
        executor.run(
            lambda number: slowly(number),
            list(range(20)),
            lambda index, result, peak: heard.append(result),
        )
        timer.join()
        assert sorted(heard) == list(range(20))
        # Nobody answers there: the job is cancelled, and another comes.
        wait_until(lambda: executor.width == 2)
        assert suspended not in slurm.jobs("R,S,PD")
    assert any("has sent no heartbeat for 12 s: it is ended" in line for line in said)


def test_is_hopeless__what_a_queue_says():
    def refused(text):
        return is_hopeless(RuntimeError(f"cmd:\nsbatch /unknown/x\nstdout:\n\nstderr:\n{text}\n"))

    assert refused("sbatch: error: Invalid partition name specified")
    assert refused("qsub: Unknown queue")
    assert not refused("Unable to contact slurm controller (connect failure)")
    assert not refused("Required partition not available (inactive or drain)")
    assert is_hopeless(FileNotFoundError("sbatch"))


def test_last_line__of_a_log(tmp_path):
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_text("first\nlast \n\n", encoding="utf-8")
    assert last_line(log) == "last"
