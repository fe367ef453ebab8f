"""What can go wrong with tasks on workers, on real ones."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from importlib import import_module

import dask
import numpy as np
import pytest

from eigenscape.base import memory
from eigenscape.base.process import addresses
from eigenscape.base.process.progress import Silent
from eigenscape.clusters.check import check_cluster
from eigenscape.clusters.network import address_of
from eigenscape.clusters.options import ClusterOptions
from eigenscape.clusters.start import connect
from eigenscape.clusters.versions import differences, versions
from eigenscape.clusters.workers import dask as workers
from eigenscape.clusters.workers.dask import Workers, on_one_machine
from eigenscape.clusters.workers.executors import Threads
from eigenscape.errors import (
    ClusterError,
    ClusterLostError,
    MemoryLimitError,
    OutputError,
    SceneError,
    TaskMemoryError,
)
from eigenscape.job.jobfile import parse_job
from eigenscape.scenes.formats.rasters.rasterfiles import open_raster
from eigenscape.workflow.runner import Runner, fit_limits
from eigenscape.workflow.stages import Stage

MIB = 2**20


@pytest.fixture(scope="module")
def cluster():
    """One worker that may take 700 MiB and is not given a second chance."""
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", memory_limit=700 * MIB, silence_logs=50,
        ) as found,
    ):  # fmt: skip
        yield found


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as found:
        yield found


def job(**tables):
    return parse_job({"scene": {"path": "scene.tif"}, **tables})


def collect(executor, function, items):
    found = {}
    executor.run(function, items, lambda index, result, _: found.update({index: result}))
    return [found[index] for index in range(len(items))]


def test_workers__other_versions(client, monkeypatch):
    executor = Workers(client)
    there = versions()["numpy"]
    # Of this process alone: the worker has its own.
    monkeypatch.setitem(versions(), "numpy", "1.0.3")
    monkeypatch.setitem(versions(), "eigenscape", "0.0.1")
    with pytest.raises(ClusterError, match=rf"numpy 1\.0\.3 here, {there} there") as caught:
        Workers(client)
    assert "eigenscape 0.0.1 here" in str(caught.value)
    # A worker that came later is found by its first task.
    with pytest.raises(ClusterError, match=r"numpy 1\.0\.3 here"):
        executor.run(abs, [-1], lambda *_: None)


def test_workers__address_space_without_room(client):
    unlimited = resource.RLIM_INFINITY
    said = []
    with closing(Workers(client, say=said.append)) as executor:
        executor.check_address_spaces(2**40)
        client.run(resource.setrlimit, resource.RLIMIT_AS, (2**40, unlimited))
        try:
            executor.check_address_spaces(2**30)
            assert not said
            executor.check_address_spaces(2**40)
            assert said[0].startswith("worker on ")
            assert "limited to 1.0 TiB" in said[0]
            # A limit as low as that would end the worker.
            client.run(setattr, addresses, "_LIBRARIES", 2**40)
            with pytest.raises(MemoryLimitError, match=r"^worker on .* limited to 1\.0 TiB"):
                executor.check_address_spaces(2**30)
        finally:
            client.run(setattr, addresses, "_LIBRARIES", addresses._LIBRARIES)
            client.run(resource.setrlimit, resource.RLIMIT_AS, (unlimited, unlimited))


def test_run__a_client_that_gave_up_its_connection(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client, closing(Workers(client)) as executor:
        client.close()
        with pytest.raises(ClusterLostError, match="the scheduler was lost"):
            executor.run(abs, [-1], lambda *_: None)


def test_differences__the_numbers_that_count():
    here = dict.fromkeys(versions(), "2.1.7")
    assert differences(here, here) == []
    assert differences(here, {**here, "python": "2.1.9", "zarr": "2.1", "numpy": "2.1.0rc1"}) == []
    assert differences(here, {**here, "python": "2.2.7"}) == ["python 2.1.7 here, 2.2.7 there"]
    assert differences(here, {**here, "dask": "2.1.8"}) == ["dask 2.1.7 here, 2.1.8 there"]
    there = {key: value for key, value in here.items() if key != "eigenscape"}
    assert differences(here, there) == ["eigenscape 2.1.7 here, absent there"]


@pytest.mark.slow
def test_run__task_larger_than_its_worker_is_halved(client, tmp_path, monkeypatch):
    # This stage has no key.
    monkeypatch.setattr("eigenscape.workflow.runner.check_unchanged", lambda *_: None)
    executor = Workers(client)
    sizes, notes = [], []

    def fill(size):
        block = np.ones(size // 8)  # resident, not only reserved
        time.sleep(0.5)  # a nanny looks ten times a second
        return float(block.sum())

    def work(context):
        sizes.append(context.task_bytes)
        return {"sums": context.map("fill", fill, [context.task_bytes, 8])}

    class Hearing(Silent):
        def note(self, text):
            notes.append(text)

    runner = Runner(
        job(limits={"memory": "1000MiB"}), (Stage("ingest", work, (), ()),), {"ingest": "k"}
    )
    on = ClusterOptions(kind="existing", address="tcp://x:1")
    [done] = runner.run(tmp_path / "run", on, Hearing(), executor=executor)
    assert done["reused"] is False
    assert sizes == [sizes[0], sizes[0] // 2]
    assert f"a task that may take {memory.format_bytes(sizes[0])} was too large" in notes[0]
    assert "1 workers died of a task: each took more memory than it may have" in notes[0]


def test_run__no_size_fits(client, tmp_path):
    executor = Workers(client)
    sizes = []

    def fill(_):
        raise MemoryError("no room")

    def work(context):
        sizes.append(context.task_bytes)
        return context.map("fill", fill, [1])

    runner = Runner(job(), (Stage("ingest", work, (), ()),), {"ingest": "k"})
    on = ClusterOptions(kind="existing", address="tcp://x:1")
    with pytest.raises(
        TaskMemoryError, match=r"ran out of memory \(no room\).*memory in the cluster"
    ):
        runner.run(tmp_path / "run", on, Silent(), executor=executor)
    assert sizes == [sizes[0] >> number for number in range(4)]


def test_run__full_disk_there(client, tmp_path):
    executor = Workers(client)

    def fill(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def work(context):
        return context.map("fill", fill, [1])

    runner = Runner(job(), (Stage("ingest", work, (), ()),), {"ingest": "k"})
    on = ClusterOptions(kind="existing", address="tcp://x:1")
    with pytest.raises(OutputError, match="the disk is full"):
        runner.run(tmp_path / "run", on, Silent(), executor=executor)


def test_run__an_error_that_gdal_caused(client, write_tif):
    path = write_tif("scene.tif", np.ones((50, 60, 12)))
    os.truncate(path, 9000)

    def read(_):
        with open_raster(str(path)) as dataset:
            return dataset.read()

    # GDAL's own error cannot be unpickled, and Dask pickles an error with its causes.
    with pytest.raises(SceneError, match=r"truncated or damaged"):
        Workers(client).run(read, [1], lambda *_: None)


def test_run__a_file_that_is_seen_late(client, tmp_path):
    executor = Workers(client)
    late, stale = tmp_path / "late", tmp_path / "stale"
    np.zeros(10).tofile(stale)

    def read(path):
        return len(path.read_bytes())

    def attach(path):
        return float(np.memmap(path, np.float64, "r", shape=(20,))[19])

    def appear():
        late.write_bytes(b"four")
        np.ones(20).tofile(stale)

    for function, path, expected in ((read, late, 4), (attach, stale, 1.0)):
        timer = threading.Timer(0.5, appear)
        timer.start()
        assert collect(executor, function, [path]) == [expected]
        timer.join()


def test_run__a_file_that_is_never_seen(client, tmp_path, monkeypatch):
    executor = Workers(client)
    client.run(lambda: setattr(import_module("eigenscape.clusters.workers.task"), "LAG_S", 0.3))
    with pytest.raises(FileNotFoundError, match="absent"):
        executor.run(lambda path: path.read_bytes(), [tmp_path / "absent"], lambda *_: None)
    shared = tmp_path / "shared"
    shared.mkdir()
    executor.share(shared)
    assert list(shared.iterdir()) == []
    shared.rmdir()
    with pytest.raises(ClusterError, match=r"shared: the worker on .* does not see this directory"):
        executor.run(lambda path: path.read_bytes(), [shared / "absent"], lambda *_: None)


@pytest.mark.slow
def test_check__local(tmp_path):
    found = check_cluster(ClusterOptions(kind="local", workers=5), tmp_path / "runs", 2**29)
    assert (found.kind, found.threads, found.memory_limit) == ("local", 1, 2**30)
    assert found.seen_there_s < 5
    assert found.seen_here_s < 5
    assert found.memory_total > found.memory_available > 0
    assert set(found.to_json()["versions"]) == set(versions())
    with pytest.raises(ClusterError, match="has no workers to check"):
        check_cluster(ClusterOptions(), tmp_path, 2**29)


@pytest.fixture
def apart(tmp_path):
    """A scheduler, and a worker that has a file system of its own at tmp_path/apart."""
    (tmp_path / "apart").mkdir()
    file = tmp_path / "scheduler.json"
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    worker = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', tmp_path / "apart",
         sys.executable, "-m", "eigenscape.clusters.workers.process", "--scheduler-file", str(file),
         "--interface", "lo", "--no-nanny", "--nthreads", "1", "--death-timeout", "60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    yield ClusterOptions(kind="existing", scheduler_file=str(file)), scheduler
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.mark.slow
def test_existing__directory_not_shared_and_scheduler_lost(apart, tmp_path, monkeypatch):
    options, scheduler = apart
    monkeypatch.setattr(workers, "_RECONNECT_S", 1.0)
    with connect(options, None, 2**30) as executor:
        executor.share(tmp_path)
        with pytest.raises(ClusterError, match=r"apart: the worker on 127\.0\.0\.1 does not see"):
            executor.share(tmp_path / "apart")
        timer = threading.Timer(0.5, scheduler.send_signal, (signal.SIGKILL,))
        timer.start()
        with pytest.raises(
            ClusterLostError, match=r"the scheduler was lost.*the same command goes on"
        ):
            executor.run(lambda _: time.sleep(30), [1, 2], lambda *_: None)
        timer.join()


def test_on_one_machine__workers_that_may_be_elsewhere_leave_it_to_this_one(client, monkeypatch):
    executor = Workers(client)
    assert on_one_machine(executor) is executor
    threads = Threads(3)
    assert on_one_machine(threads) is threads
    elsewhere = property(lambda self: ["tcp://127.0.0.1:1", "tcp://10.0.0.2:1"])
    monkeypatch.setattr(Workers, "addresses", elsewhere)
    here = on_one_machine(executor)
    assert isinstance(here, Threads)
    assert here.width == here.tasks_per_process == 1


@pytest.mark.slow
def test_fit_limits__no_more_than_a_worker_has():
    def fitted(**keys):
        return fit_limits(job(), ClusterOptions(kind="slurm", **keys)).limits.memory_bytes

    assert fitted() == 2 * 2**30
    assert fitted(memory="8GiB", processes=2, cores=2) == 2 * 2**30
    assert fitted(memory="2GiB") == 1.5 * 2**30
    assert fitted(memory="2GiB", processes=2, cores=2) == 0.75 * 2**30


@pytest.mark.slow
def test_address_of__interfaces():
    assert address_of("lo") == "127.0.0.1"
    with pytest.raises(ClusterError, match=r"interface = 'loo'.* Did you mean lo\? It has: "):
        address_of("loo")
