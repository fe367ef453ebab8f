"""Runs on a client that the caller has: its workers do the tasks, and all of it is there afterwards."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info

import eigenscape
from eigenscape.clusters.versions import versions
from eigenscape.clusters.workers import fence
from eigenscape.clusters.workers.client import ClientOptions, place_of
from eigenscape.clusters.workers.dask import is_here
from eigenscape.clusters.workers.task import Surroundings, run_task, this_process
from eigenscape.errors import ClusterError

KEYS = {
    "preset": "halevy-2011",
    "spectrum": {"dimension": 5},
    "neighbors": {"k": 6},
    "output": {"formats": []},
}


def make_job(directory):
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 2], 150).reshape(15, 20)
    cube = rng.normal(size=(15, 20, 6)) + 4 * truth[:, :, None]
    labels = np.where(rng.random(truth.shape) < 0.3, truth, 0)
    return eigenscape.job_for(cube, labels, directory=directory, **KEYS)


def client_of(*, processes):
    # One worker of one thread: a task that waits for others without leaving it would wait for ever.
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=processes, dashboard_address="127.0.0.1:0",
        host="127.0.0.1" if processes else None, memory_limit="3GiB", silence_logs=50,
    )  # fmt: skip
    return cluster, Client(cluster)


@pytest.fixture(scope="module")
def client():
    """A client whose worker is a thread of this process."""
    cluster, found = client_of(processes=False)
    with cluster, found:
        yield found


def blas_threads():
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}


@pytest.mark.slow
def test_run__on_a_client_is_the_same_as_on_threads(tmp_path, client):
    before = blas_threads()
    ours = eigenscape.run(make_job(tmp_path / "a"), client=client)
    theirs = eigenscape.run(make_job(tmp_path / "b"))
    assert ours.scores == theirs.scores
    np.testing.assert_array_equal(ours.class_map, theirs.class_map)
    # It is left as it was found: the client is connected, this process takes its threads again.
    assert client.submit(abs, -1).result() == 1
    assert before.items() <= blas_threads().items()
    assert not [thread for thread in threading.enumerate() if thread.name == "watch"]


@pytest.mark.slow
def test_run__inside_a_task_of_a_worker(tmp_path, client):
    found = client.submit(eigenscape.run, make_job(tmp_path), client="current").result(timeout=120)
    assert found.scores["overall_accuracy"] > 0.9
    assert client.submit(abs, -2).result() == 2  # its thread is back


def test_plan_and_apply__on_a_client(tmp_path, client):
    job = make_job(tmp_path)
    planned = eigenscape.plan(job, client="current")
    assert planned.threads is None
    result = eigenscape.run(job, client=client)
    applied = eigenscape.apply(result, job.scene.path, run_dir=tmp_path / "on", client=client)
    assert applied.class_map.shape == (15, 20)


@pytest.mark.slow
def test_run__on_worker_processes(tmp_path):
    cluster, client = client_of(processes=True)
    with cluster, client:
        options = place_of(None, client)
        assert (options.process_threads(), options.process_memory()) == (1, 3 * 2**30)
        ours = eigenscape.run(make_job(tmp_path / "a"), client=client)
        task = client.submit(eigenscape.run, make_job(tmp_path / "b"), client="current")
        found = task.result(timeout=120)
    assert found.scores == ours.scores == eigenscape.run(make_job(tmp_path / "c")).scores
    with pytest.raises(ClusterError, match="its status is 'closed'"):
        place_of(None, client)


def test_client_options__of_what_its_workers_have():
    workers = [
        {"nthreads": 2, "memory_limit": 2**32},
        {"nthreads": 4, "memory_limit": 2**31},
        {"nthreads": 1, "memory_limit": None},
    ]

    def identity(n_workers):
        return {"workers": {str(number): worker for number, worker in enumerate(workers)}}

    options = ClientOptions.of(
        SimpleNamespace(
            sync=lambda call, **given: call(**given), scheduler=SimpleNamespace(identity=identity)
        )
    )
    assert options.process_threads() == 4
    assert options.process_memory() == 2**31
    del workers[:]
    assert (options.process_threads(), options.process_memory()) == (1, None)


def test_place_of__what_cannot_be_one(client, tmp_path):
    assert place_of(None).kind == "threads"
    assert place_of("tcp://127.0.0.1:8786").kind == "existing"
    (tmp_path / "two.toml").write_text('kind = "local"\nworkers = 2')
    assert place_of(tmp_path / "two.toml").workers == 2
    for given, message in (
        ({"on": client}, "on of type Client.*Give a client as client="),
        ({"on": 3}, "on of type int: give a cluster file"),
        ({"on": None, "client": 3}, "client of type int: give a distributed.Client"),
        ({"on": "a.toml", "client": client}, "both given"),
    ):
        with pytest.raises(ClusterError, match=message):
            place_of(**given)
    with pytest.raises(ClusterError, match="asynchronous"):
        place_of(None, type("Client", (Client,), {"asynchronous": True, "__init__": object.__init__,
                                                  "__del__": object.__init__})())  # fmt: skip


def test_place_of__no_current_client(monkeypatch):
    def none():
        raise ValueError

    monkeypatch.setattr("distributed.get_client", none)
    with pytest.raises(ClusterError, match="this process has no client of distributed"):
        place_of(None, "current")


def test_run_task__in_the_process_of_the_driver_sets_no_alarm(client, monkeypatch):
    alarms = []
    monkeypatch.setattr(fence, "_put_off", lambda: alarms.append(1))
    for driver in (this_process(), "another"):
        run_task(Surroundings(versions(), driver=driver), abs, 1)
        assert bool(alarms) == (driver == "another")


def test_is_here__the_loopback_and_this_process():
    assert is_here("tcp://127.0.0.1:4000")
    assert is_here("inproc://192.168.0.2/12/3")
    assert not is_here("tls://192.168.0.2:4000")
