import os
import socket
import threading

import dask
import numpy as np
import pytest

from eigenscape.base.process.cores import usable_cores
from eigenscape.clusters import ClusterOptions, Threads, connect, load_cluster
from eigenscape.errors import ClusterError

GIB = 2**30


def write(tmp_path, text):
    path = tmp_path / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return path


# Tasks of worker processes travel as source: this module has no name that a worker could import.
def square(item):
    return item * item


def collect(executor, function, items):
    found = {}

    def done(index, result, peak):
        assert index not in found
        assert peak > 10 * 2**20
        found[index] = result

    executor.run(function, items, done)
    return [found[index] for index in range(len(items))]


def test_load_cluster__defaults():
    assert load_cluster(None) == ClusterOptions(kind="threads")


def test_load_cluster__address_and_file(tmp_path):
    assert load_cluster("tcp://127.0.0.1:8786").address == "tcp://127.0.0.1:8786"
    assert load_cluster("tls://host:1").kind == "existing"
    options = load_cluster(write(tmp_path, 'kind = "local"\nworkers = 3\nthreads_per_worker = 2'))
    assert (options.kind, options.workers, options.threads_per_worker) == ("local", 3, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "kind = 'cloud'",
            ["kind = 'cloud'", "no such kind of cluster", "existing, htcondor, local"],
        ),
        (
            "kind = 'local'\nworker = 3",
            ["unknown key worker. Did you mean workers? Keys: kind, workers"],
        ),
        ("workers = 3", ["workers is no key of kind = 'threads' (but of allocation, local)"]),
        (
            "kind = 'local'\nworkers = 0",
            ["workers = 0", "greater than or equal to 1", "one per core by default"],
        ),
        ("kind = 'existing'", ["existing", "address or scheduler_file"]),
        ("kind = 'slurms'", ["kind = 'slurms'", "Did you mean slurm?"]),
        ("kind = 'slurm'\nproject = 'p'", ["of lsf, oar, sge). Did you mean account?"]),
        (
            "kind = 'slurm'\nwalltime = '90'\ncors = 2\nmemory = 'much'",
            ["walltime = '90'", "hours:minutes", "unknown key cors. Did you mean cores?", "4GiB"],
        ),
        ("kind = 'slurm'\nwalltime = '00:00:30'", ["less than a minute"]),
        ("kind = 'slurm'\nqueue = 'a; touch b'", ["no shell code", "environment"]),
        ("kind = 'slurm'\npython = 'python $(touch b)'", ["no shell code", "environment"]),
        ('kind = "slurm"\ndirectives = ["-x\\ntouch b"]', ["no shell code", "environment"]),
        ('kind = "slurm"\nenvironment = ["a\\nb"]', ["one shell line per item"]),
        ("kind = 'slurm'\njobs = 2\nmaximum_jobs = 3", ["give one of them"]),
        ("kind = 'slurm'\nminimum_jobs = 2", ["minimum_jobs needs maximum_jobs"]),
        ("kind = 'slurm'\nminimum_jobs = 3\nmaximum_jobs = 2", ["more than maximum_jobs"]),
        ("kind = 'slurm'\ncores = 5\nprocesses = 2", ["cannot be divided"]),
        ("kind = 'slurm'\ntls_cert = 'c.pem'", ["must be given together"]),
        ("kind = 'ssh'", ["needs hosts"]),
        ("kind = ", ["cannot be read as a cluster file", "Invalid value"]),
    ],
)
def test_load_cluster__says_what_is_wrong(tmp_path, text, words):
    with pytest.raises(ClusterError) as caught:
        load_cluster(write(tmp_path, text))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "cluster.toml"))
    for word in words:
        assert word in message, message


def test_load_cluster__names_the_value_that_was_given(tmp_path):
    with pytest.raises(ClusterError, match=r"workers = -7"):
        load_cluster(write(tmp_path, "kind = 'local'\nworkers = -7"))


def test_load_cluster__no_such_file(tmp_path):
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(ClusterError, match=r"cannot be read.*cluster/local.toml"):
            load_cluster(path)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://", "is not a host and a port"),
        ("tcp://host", "is not a host and a port"),
        ("tcp://host:8786/status", "is not a host and a port"),
        ("tcp://:8786", "is not a host and a port"),
        ("tcp://host:-1", "is not a host and a port"),
        ("tcp://host:99999", "has the port 99999"),
        ("tcp://host:0", "has the port 0"),
        ("tcp://host :8786", "contains a space"),
        (" tcp://host:8786", "contains a space"),
        ("http://localhost:8787/status", "is the address of a page"),
        ("tcp://host:port", "is not a host and a port"),
        ("foo://host:1", "begins with none of tcp://, tls://"),
    ],
)
def test_load_cluster__refuses_an_address_at_once(address, words):
    with pytest.raises(ClusterError, match=r"such as tcp://127\.0\.0\.1:8786") as caught:
        load_cluster(address)
    assert str(caught.value).startswith(f"on: address = {address!r}: it {words}")


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:8786", "tls://node-1.hpc:1", "tcp://[fe80::1%lo]:1"]
)
def test_load_cluster__takes_the_address_of_a_scheduler(address):
    assert load_cluster(address).address == address


def test_load_cluster__says_what_an_address_without_its_beginning_may_be():
    with pytest.raises(
        ClusterError, match=r"the address of a scheduler, such as tcp://localhost:8786\."
    ):
        load_cluster("localhost:8786")
    for path in ("", "foo:bar"):
        with pytest.raises(ClusterError, match=r"such as tcp://127\.0\.0\.1:8786\."):
            load_cluster(path)


def test_connect__refuses_encryption_without_certificates():
    with (
        pytest.raises(ClusterError, match=r"no certificates.*tls_ca_file"),
        connect(load_cluster("tls://127.0.0.1:8786"), 1, 2**30),
    ):
        pass


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads__every_item_once_and_no_more_at_a_time(threads):
    executor = Threads(threads)
    assert (executor.width, executor.tasks_per_process) == (threads, threads)
    lock, now, most = threading.Lock(), [0], [0]

    def work(item):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.005)
        with lock:
            now[0] -= 1
        return square(item)

    assert collect(executor, work, list(range(20))) == [square(item) for item in range(20)]
    assert most[0] <= threads


def test_threads__all_cores_by_default():
    assert Threads().width == usable_cores()


def test_threads__first_error_ends_it():
    def work(item):
        if item == 3:
            raise ValueError("the third")
        return item

    seen = []
    with pytest.raises(ValueError, match="the third"):
        Threads(1).run(work, list(range(50)), lambda index, *_: seen.append(index))
    assert len(seen) < 50


def test_threads__results_are_handed_over_unchanged():
    items = [(0, 5), "name", None]
    assert collect(Threads(2), lambda item: [item], items) == [[item] for item in items]
    arrays = collect(Threads(2), lambda item: np.full(3, item), [1, 2])
    np.testing.assert_array_equal(arrays, [[1, 1, 1], [2, 2, 2]])


def test_threads__opens_no_port(monkeypatch):
    def refuse(*_):
        raise AssertionError("a port was opened")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with connect(ClusterOptions(), 2, GIB) as executor:
        assert collect(executor, square, [1, 2, 3]) == [1, 4, 9]


@pytest.mark.slow
def test_connect__local_workers_are_other_processes_and_go_away():
    from eigenscape.base.memory import parse_bytes

    options = ClusterOptions(kind="local", workers=2)
    with connect(options, None, GIB) as executor:
        assert (executor.width, executor.tasks_per_process) == (2, 1)
        assert collect(executor, parse_bytes, ["1k", "2k", "3k"]) == [1000, 2000, 3000]
        # os.getppid is importable there; its parent is not this process but the nanny's.
        pids = set(collect(executor, lambda _: os.getpid(), list(range(20))))
        assert os.getpid() not in pids
        with pytest.raises(ValueError, match="such as"):
            executor.run(parse_bytes, ["nothing"], lambda *_: None)
        # It would keep what it sees of an hour.
        profiled = executor._client.run(dask.config.get, "distributed.worker.profile.enabled")
        assert [*profiled.values()] == [False, False]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_connect__says_why_no_scheduler_answers(monkeypatch):
    def client(**_):
        try:
            raise ConnectionRefusedError(111, "Connection refused")
        except OSError as error:
            raise OSError("Timed out after 10 s") from error

    monkeypatch.setattr("distributed.Client", client)
    options = load_cluster("tcp://127.0.0.1:8786")
    words = r"tcp://127\.0\.0\.1:8786: no scheduler .* \(Timed out after 10 s: Connection refused\)"
    with pytest.raises(ClusterError, match=words), connect(options, None, GIB):
        pass


def test_connect__scheduler_file_that_is_not_there(tmp_path):
    options = ClusterOptions(kind="existing", scheduler_file=str(tmp_path / "absent.json"))
    with pytest.raises(ClusterError, match=r"absent\.json"), connect(options, None, GIB):
        pass
