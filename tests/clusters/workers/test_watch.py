"""Workers that stand still: noticed, ended, their tasks done elsewhere, and never late ones written."""

import os
import signal
import sys
import threading
import time
from contextlib import closing, contextmanager

import cloudpickle
import pytest

from eigenscape.clusters import ClusterOptions, connect
from eigenscape.clusters.workers import watch
from eigenscape.clusters.workers.dask import Workers
from eigenscape.errors import ClusterLostError
from waiting import wait_until

pytestmark = pytest.mark.slow

GIB = 2**30

# No worker can import this module by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def pids(executor):
    """Return the process of each worker."""
    return list(executor._client.run(os.getpid).values())


def note(folder, pause, number):
    """Leave a file that says which process did a task when."""
    (folder / f"{number}.begun").write_text(str(os.getpid()), encoding="ascii")
    end = time.monotonic() + pause
    while time.monotonic() < end:
        time.sleep(0.05)
    with (folder / f"{number}.done").open("a", encoding="ascii") as stream:
        stream.write(f"{os.getpid()}\n")
    return number


@contextmanager
def two_workers(said):
    with connect(ClusterOptions(kind="local", workers=2), None, GIB, said.append) as executor:
        assert executor.width == 2
        yield executor


@pytest.fixture
def quick(monkeypatch):
    """Give workers up after seconds, not minutes; the workers' own alarm comes before."""
    monkeypatch.setattr(watch, "SILENT_S", 5.0)
    monkeypatch.setattr(watch, "QUIET_S", 2.0)
    monkeypatch.setattr(watch, "_BEATS", 2.0)


def set_lease(seconds):
    import eigenscape.clusters.workers.fence  # noqa: F401

    sys.modules["eigenscape.clusters.workers.fence"].LEASE_S = seconds


def test_run__a_stopped_worker(quick, tmp_path):
    said, heard, stopped = [], [], []

    def done_there():
        files = tmp_path.glob("*.done")
        return {file.name for file in files if str(stopped[0]) in file.read_text("ascii").split()}

    def hear(index, number, peak):
        heard.append(number)
        if len(heard) == 2:
            stopped.extend(pids(executor)[:1])
            os.kill(stopped[0], signal.SIGSTOP)
            stopped.append(done_there())

    with two_workers(said) as executor:
        executor._client.run(set_lease, 3.0)
        begin = time.monotonic()
        executor.run(lambda number: note(tmp_path, 0.2, number), list(range(12)), hear)
        assert time.monotonic() - begin < 60
        assert sorted(heard) == list(range(12))
        # What was under way in the stopped process was done elsewhere, and never there.
        assert done_there() == stopped[1]
        wait_until(lambda: executor.width == 2)
        assert stopped[0] not in pids(executor)
    words = "\n".join(said)
    assert "has sent no heartbeat for 2 s" in words
    assert "has sent no heartbeat for 5 s: it is ended, and its tasks are done elsewhere" in words


def test_fence__a_process_that_stood_for_long_takes_no_further_step(tmp_path):
    """What the driver cannot reach ends by itself, before it writes what others have written since."""
    with two_workers([]) as executor:
        executor._client.run(set_lease, 2.0)
        late = []

        def stop(number):
            wait_until(lambda: (tmp_path / "0.begun").exists())
            late.append(int((tmp_path / "0.begun").read_text("ascii")))
            os.kill(late[0], signal.SIGSTOP)
            time.sleep(3)
            os.kill(late[0], signal.SIGCONT)

        thread = threading.Thread(target=stop, args=(0,))
        thread.start()
        executor.run(lambda number: note(tmp_path, 1.0, number), [0], lambda *_: None)
        thread.join()
        done = (tmp_path / "0.done").read_text("ascii").split()
        assert len(done) == 1
        assert int(done[0]) != late[0]
        wait_until(lambda: executor.width == 2)
        # Without a task no alarm is set.
        idle = pids(executor)
        for pid in idle:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        for pid in idle:
            os.kill(pid, signal.SIGCONT)
        assert sorted(pids(executor)) == sorted(idle)


def test_fence__a_worker_without_scheduler_ends_its_task(tmp_path):
    """So that it writes nothing when the same command goes on with the run."""
    with two_workers([]) as executor:
        tried = threading.Thread(target=try_to_run, args=(executor, tmp_path, 60.0))
        tried.start()
        wait_until(lambda: (tmp_path / "1.begun").exists())
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    tried.join()
    assert not (tmp_path / "1.done").exists()


def try_to_run(executor, folder, pause):
    with pytest.raises(ClusterLostError):
        executor.run(lambda number: note(folder, pause, number), [1], lambda *_: None)


def test_share__waits_for_tasks_of_a_driver_that_is_gone(tmp_path):
    """Its scheduler lives on, and so do its workers with what they were at."""
    from distributed import Client, LocalCluster

    said = []
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50,
    ) as cluster:  # fmt: skip
        with Client(cluster, set_as_default=False) as client, closing(Workers(client)) as gone:
            gone.share(tmp_path)
            tried = threading.Thread(target=try_to_run, args=(gone, tmp_path, 3.0))
            tried.start()
            wait_until(lambda: (tmp_path / "1.begun").exists())
        with (
            Client(cluster, set_as_default=False) as client,
            closing(Workers(client, say=said.append)) as next_one,
        ):
            assert not (tmp_path / "1.done").exists()
            next_one.share(tmp_path)
            assert (tmp_path / "1.done").exists()
        tried.join()
    assert said[0] == "waiting for tasks of an earlier run: 1"


def test_run__an_error_waits_for_tasks_under_way(tmp_path):
    """The same stage may begin again with other blocks, which a late task must not meet."""
    said = []

    def work(number):
        if number == 0:
            wait_until(lambda: (tmp_path / "1.begun").exists())
            raise ValueError("the first")
        return note(tmp_path, 2.0, number)

    with two_workers(said) as executor:
        with pytest.raises(ValueError, match="the first"):
            executor.run(work, [0, 1], lambda *_: None)
        assert (tmp_path / "1.done").exists()
        assert said[0] == "waiting for tasks that are under way: 1"


def test_clock__stands_while_the_process_does(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    clock = watch.Clock()
    now[0] += 2
    assert clock() == 2
    now[0] += 3600
    assert clock() == 2 + clock._STEP_S
