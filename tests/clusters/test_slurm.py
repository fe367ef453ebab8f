"""Runs through a real SLURM: jobs of workers, lost ones, an allocation."""

import json
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
import tomlkit

from eigenscape.clusters import connect, load_cluster
from eigenscape.clusters.registry import find_queue
from eigenscape.clusters.workers import supply
from eigenscape.errors import ClusterError
from eigenscape.job.jobfile import load_job
from eigenscape.store.run import Run
from eigenscape.workflow.spine import run
from machines.strangers import check_strangers, http_answers
from waiting import wait_until

pytestmark = pytest.mark.slurm

GIB = 2**30


def write(tmp_path, **keys):
    """Write slurm.toml, for one core and loopback."""
    table = {
        "kind": "slurm", "cores": 1, "memory": "1500MiB", "interface": "lo",
        "log_directory": str(tmp_path / "logs"), **keys,
    }  # fmt: skip
    if table["kind"] == "slurm":
        table = {"walltime": "00:10:00", **table}
    (tmp_path / "slurm.toml").write_text(tomlkit.dumps(table), encoding="utf-8")


def read(tmp_path, **keys):
    write(tmp_path, **keys)
    return load_cluster(tmp_path / "slurm.toml")


def same_result(one, other):
    for name in ("spectrum/value", "labels/class", "neighbors/index"):
        np.testing.assert_array_equal(Run(one).open(name)[...], Run(other).open(name)[...])


@pytest.fixture
def job(write_tif, write_job, make_scene):
    """A job of several blocks in every stage."""
    scene = make_scene(72, 64, 12)
    write_tif("scene.tif", scene.cube, hole=scene.hole)
    write_tif("labels.tif", scene.labels, nodata=0)
    return load_job(write_job(scene={"labels": "labels.tif"}, limits={"memory": "1GiB"}))


def test_run__through_jobs_one_of_which_is_cancelled(slurm, job, tmp_path):
    calm = run(job, run_dir=tmp_path / "a" / "run").path
    ran = tmp_path / "ran"

    def note(number):
        with ran.open("a", encoding="utf-8") as stream:
            stream.write(f"{number}\n")
        time.sleep(0.1)
        return number

    with connect(read(tmp_path, jobs=2), None, GIB) as executor:
        wait_until(lambda: executor.width == 2)
        assert len(check_strangers(executor._client)) == 5
        assert http_answers("eigenscape.clusters.workers.process") == ({"127.0.0.1"}, [])
        heard = []

        def hear(index, number, peak):
            assert index == number
            heard.append(number)
            if len(heard) == 15:
                lost.extend((slurm.jobs()[0], frozenset(heard)))
                slurm.call("scancel", lost[0])

        lost = []
        executor.run(note, list(range(40)), hear)
        assert sorted(heard) == list(range(40))
        times = Counter(map(int, ran.read_text(encoding="utf-8").split()))
        # Only what ran on the lost worker when it was lost may have run again.
        assert sum(times.values()) <= 42
        assert all(times[number] == 1 for number in lost[1])

        # With the worker that is left, then with the one that replaces the other.
        hurt = run(job, run_dir=tmp_path / "b" / "run", executor=executor).path
        wait_until(lambda: executor.run(abs, [-1], lambda *_: None) or executor.width == 2)
        assert len(slurm.jobs()) == 2
        assert lost[0] not in slurm.jobs()
    same_result(hurt, calm)
    wait_until(lambda: slurm.jobs() == [])


def test_cluster_check__one_worker_encrypted(slurm, cli, tmp_path):
    write(tmp_path, jobs=7)
    result = cli("cluster", "check", tmp_path / "slurm.toml", "--run-dir", tmp_path / "r", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert (found["kind"], found["threads"]) == ("slurm", 1)
    assert found["memory_limit"] == pytest.approx(1500 * 2**20, rel=0.01)
    for here, there in found["versions"].values():
        assert here == there
    for key in ("shared_write", "shared_read", "scratch_write", "scratch_read", "network"):
        assert found[key] > 0
    assert list((tmp_path / "r").iterdir()) == []
    logs = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "logs").iterdir())
    assert "tls://127.0.0.1" in logs
    assert "tcp://" not in logs
    assert "PRIVATE KEY" not in logs
    # One job was submitted, and it is over.
    assert len(list((tmp_path / "logs").glob("*.err"))) == 1
    wait_until(lambda: slurm.jobs() == [])


def test_connect__as_many_jobs_as_there_is_work(slurm, tmp_path):
    options = read(tmp_path, maximum_jobs=2, cores=2, processes=2)
    with connect(options, None, GIB) as executor:
        assert len(slurm.jobs()) == 1
        wait_until(lambda: executor.width == 2)

        def slow(number):
            time.sleep(0.3)
            return number

        class EnoughError(Exception):
            pass

        def hear(*_):
            if executor.width == 4:
                raise EnoughError

        with pytest.raises(EnoughError):
            executor.run(slow, list(range(600)), hear)
        assert len(slurm.jobs()) == 2
        assert executor.tasks_per_process == 1


def test_connect__inside_an_allocation(slurm, monkeypatch, tmp_path):
    done = subprocess.run(
        ["salloc", "--no-shell", "-n", "2", "--mem=3000"],
        capture_output=True,
        text=True,
        check=True,
    )
    number = done.stderr.rpartition("job allocation ")[2].split()[0]
    monkeypatch.setenv("SLURM_JOB_ID", number)
    monkeypatch.setenv("SLURM_NTASKS", "2")
    options = read(tmp_path, kind="allocation")
    with connect(options, None, GIB) as executor:
        wait_until(lambda: executor.width == 2)
        assert executor.tasks_per_process == 1
        assert len(check_strangers(executor._client)) == 5
        assert http_answers("eigenscape.clusters.workers.process") == ({"127.0.0.1"}, [])
        found = {}
        executor.run(
            lambda item: item**2, [3, 4], lambda i, result, peak: found.update({i: result})
        )
        assert found == {0: 9, 1: 16}
        assert slurm.jobs() == [number]
    find_queue("slurm").cancel(number)
    assert "Registered to" in (tmp_path / "logs" / f"allocation-{number}.log").read_text("utf-8")


def test_connect__jobs_that_end_before_their_worker_comes(slurm, monkeypatch, tmp_path):
    monkeypatch.setattr(supply, "ASK_S", 1.0)
    options = read(tmp_path, jobs=2, environment=["exit 3"])
    with pytest.raises(ClusterError) as caught, connect(options, None, GIB):
        pass
    assert "ended before its worker came. Its log is empty. The output of the jobs" in str(
        caught.value
    )
    assert str(tmp_path / "logs") in str(caught.value)
    wait_until(lambda: slurm.call("squeue", "-h") == "")


def test_connect__a_job_that_is_refused(slurm, tmp_path):
    with (
        pytest.raises(ClusterError, match=r"sbatch refused the job: .*Memory specification"),
        connect(read(tmp_path, memory="4TiB"), None, GIB),
    ):
        pass


def test_connect__workers_that_never_come(slurm, tmp_path):
    options = read(tmp_path, wait=1.0, directives=["--begin=now+1hour"])
    with (
        pytest.raises(ClusterError, match=r"no worker came within 1 s .*from this machine alone"),
        connect(options, None, GIB),
    ):
        pass
    wait_until(lambda: slurm.call("squeue", "-h") == "")


def test_submit__a_driver(slurm, tmp_path):
    options = read(tmp_path, environment=["export GREETING='good day'"])
    out = tmp_path / "out"
    code = f"import os; open({str(out)!r}, 'w').write(os.environ['GREETING'] + ' $HOME')"
    number = options.submit(options.driver_script([sys.executable, "-c", code], name="driver"))
    wait_until(lambda: find_queue("slurm").job_state(number) == "gone")
    assert out.read_text("utf-8") == "good day $HOME"
    script = options.driver_script(["sleep", "60"], directives=["--begin=now+1hour"])
    number = options.submit(script)
    assert find_queue("slurm").job_state(number) == "waiting"
    find_queue("slurm").cancel(number)
    wait_until(lambda: find_queue("slurm").job_state(number) == "gone")
    assert find_queue("slurm").job_state("999999") == "gone"
